"""Variation ratios and shapes: closed forms, numeric ones, and what is no curve at all."""

import json
import math

import numpy as np
import pytest
import torch

from unswayed import losses, theory
from unswayed.losses.registry import info, list_losses

PAPER = {
    "vce(a=0.015)": 67.6667, "vce(a=0.03)": 34.3333, "vce(a=0.05)": 21, "vce(a=0.2)": 6, "vce(a=0.4)": 3.5,
    "vce(a=4)": 1.25, "vce(a=5)": 1.2, "vel(a=1.2)": 1.2, "vel(a=5)": 5, "vsl(a=0.05)": 1.12951, "vsl(a=0.1)": 1.27537,
    "vsl(a=0.5)": 3.61413, "vsl(a=0.65)": 5.94522, "vsl(a=0.9)": 25.68, "vsl(a=0.99)": 275.2,
    "agce(a=6, q=1.5)": 1.0801,
    "agce(a=0.6, q=0.6)": 1.4804, "agce(a=1.8, q=3)": 2.4198, "agce(a=4, q=0.2)": 1.1954, "aul(a=6.3, q=1.5)": 1.0903,
    "aul(a=3, q=0.1)": 1.4404, "ael(a=3.5)": 1.3307, "ael(a=1.5)": 1.9477, "mae(scale=2)": 1, "taylor_ce(t=3)": 3,
    "phuber_ce(tau=7)": 7, "phuber_gce(q=0.7, tau=10)": 10,
}  # fmt: skip


@pytest.mark.parametrize("spec", PAPER)
def test_ratio_is_the_published_one(spec: str) -> None:
    assert theory.variation_ratio(spec) == pytest.approx(PAPER[spec], rel=2e-4)


@pytest.mark.parametrize(
    "spec", ["ce", "focal", "gce(q=0.7)", "gce(q=0.999)", "sce", "js(pi=0.5)", "vce(a=0)", "vsl(a=1)"]
)
def test_ratio_is_infinite(spec: str) -> None:
    assert theory.variation_ratio(spec) == math.inf


@pytest.mark.parametrize("name", [n for n in list_losses() if info(n).pointwise and info(n).ratio_of])
def test_closed_form_agrees_with_the_slopes_of_autograd(name: str) -> None:
    loss = info(name).cls()

    class Unknown(losses.PointwiseLoss):
        """The same curve, of which nothing is known."""

        def pointwise(self, log_p: torch.Tensor) -> torch.Tensor:
            return loss.pointwise(log_p)

        __repr__ = __str__ = lambda self: "unknown"

    assert theory.variation_ratio(Unknown()) == pytest.approx(theory.variation_ratio(loss), rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ("mae", "linear"), ("rce", "linear"), ("agce(a=2, q=1)", "linear"), ("vce(a=4)", "strictly convex"),
        ("vel(a=1.01)", "strictly convex"), ("vsl(a=0.5)", "strictly convex"), ("ce", "strictly convex"),
        ("phuber_ce(tau=3)", "convex"), ("agce(a=6, q=1.5)", "concave"), ("aul(a=3, q=0.1)", "concave"),
        ("vce(a=0.2) + agce(a=1, q=3)", "mixed"), ("taylor_ce(t=2)", "strictly convex"),
    ],
)  # fmt: skip
def test_shape(spec: str, shape: str) -> None:
    assert theory.profile(spec).shape == shape


@pytest.mark.parametrize(
    "function",
    [
        lambda u: -torch.log(u + 4),
        lambda u: -math.log(u + 4),
        lambda u: -float(np.log(u + 4)),
        lambda u: -torch.logaddexp(torch.log(u), torch.log(torch.tensor(4.0, dtype=torch.float64))),
    ],
    ids=["torch", "math", "numpy", "logaddexp"],
)
def test_any_function_of_u_will_do(function: object) -> None:
    found = theory.profile(function)
    assert found.ratio == pytest.approx(1.25, rel=1e-4)
    assert found.shape == "strictly convex"
    assert found.name in ("l(u)", "function")


@pytest.mark.parametrize(
    ("function", "ratio"),
    [
        (lambda u: -math.log(u), math.inf),
        (lambda u: -torch.log(u), math.inf),
        (lambda u: (1 - u) ** 2, math.inf),
        (lambda u: 1 - u, 1.0),
        (lambda u: (u - 0.5) ** 2 - u / 100, math.inf),
    ],
)
def test_functions_whose_slope_diverges_vanishes_or_turns(function: object, ratio: float) -> None:
    assert theory.variation_ratio(function) == pytest.approx(ratio, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "at_0"),
    [
        ("ce", math.inf),
        ("0.001*ce", math.inf),
        ("sce", math.inf),
        ("focal(gamma=5)", math.inf),
        ("gce(q=0.01)", 99.9),  # what is left of 100 at u = 1e-300, where its approach to 0 ends
        ("gce(q=0.5)", 2.0),
        ("js(pi=0.5)", 2.0),
        ("vce(a=4)", -math.log(4)),
        (lambda u: -1e-3 * math.log(u), math.inf),
        (lambda u: 2 * (1 - math.sqrt(u)), 2.0),
    ],
)
def test_a_value_is_infinite_where_it_grows_without_bound_however_slowly(loss: object, at_0: float) -> None:
    assert theory.profile(loss).at_0 == pytest.approx(at_0, rel=2e-3)  # type: ignore[arg-type]


def test_an_extreme_slope_inside_the_interval_is_found() -> None:
    def bump(u: torch.Tensor) -> torch.Tensor:
        # slope -(1 + exp(-((u - 0.3) / 0.01)^2)): from 1 to 2, the peak at 0.3
        return -u - 0.01 * math.sqrt(math.pi) / 2 * torch.erf((u - 0.3) / 0.01)

    assert theory.variation_ratio(bump) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("spec", ["nce", "amse", "label_smoothing(r=0.1)", "logit_clip", "gjs"])
def test_no_function_of_u_is_said_so(spec: str) -> None:
    with pytest.raises(theory.NotPointwise, match="no function of the given class's probability alone"):
        theory.variation_ratio(spec)


def test_a_curve_that_is_not_finite_is_refused_where_it_fails() -> None:
    with pytest.raises(ValueError, match=r"at u = "):
        theory.profile(lambda u: torch.sqrt(u - 0.5))


def test_neither_loss_nor_function_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a loss, nor a spec, nor a function"):
        theory.profile(3)  # type: ignore[arg-type]


def test_json_has_no_bare_infinity() -> None:
    text = theory.certify("ce", "symmetric(0.5)", 10).json()
    assert json.loads(text, parse_constant=pytest.fail)["ratio"] == "inf"
