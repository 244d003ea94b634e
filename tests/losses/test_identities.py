"""What reduces to what."""

from __future__ import annotations

import math

import pytest
import torch

from losses_cases import draw, grad, labels
from unswayed import GJS, JS, VCE, VEL, VSL, ForwardCorrection, info, loss

IDENTITY = [[float(i == j) for j in range(4)] for i in range(4)]

EQUAL = [
    ("vce(a=0)", "ce"),
    ("focal(gamma=0)", "ce"),
    ("phuber_ce(tau=1e12)", "ce"),
    (f"vel(a={math.e!r})", "ael(a=1)"),
    ("vel(a=1.2)", f"ael(a={1 / math.log(1.2)!r})"),
    ("vel(a=50)", f"ael(a={1 / math.log(50)!r})"),
    ("gce(q=1)", "mae(scale=1)"),
    ("taylor_ce(t=1)", "mae(scale=1)"),
    ("agce(a=3, q=1)", "mae(scale=1)"),
    ("aul(a=3, q=1)", "mae(scale=1)"),
    ("phuber_ce(tau=1)", "mae(scale=1)"),
    ("phuber_gce(q=1, tau=7)", "mae(scale=1)"),
    ("phuber_gce(q=0.3, tau=1)", "mae(scale=1)"),
    ("3*nmae", "mae(scale=1)"),
    ("nrce", "nmae"),
    ("ngce(q=1)", "nmae"),
    ("nfl(gamma=0)", "nce"),
    ("nnfl(gamma=0, p_min=1e-7)", "nnce(p_min=1e-7)"),
    ("rce(A=-9)", "4.5*mae(scale=2)"),
    ("sce(alpha=0.3, beta=2, A=-4)", "0.3*ce + 2*rce(A=-4)"),
    ("js(pi=0.3)", "gjs(pi=0.3)"),
    ('bounded(ce, v=10, by="linear")', "phuber_ce(tau=10)"),
    ('bounded(ce, v=3, by="shift")', "vce(a=0.5)"),
    ('bounded(ael(a=1), v=4, by="base")', "vel(a=4)"),
    ('bounded(ael(a=0.2), v=4, by="base")', "vel(a=4)"),
    ('bounded(gce(q=0.4), v=6, by="linear")', "phuber_gce(q=0.4, tau=6)"),
    ('bounded(vce(a=1), v=3, by="linear")', "vce(a=1)"),
    ('bounded(vce(a=1), v=2.5, by="shift")', "vce(a=1)"),
    ("label_smoothing(gce(q=0.5), r=0)", "gce(q=0.5)"),
    ("bootstrap(gce(q=0.5), beta=1)", "gce(q=0.5)"),
    ("bootstrap(gce(q=0.5), beta=1, hard=true)", "gce(q=0.5)"),
    ("eps_softmax(gce(q=0.5), m=0, p_min=0)", "gce(q=0.5)"),
    ("eps_softmax(nce, m=0, p_min=0)", "nce"),
    ("logit_clip(gce(q=0.5), norm=1e9)", "gce(q=0.5)"),
    (f"forward_correction(gce(q=0.5), T={IDENTITY})", "gce(q=0.5)"),
    (f"forward_correction(nce, T={IDENTITY})", "nce"),
    (f"backward_correction(nce, T={IDENTITY})", "nce"),
    ("2*ce - (nce - 3*mae)", "2*ce - nce + 3*mae"),
    ("ce - ce", "0*ce"),
    ("label_smoothing(ce + 2*nce, r=-0.4)", "label_smoothing(ce, r=-0.4) + 2*label_smoothing(nce, r=-0.4)"),
]


def same(left: str, right: str, tolerance: float = 1e-9, offset: float = 0.0) -> None:
    one, other = (loss(spec, reduction="none") for spec in (left, right))
    for scale in (0.1, 1.0, 4.0):
        logits, target = draw(30, 4, scale=scale), labels(30, classes=4)
        torch.testing.assert_close(
            one(logits, target) + offset, other(logits, target), rtol=tolerance, atol=tolerance / 10
        )
        gradients = [grad(lambda z, f=f: f(z, target), logits) for f in (one, other)]  # type: ignore[misc]  # noqa: B023
        torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_two_specs_of_one_loss(left: str, right: str) -> None:
    same(left, right)


