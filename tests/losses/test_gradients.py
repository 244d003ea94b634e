"""First and second derivatives, and the hand-written backward pass of large batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from losses_cases import DEFAULTS, SPECS, build, draw, grad, is_smooth, labels
from unswayed.losses import evidence

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # by forward mode
FUSED = [*DEFAULTS.values(), *(s for s in SPECS if " + " in s or " - " in s), "label_smoothing(loss=nce, r=0.3)"]
FUSED += ["nce + nfl + vce(a=1) + amse", "logit_clip(loss=nce + gce(q=0.5), norm=2)", "bootstrap(loss=nce, beta=0.4)"]
SMOOTH = [s for s in SPECS if is_smooth(build(s, 3))]


def test_most_losses_are_smooth() -> None:
    assert len(SMOOTH) > len(SPECS) / 2


def call(spec: str, classes: int, weight: bool = False) -> Callable[[Tensor], Tensor]:
    options = {"weight": torch.arange(1.0, classes + 1)} if weight else {}
    criterion = build(spec, classes, reduction="none", **options)
    return partial(criterion, target=torch.arange(3) % classes)


@pytest.mark.parametrize("spec", SPECS)
def test_gradient(spec: str) -> None:
    assert gradcheck(call(spec, 4), draw(3, 4).requires_grad_(), check_forward_ad=True, check_batched_grad=True)


@pytest.mark.parametrize("spec", SMOOTH)
def test_second_derivative_of_smooth_losses(spec: str) -> None:
    assert gradgradcheck(call(spec, 3), draw(3, 3).requires_grad_())


@pytest.mark.parametrize("spec", DEFAULTS.values())
def test_gradient_reaches_soft_labels(spec: str) -> None:
    criterion, logits = build(spec, 3), draw(3, 3)
    soft = draw(3, 3, seed=1).softmax(1).requires_grad_()
    assert gradcheck(lambda q: criterion(logits, q), soft)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    return lambda on: monkeypatch.setattr(evidence, "_FUSE_FROM", 0 if on else 1 << 60)


@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3)])
@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_equals_the_plain_one(spec: str, shape: tuple[int, ...], fused: Callable[[bool], None]) -> None:
    criterion = build(spec, 4, weight=[1.0, 2.0, 0.5, 3.0], ignore_index=2)
    logits, target = draw(*shape), labels(shape[0], *shape[2:], classes=4)
    results = []
    for on in (False, True):
        fused(on)
        results.append((criterion(logits, target), grad(lambda z: criterion(z, target), logits)))
    torch.testing.assert_close(results[1], results[0], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_in_float32_keeps_the_input_as_it_was(spec: str, fused: Callable[[bool], None]) -> None:
    fused(True)
    criterion, logits, target = build(spec, 4), draw(5, 4, dtype=torch.float32), labels(5, classes=4)
    before = logits.clone().requires_grad_()
    value = criterion(before, target)
    first = torch.autograd.grad(value, before, retain_graph=True)[0]
    second = torch.autograd.grad(value, before)[0]
    assert torch.equal(before, logits)
    assert torch.equal(first, second)


@pytest.mark.parametrize("spec", [s for s in FUSED if is_smooth(build(s, 3))])
def test_fused_path_has_first_and_second_derivatives(spec: str, fused: Callable[[bool], None]) -> None:
    fused(True)
    loss, logits = call(spec, 3, weight=True), draw(3, 3).requires_grad_()
    assert gradcheck(loss, logits)
    assert gradgradcheck(loss, logits)


@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_under_vmap_and_func_grad(spec: str, fused: Callable[[bool], None]) -> None:
    criterion, logits, target = build(spec, 4), draw(5, 4), labels(5, classes=4)
    fused(False)
    expected = torch.stack([grad(lambda z, i=i: criterion(z, target[i]), logits[i]) for i in range(5)])  # type: ignore[misc]
    fused(True)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(criterion))(logits, target), expected)
    whole = torch.func.grad(criterion)(logits, target)
    torch.testing.assert_close(whole, expected / 5)


@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_with_many_gradients_at_once(spec: str, fused: Callable[[bool], None]) -> None:
    loss, logits = call(spec, 4, weight=True), draw(3, 4)
    fused(False)
    expected = torch.stack([grad(lambda z, i=i: loss(z)[i], logits) for i in range(3)])  # type: ignore[misc]
    fused(True)
    found = torch.autograd.functional.jacobian(loss, logits, vectorize=True)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_of_logits_in_another_order_of_memory(spec: str, fused: Callable[[bool], None]) -> None:
    criterion = build(spec, 4)
    for logits in (draw(4, 5).t(), draw(3, 2, 4).movedim(2, 1), draw(3, 4, 2, 5).to(memory_format=torch.channels_last)):
        target = labels(logits.shape[0], *logits.shape[2:], classes=4)
        fused(False)
        expected = grad(lambda z: criterion(z, target), logits)  # noqa: B023
        fused(True)
        leaf = logits.requires_grad_()
        torch.testing.assert_close(torch.autograd.grad(criterion(leaf, target), leaf)[0], expected)


@pytest.mark.parametrize("shape", [(300, 1000), (3, 70_001), (2, 1000, 80)], ids=str)
@pytest.mark.parametrize("spec", ["vce(a=4)", "nce + 10*vce(a=4)", "nfl", "nce + nfl"])
def test_fused_path_equals_the_plain_one_on_large_batches_of_float32(
    spec: str, shape: tuple[int, ...], fused: Callable[[bool], None]
) -> None:
    criterion = build(spec, 4, reduction="sum")
    logits, target = draw(*shape, dtype=torch.float32), labels(shape[0], *shape[2:], classes=shape[1])
    fused(False)
    expected = grad(lambda z: criterion(z, target), logits)
    fused(True)
    found = grad(lambda z: criterion(z, target), logits)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6 * expected.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("spec", FUSED)
def test_fused_path_returns_the_gradient_in_the_dtype_of_the_logits(
    spec: str, dtype: torch.dtype, fused: Callable[[bool], None]
) -> None:
    criterion, logits, target = build(spec, 4), draw(5, 4).to(dtype), labels(5, classes=4)
    fused(True)
    value = criterion(logits, target)
    gradient = grad(lambda z: criterion(z, target), logits)
    fused(False)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(value, criterion(logits, target))
    torch.testing.assert_close(gradient, grad(lambda z: criterion(z, target), logits), rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("spec", ["vce(a=1)", "nce + 10*vce(a=4)", "nfl + nce", "label_smoothing(loss=nce, r=0.2)"])
def test_fused_path_in_forward_mode_jacobians_and_hessians(spec: str, fused: Callable[[bool], None]) -> None:
    loss, logits = call(spec, 3), draw(3, 3)
    fused(False)
    jacobian, hessian = torch.func.jacrev(loss)(logits), torch.func.hessian(lambda z: loss(z).sum())(logits)
    fused(True)
    torch.testing.assert_close(torch.func.jacrev(loss)(logits), jacobian)
    torch.testing.assert_close(torch.func.jacfwd(loss)(logits), jacobian)
    torch.testing.assert_close(torch.func.hessian(lambda z: loss(z).sum())(logits), hessian)
    assert gradcheck(loss, logits.requires_grad_(), check_forward_ad=True)


def test_a_large_batch_takes_the_fused_path() -> None:
    logits = torch.zeros(2, evidence._FUSE_FROM // 2, requires_grad=True)
    e = evidence.Evidence(logits, torch.tensor([0, 1]), total=True)
    assert "_LogProbabilities" in str(e.log_p_y.grad_fn)
    (-e.sum_log_p).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-6  # 1 - K p, with p = 1/K
