"""Certificates and bounds: the paper's settings, its thresholds, its failures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from unswayed import theory


@pytest.mark.parametrize(
    ("noise", "classes", "threshold"),
    [
        ("symmetric(0.2)", 10, 36),
        ("symmetric(0.4)", 10, 13.5),
        ("symmetric(0.6)", 10, 6),
        ("symmetric(0.8)", 10, 2.25),
        ("symmetric(0.2)", 100, 396),
        ("symmetric(0.4)", 100, 148.5),
        ("symmetric(0.6)", 100, 66),
        ("symmetric(0.8)", 100, 24.75),
        ("asymmetric(0.2)", 10, 4),
        ("asymmetric(0.4)", 100, 1.5),
    ],
)
def test_thresholds_of_the_paper(noise: str, classes: int, threshold: float) -> None:
    assert theory.certify("ce", noise, classes).threshold == pytest.approx(threshold)


@pytest.mark.parametrize("rate", [0.2, 0.4])
def test_the_paper_s_own_cifar100_settings_fail_their_condition(rate: float) -> None:
    settings = {"5*nce + vce(a=0.4)": (0.4,), "5*nce + vel(a=5)": (0.2, 0.4), "5*nce + vsl(a=0.65)": (0.2, 0.4)}
    for spec, failing in settings.items():
        assert theory.certify(spec, f"asymmetric({rate})", 100).holds == (rate not in failing), spec


@pytest.mark.parametrize("spec", ["nce + 10*vce(a=4)", "nce + 10*vel(a=1.2)", "nce + 5*vsl(a=0.05)"])
def test_the_paper_s_cifar10_settings_hold(spec: str) -> None:
    for noise in ("symmetric(0.2)", "symmetric(0.8)", "asymmetric(0.2)", "asymmetric(0.4)"):
        assert theory.certify(spec, noise, 10).holds, noise


def test_bound_of_theorem_1() -> None:
    bound = theory.excess_risk_bound("vce(a=0.4)", "symmetric(0.6)", 10)
    assert bound is not None
    assert bound.theorem == 1
    assert bound.factor == pytest.approx(0.6 / (0.4 * 10 - 1))
    assert bound.normalised == pytest.approx(bound.factor * 2.5)
    assert bound.raw == pytest.approx(bound.normalised / 1.4)
    assert bound.tight == pytest.approx(bound.factor * 1.370, abs=1e-3)


def test_bound_of_theorem_2() -> None:
    bound = theory.excess_risk_bound("vce(a=0.4)", "asymmetric(0.4)", 10)
    assert bound is not None
    assert bound.theorem == 2
    assert bound.normalised == pytest.approx((1 + 0.6 / 0.2) * 2.5)
    uneven = theory.excess_risk_bound("vce(a=0.4)", [[0.9, 0.1], [0.3, 0.7]], prior=[0.25, 0.75])
    assert uneven is not None
    assert uneven.factor == pytest.approx(1 + (0.25 * 0.9 + 0.75 * 0.7) / 0.4)


def test_bounds_hold_for_the_real_minimisers() -> None:
    """One point, three classes: the clean risk of the noisy minimiser never exceeds the bound."""
    import torch

    import unswayed

    grid = np.linspace(0, 1, 301)
    points = np.array([(a, b, 1 - a - b) for a in grid for b in grid if a + b <= 1 + 1e-12]).clip(1e-300)
    for spec in ("vce(a=0.2)", "vel(a=5)", "vsl(a=0.65)"):
        values = unswayed.loss(spec).pointwise(torch.from_numpy(points).log()).numpy()
        for noise in ("symmetric(0.5)", "asymmetric(0.4)"):
            row = theory.certificate._resolve(noise, 3)[0][0]
            excess = values[(values @ row).argmin(), 0] - values[:, 0].min()
            bound = theory.excess_risk_bound(spec, noise, 3)
            assert bound is not None
            assert excess <= bound.tight_raw + 1e-9 <= bound.raw + 1e-8


def test_bounds_where_there_are_none() -> None:
    assert theory.excess_risk_bound("ce", "symmetric(0.5)", 10).raw == math.inf  # type: ignore[union-attr]
    assert theory.excess_risk_bound("vce", "symmetric(0.95)", 10).normalised == math.inf  # type: ignore[union-attr]
    assert theory.excess_risk_bound("mae", "symmetric(0.5)", 10).raw == 0  # type: ignore[union-attr]
    assert theory.excess_risk_bound("ce", "symmetric(0)", 10).normalised == 0  # type: ignore[union-attr]
    assert theory.excess_risk_bound("amse", "symmetric(0.5)", 10) is None
    assert theory.excess_risk_bound("nce", "asymmetric(0.4)", 10) is None


@pytest.mark.parametrize("prior", [[0.5, 0.4], [1.0], [1.5, -0.5]])
def test_prior_is_checked(prior: list[float]) -> None:
    with pytest.raises(ValueError, match="prior="):
        theory.excess_risk_bound("vce", [[0.9, 0.1], [0.3, 0.7]], prior=prior)


def test_certificate_reads_as_a_paragraph_and_as_json() -> None:
    certificate = theory.certify("nce + 10*vce(a=4)", "symmetric(0.8)", 10)
    assert str(certificate).startswith(
        "nce + 10*vce(a=4) is certified against symmetric(0.8) with 10 classes: v = 1.25"
    )
    assert "\n" not in str(certificate)
    facts = json.loads(certificate.json())
    assert {"ratio", "threshold", "holds", "margin", "bound"} <= set(facts)
    assert facts["holds"] is True
    assert facts["margin"] == pytest.approx(1.0)
    assert "NOT certified" in str(theory.certify("ce", "symmetric(0.8)", 10))
    for spec in ("ce", "sce", "0.001*ce"):
        assert "Nor is there a bound" in str(theory.certify(spec, "symmetric(0.8)", 10))
    # An infinite ratio, but sums over the labels that differ by 1.4218 at most, of which 0.4 / (0.6 * 10 - 1) is left.
    assert "costs at most 0.1137 of clean risk (in the loss's own units" in str(
        theory.certify("gce(q=0.7)", "symmetric(0.4)", 10)
    )


def test_noise_that_hides_the_true_label() -> None:
    certificate = theory.certify("mae", "symmetric(0.95)", 10)
    assert not certificate.holds
    assert "as likely as the right one" in certificate.why


def test_worst_class_of_a_matrix_decides(tmp_path: Path) -> None:
    matrix = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    certificate = theory.certify("vce(a=0.5)", matrix)
    assert certificate.worst_class == 2
    assert certificate.threshold == pytest.approx(3)
    assert certificate.holds
    file = tmp_path / "T.csv"
    np.savetxt(file, matrix, delimiter=",")
    assert theory.certify("vce(a=0.5)", f"matrix({file})").threshold == pytest.approx(3)
    assert not theory.certify("vce(a=0.4)", f'matrix("{file}")').holds


def test_number_of_classes_must_be_known_and_agree() -> None:
    with pytest.raises(ValueError, match="number of classes"):
        theory.certify("vce", "symmetric(0.2)")
    with pytest.raises(ValueError, match="2 classes, but 3"):
        theory.certify("vce", [[0.9, 0.1], [0.3, 0.7]], 3)