def test_smoothing_a_symmetric_loss_scales_it_and_adds_a_constant() -> None:
    """sum_k (1 - p_k) = K - 1, so that r/K of it does not depend on the logits."""
    same("label_smoothing(mae(scale=1), r=0.2)", "0.8*mae(scale=1)", offset=-0.2 * 3 / 4)


@pytest.mark.parametrize("a", [0.01, 1.0, 100.0])
def test_agce_with_a_vanishing_exponent_is_vce(a: float) -> None:
    same(f"agce(a={a}, q=1e-7)", f"vce(a={a})", 1e-4, offset=-math.log(1 + a))


def test_gce_with_a_vanishing_exponent_is_ce() -> None:
    same("gce(q=1e-9)", "ce", 1e-6)


def test_a_large_shift_makes_vce_the_mean_absolute_error() -> None:
    same("1e6*vce(a=1e6)", "mae(scale=1)", 1e-5, offset=1e6 * math.log(1e6 + 1))


def test_js_lies_between_ce_and_the_mean_absolute_error() -> None:
    same("js(pi=1e-9)", "ce", 1e-4)
    logits, target = draw(20, 4), labels(20, classes=4)
    distances = []
    for exponent in (4, 8, 12):
        js = JS(pi=1 - 10.0**-exponent, reduction="none")(logits, target)
        distances.append((js - loss("mae(scale=1)", reduction="none")(logits, target)).abs().max().item())
    # It comes near as 1 / log(1 - pi) only.
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == pytest.approx(distances[0] / 3, rel=0.01)


def test_gjs_of_equal_predictions_is_js() -> None:
    logits, target = draw(20, 4), labels(20, classes=4)
    torch.testing.assert_close(GJS(pi=0.3)([logits] * 3, target), JS(pi=0.3)(logits, target))


def test_vel_of_base_e_is_the_exponential_loss_and_vsl_of_1_the_square_log() -> None:
    logits, target = draw(20, 4), labels(20, classes=4)
    u = logits.softmax(1).gather(1, target[:, None])[:, 0]
    torch.testing.assert_close(VEL(a=math.e, reduction="none")(logits, target), torch.exp(-u))
    torch.testing.assert_close(VSL(a=1, reduction="none")(logits, target), torch.log((1 + u) / 2) ** 2)


@pytest.mark.parametrize("inner", ["ce", "vce(a=1)", "nce", "amse(a=2)"])
def test_backward_correction_is_unbiased(inner: str) -> None:
    """sum_j T[i][j] L_corrected(p, j) = L(p, i)."""
    matrix = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.1, 0.6]], dtype=torch.float64)
    corrected = loss(f"backward_correction({inner}, T={matrix.tolist()})", reduction="none")
    logits = draw(8, 3)
    for i in range(3):
        expected = loss(inner, reduction="none")(logits, torch.full((8,), i))
        mean = sum(matrix[i, j] * corrected(logits, torch.full((8,), j)) for j in range(3))
        torch.testing.assert_close(mean, expected)


@pytest.mark.parametrize("v", [1.0001, 1.25, 2.0, 7.0, 1e4])
@pytest.mark.parametrize("cls", [VCE, VEL, VSL])
def test_with_ratio_builds_the_loss_of_that_ratio(cls: type[VCE] | type[VEL] | type[VSL], v: float) -> None:
    ratio = info(cls.name).ratio_of
    assert ratio is not None
    criterion = cls.with_ratio(v, reduction="sum")
    assert ratio(criterion.params) == pytest.approx(v, rel=1e-9)
    assert criterion.reduction == "sum"


@pytest.mark.parametrize("v", [1.0, 0.5, math.inf, math.nan, True, "2"])
@pytest.mark.parametrize("cls", [VCE, VEL, VSL])
def test_with_ratio_names_its_range(cls: type[VCE] | type[VEL] | type[VSL], v: float) -> None:
    with pytest.raises(ValueError, match=rf"{cls.name}: v={v!r} is not allowed; a variation ratio .* above 1"):
        cls.with_ratio(v)


def test_forward_correction_with_certain_flips_exchanges_the_labels() -> None:
    swapped = ForwardCorrection(T=[[0.0, 1.0], [1.0, 0.0]])
    logits, target = draw(6, 2), labels(6, classes=2)
    torch.testing.assert_close(swapped(logits, target), loss("ce")(logits, 1 - target))
