"""The symmetric and asymmetric conditions, against brute force and the paper's numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unswayed
from unswayed import theory

GAPS = {
    "vce(a=4)": (0.1189, 0.1327), "vce(a=0.4)": (1.370, 1.703), "vel(a=1.2)": (0.0922, 0.1019),
    "vel(a=5)": (2.133, 2.475), "vsl(a=0.05)": (0.0593, 0.0654), "vsl(a=0.65)": (2.573, 2.973),
}  # fmt: skip


@pytest.mark.parametrize("spec", GAPS)
@pytest.mark.parametrize(("place", "classes"), [(0, 10), (1, 100)])
def test_gap_is_the_exact_one(spec: str, place: int, classes: int) -> None:
    gap = theory.symmetry_gap(spec, classes)
    assert gap.exact
    assert gap.normalised == pytest.approx(GAPS[spec][place], abs=6e-4)
    assert gap.bound == pytest.approx(theory.variation_ratio(spec) - 1)
    assert gap.normalised <= gap.bound


def sums_over_labels(spec: str, classes: int, tries: int = 4000) -> np.ndarray:
    """Sum of the loss over all labels, one by one, for predictions from uniform to all but one-hot."""
    torch.manual_seed(0)
    logits = torch.randn(tries, classes, dtype=torch.float64) * torch.logspace(-3, 2.5, tries).unsqueeze(1).double()
    loss = unswayed.loss(spec, reduction="none")
    return sum(loss(logits, torch.full((tries,), k)) for k in range(classes)).numpy()


@pytest.mark.parametrize("spec", ["vce(a=0.4)", "agce(a=6, q=1.5)", "vce(a=0.2) + agce(a=1, q=3)", "nce + 10*vce(a=4)"])
def test_no_prediction_leaves_the_gap_and_some_nearly_reach_it(spec: str) -> None:
    gap = theory.symmetry_gap(spec, 3)
    spread = np.ptp(sums_over_labels(spec, 3))
    assert spread <= gap.gap * (1 + 1e-6)
    assert spread >= 0.98 * gap.gap


@pytest.mark.parametrize("spec", ["nce", "nfl", "ngce", "nmae", "nrce", "nnce", "nnfl", "mae", "rce", "nce + mae"])
def test_symmetric_losses_have_no_gap(spec: str) -> None:
    assert theory.symmetry_gap(spec, 7).gap == 0
    assert np.ptp(sums_over_labels(spec, 7, 400)) < 1e-9


def test_gap_of_a_loss_of_the_whole_row_is_searched_for_and_told_so() -> None:
    gap = theory.symmetry_gap("amse(a=3)", 5)
    assert not gap.exact
    assert gap.bound is None
    # sum_k AMSE = |p|^2 - 2a/K + a^2, and |p|^2 goes from 1/K to 1
    assert gap.gap == pytest.approx(1 - 1 / 5, rel=1e-3)
    assert theory.symmetry_gap("ce", 5).gap == math.inf


@pytest.mark.parametrize("classes", [0, 1, 2.5, True])
def test_number_of_classes_is_checked(classes: object) -> None:
    with pytest.raises(ValueError, match="whole number of 2 or more"):
        theory.symmetry_gap("ce", classes)  # type: ignore[arg-type]


def minimiser(spec: str, weights: list[float]) -> np.ndarray:
    """Brute force on a grid of the simplex of three classes."""
    grid = np.linspace(0, 1, 201)
    points = np.array([(a, b, 1 - a - b) for a in grid for b in grid if a + b <= 1 + 1e-12]).clip(1e-300)
    values = unswayed.loss(spec).pointwise(torch.from_numpy(points).log()).numpy() @ np.array(weights)
    return points[values.argmin()]


@settings(max_examples=60, deadline=None)
@given(
    spec=st.one_of(
        st.floats(0.05, 8).map(lambda a: f"vce(a={a!r})"),
        st.floats(1.05, 9).map(lambda a: f"vel(a={a!r})"),
        st.floats(0.05, 0.9).map(lambda a: f"vsl(a={a!r})"),
        st.tuples(st.floats(0.3, 5), st.floats(0.2, 2.5)).map(lambda t: f"agce(a={t[0]!r}, q={t[1]!r})"),
    ),
    first=st.floats(0.4, 1),
    share=st.floats(0, 1),
)
def test_verdict_agrees_with_brute_force(spec: str, first: float, share: float) -> None:
    weights = [first, (1 - first) * share, (1 - first) * (1 - share)]
    second = max(weights[1:])
    verdict = None if first <= second * 1.001 else theory.is_asymmetric(spec, weights)
    if verdict is None or (verdict.ratio and abs(verdict.ratio / verdict.threshold - 1) < 0.05):
        return  # too close for a grid to tell
    one_hot = minimiser(spec, weights)[0] > 1 - 1e-9
    assert one_hot == verdict.holds or (not verdict.sharp and one_hot)


def test_condition_is_sharp_at_the_threshold() -> None:
    assert theory.is_asymmetric("vce(a=1)", [2, 1, 0]).holds
    assert not theory.is_asymmetric("vce(a=1)", [1.98, 1, 0]).holds
    assert theory.is_asymmetric("vce(a=1)", [1.98, 1, 0]).sharp
    # A straight piece has other minimisers where the two are equal.
    assert not theory.is_asymmetric("phuber_ce(tau=2)", [2, 1, 0]).holds
    assert theory.is_asymmetric("phuber_ce(tau=2)", [2.01, 1, 0]).holds


def test_concave_and_linear_losses_need_a_dominant_label_only() -> None:
    for spec in ("agce(a=1.8, q=3)", "aul(a=3, q=0.1)", "mae", "rce", "nmae", "nnce"):
        assert theory.is_asymmetric(spec, [0.51, 0.49, 0]), spec
    assert not theory.is_asymmetric("mae", [0.5, 0.5, 0])


def test_amse_has_its_own_condition() -> None:
    assert theory.is_asymmetric("amse(a=9)", [0.2] + [0.8 / 9] * 9)
    assert not theory.is_asymmetric("amse(a=8.9)", [0.2] + [0.8 / 9] * 9)


def test_sums_with_a_symmetric_loss_carry_the_caveat() -> None:
    verdict = theory.is_asymmetric("nce + 10*vce(a=4)", [0.6, 0.4, 0])
    assert verdict.holds
    assert "limit" in verdict.caveats[0]
    assert not theory.is_asymmetric("nce", [0.6, 0.4, 0]).holds
    assert theory.is_asymmetric("nce", [0.6, 0.2, 0.2]).holds
    assert not theory.is_asymmetric("ngce + vce(a=4)", [0.6, 0.4, 0]).holds
    assert not theory.is_asymmetric("vce(a=4) - 0.5*nce", [0.6, 0.2, 0.2]).holds
    assert "no condition is known" in theory.is_asymmetric("label_smoothing(r=0.1)", [0.6, 0.4]).because


@pytest.mark.parametrize("weights", [[1.0], [0.5, -0.1], [[1, 2]], [1, math.nan]])
def test_weights_are_checked(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights="):
        theory.is_asymmetric("ce", weights)


@pytest.mark.parametrize("spec", ["vce(a=1)", "vce(a=0.4)", "vel(a=5)", "vsl(a=0.65)", "taylor_ce(t=3)"])
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_tolerated_rates_follow_from_the_ratio(spec: str, classes: int) -> None:
    v = theory.variation_ratio(spec)
    found = theory.tolerated(spec, classes)
    assert found.symmetric == pytest.approx((classes - 1) / (classes - 1 + v), rel=1e-7)
    assert found.asymmetric == pytest.approx(1 / (1 + v), rel=1e-7)
    assert theory.certify(spec, f"symmetric({found.symmetric!r})", classes).holds
    assert not theory.certify(spec, f"symmetric({found.symmetric + 1e-6!r})", classes).holds


def test_tolerated_ends() -> None:
    assert theory.tolerated("ce", 10) == theory.Tolerated(0.0, 0.0)
    assert theory.tolerated("mae", 10) == theory.Tolerated(0.9, 0.5)
    assert theory.tolerated("nce", 10) == theory.Tolerated(0.9, 0.0)
    assert theory.tolerated("amse(a=30)", 10).symmetric == pytest.approx(0.87)
