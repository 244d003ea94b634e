"""Losses stay finite, exact and alive for confident predictions, in every precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import unswayed
from losses_cases import DEFAULTS, SPECS, build, draw, grad, labels
from unswayed import Bounded

NO_TAIL = [
    *("nnce", "nnce(p_min=0.01)", "nnfl", "nnfl(gamma=2, p_min=0.01)", "eps_softmax"),  # defined with a floor
    *(s for s in SPECS if s.startswith(("logit_clip", "sparse"))),  # no probability of theirs is small
    "label_smoothing(loss=nce, r=1)",  # constant
]

SLOPES: dict[str, Callable[[float], float]] = {
    "ce": lambda u: 1 / u,
    "mae": lambda u: 2.0,
    "focal(gamma=0.5)": lambda u: 0.5 * (1 - u) ** -0.5 * -math.log(u) + (1 - u) ** 0.5 / u,
    "focal(gamma=3)": lambda u: 3 * (1 - u) ** 2 * -math.log(u) + (1 - u) ** 3 / u,
    "rce(A=-4)": lambda u: 4.0,
    "sce(alpha=0.1, beta=1, A=-4)": lambda u: 0.1 / u + 4,
    "gce(q=0.7)": lambda u: u**-0.3,
    "gce(q=0.01)": lambda u: u**-0.99,
    "taylor_ce(t=3)": lambda u: 1 + (1 - u) + (1 - u) ** 2,
    "js(pi=0.5)": lambda u: math.log((0.5 + 0.5 * u) / (0.5 * u)) / math.log(2),
    "js(pi=0.1)": lambda u: math.log((0.1 + 0.9 * u) / (0.9 * u)) / -math.log(0.9),
    "gjs(pi=0.1)": lambda u: math.log((0.1 + 0.9 * u) / (0.9 * u)) / -math.log(0.9),
    "phuber_ce(tau=10)": lambda u: min(10, 1 / u),
    "phuber_gce(q=0.7, tau=10)": lambda u: min(10, u**-0.3),
    "agce(a=0.6, q=0.6)": lambda u: (0.6 + u) ** -0.4,
    "agce(a=4, q=3)": lambda u: (4 + u) ** 2,
    "aul(a=5.5, q=3)": lambda u: (5.5 - u) ** 2,
    "aul(a=1.1, q=0.5)": lambda u: (1.1 - u) ** -0.5,
    "ael(a=2.5)": lambda u: math.exp(-u / 2.5) / 2.5,
    "vce(a=0)": lambda u: 1 / u,
    "vce(a=1e-20)": lambda u: 1 / (u + 1e-20),
    "vce(a=4)": lambda u: 1 / (u + 4),
    "vel(a=2)": lambda u: math.log(2) * 2**-u,
    "vel(a=100)": lambda u: math.log(100) * 100**-u,
    "vsl(a=0.28)": lambda u: 2 * (math.log(2) - math.log1p(0.28 * u)) / (1 + 0.28 * u),
    "nmae": lambda u: 0.5,
    'bounded(ce, v=5, by="linear")': lambda u: min(5, 1 / u),
    'bounded(ce, v=5, by="shift")': lambda u: 1 / (u + 0.25),
    'bounded(ael(a=1), v=2, by="base")': lambda u: math.log(2) * 2**-u,
    "ce - 0.5*mae(scale=1)": lambda u: 1 / u - 0.5,
}


def given(u: float, dtype: torch.dtype) -> Tensor:
    """Logits of three classes, of which the first has about probability ``u``."""
    return torch.tensor([[math.log(u) - math.log1p(-u) + math.log(2), 0.0, 0.0]], dtype=dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("u", [1e-30, 1e-15, 1e-4, 0.4, 0.99])
@pytest.mark.parametrize("spec", SLOPES)
def test_the_gradient_is_the_mathematical_one_from_tail_to_tip(
    spec: str, u: float, dtype: torch.dtype, tolerance: float
) -> None:
    logits = given(u, dtype)
    exact = logits.double().softmax(1)[0, 0].item()
    gradient = grad(lambda z: unswayed.loss(spec)(z, torch.tensor([0])), logits)[0, 0].item()
    expected = -exact * (1 - exact) * SLOPES[spec](exact)
    assert expected != 0
    assert gradient == pytest.approx(expected, rel=tolerance, abs=0)


@pytest.mark.parametrize("spec", [s for s in SPECS if s not in NO_TAIL])
def test_the_far_tail_keeps_its_gradient_in_float32(spec: str) -> None:
    criterion, target = build(spec, 3), torch.tensor([0])
    logits = given(1e-25, torch.float64)
    single = grad(lambda z: criterion(z, target), logits.float())[0, 0]
    double = grad(lambda z: criterion(z, target), logits.float().double())[0, 0]
    assert double != 0
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("classes", [2, 10, 100_000])
@pytest.mark.parametrize("spec", SPECS)
def test_extreme_logits_give_finite_values_and_gradients(spec: str, classes: int, dtype: torch.dtype) -> None:
    if "{T}" in spec or "p_min=0.01" in spec:
        classes = min(classes, 50)
    criterion = build(spec, classes, reduction="none")
    winner = torch.zeros(classes)
    winner[0] = 1e4
    alternating = torch.full((classes,), 1e4)
    alternating[::2] = -1e4
    rows = [winner, -winner, 2 * winner - 1e4, 1e4 - 2 * winner, alternating, -alternating]
    rows += [torch.full((classes,), x) for x in (0.0, 1e4, -1e4)]
    logits = torch.stack(rows).to(dtype).requires_grad_()
    for target in (torch.zeros(len(rows), dtype=torch.long), torch.full((len(rows),), classes - 1)):
        value = criterion(logits, target)
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        assert value.dtype == torch.float32
        assert value.isfinite().all()
        assert gradient.isfinite().all()
    value = criterion(logits, torch.full(logits.shape, 1 / classes))
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize(
    "spec", ["aul(a=1.000000000001, q=0.1)", "agce(a=1e-30, q=0.1)", "vce(a=1e-300)", "nfl(gamma=100)", "vel(a=1e30)"]
)
def test_parameters_at_the_end_of_their_range_stay_finite_in_float32(spec: str) -> None:
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4], [0, 0], [9, 0], [0, 9], [40, 0]], requires_grad=True)
    value = unswayed.loss(spec, reduction="none")(logits, torch.zeros(6, dtype=torch.long))
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("spec", SPECS)
def test_float32_agrees_with_float64(spec: str) -> None:
    criterion, target = build(spec, 10, reduction="none"), labels(50, classes=10)
    for scale in (0.1, 2.0, 8.0):
        logits = draw(50, 10, scale=scale, dtype=torch.float32)
        for single, double in (
            (criterion(logits, target), criterion(logits.double(), target)),
            (grad(lambda z: criterion(z, target), logits), grad(lambda z: criterion(z, target), logits.double())),
        ):
            size = double.abs().max().clamp_min(1).item()
            torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("spec", SPECS)
def test_autocast_computes_in_float32(spec: str) -> None:
    criterion, target = build(spec, 5), labels(6, classes=5)
    features, layer = draw(6, 8, dtype=torch.float32), torch.nn.Linear(8, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = layer(features)
        value = criterion(logits, target)
    assert logits.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, criterion(logits.float(), target))
    value.backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.isfinite().all()


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_registry_knows_which_losses_are_bounded(name: str) -> None:
    criterion, entry = build(DEFAULTS[name], 3, reduction="none"), unswayed.info(name)

    def largest(size: float) -> float:
        logits = size * torch.tensor([[-1.0, 1, 0], [1, -1, 0], [1, 0, 0], [-1, 0, 0]], dtype=torch.float64)
        return max(criterion(logits, torch.full((4,), k)).max().item() for k in range(3))

    if entry.bounded:
        assert largest(1e4) == pytest.approx(largest(50), rel=0.05)
    elif not entry.wrapper:
        assert largest(1e4) > 100 * largest(50)


@pytest.mark.parametrize("by", ["linear", "shift"])
def test_bounded_losses_of_unbounded_ones_are_bounded(by: str) -> None:
    value = Bounded("ce", v=3, by=by)(torch.tensor([[-1e4, 1e4]]), torch.tensor([0]))
    assert 0 < value < 3
