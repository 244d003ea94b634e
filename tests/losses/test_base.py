"""What every loss has from the base class: torch's shapes, weights, reductions, soft labels and ignored positions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from losses_cases import DEFAULTS, SPECS, build, draw, grad, labels
from unswayed import CE, GJS, NCE, VCE, LabelSmoothing, PointwiseLoss, Sum

K = 4
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.5], dtype=torch.float64)
SHAPES = [(K,), (6, K), (5, K, 3), (2, K, 3, 2)]
LOSSES = [*DEFAULTS.values(), "nce + 10*vce(a=4)", "label_smoothing(loss=vce(a=1), r=-0.3)"]
each_loss = pytest.mark.parametrize("spec", LOSSES)


def batch(*shape: int, soft: bool = False, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Logits of a shape with its classes, and labels that go with them; class 1 occurs among the indices."""
    logits = draw(*shape, dtype=dtype)
    if soft:
        return logits, draw(*shape, seed=1, dtype=dtype).softmax(0 if len(shape) == 1 else 1)
    target = labels(*shape[:1], *shape[2:], classes=K) if len(shape) > 1 else torch.tensor(1)
    return logits, target


def flat(logits: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Positions of ``(N, K, ...)`` as rows, and what belongs to them."""
    return logits.movedim(1, -1).reshape(-1, K), *(other.reshape(-1) for other in others)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("weight", "ignore_index"), [(None, -100), (None, 1), (WEIGHT, -100), (WEIGHT, 1)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ce_is_that_of_torch(shape: tuple[int, ...], weight: Tensor | None, ignore_index: int, reduction: str) -> None:
    logits, target = batch(*shape)
    if shape == (K,) and ignore_index == 1:
        target = torch.tensor(3)  # torch's mean over nothing is NaN
    options: dict[str, Any] = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    criterion = CE(**options)
    torch.testing.assert_close(
        criterion(logits, target), F.cross_entropy(logits, target, **options), rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        grad(lambda z: criterion(z, target), logits),
        grad(lambda z: F.cross_entropy(z, target, **options), logits),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("r", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("soft", [True, False])
def test_label_smoothing_is_that_of_torch(
    shape: tuple[int, ...], weight: Tensor | None, reduction: str, r: float, soft: bool
) -> None:
    logits, target = batch(*shape, soft=soft)
    ours = LabelSmoothing(r=r, weight=weight, reduction=reduction)(logits, target)
    theirs = F.cross_entropy(logits, target, label_smoothing=r, weight=weight, reduction=reduction)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ce_of_soft_labels_is_that_of_torch(shape: tuple[int, ...], weight: Tensor | None, reduction: str) -> None:
    logits, target = batch(*shape, soft=True)
    ours = CE(weight=weight, reduction=reduction)(logits, target)
    theirs = F.cross_entropy(logits, target, weight=weight, reduction=reduction)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_any_integer_type_may_name_classes(dtype: torch.dtype) -> None:
    logits, target = batch(6, K)
    assert CE()(logits, target.to(dtype)) == CE()(logits, target)


@each_loss
@pytest.mark.parametrize("shape", SHAPES[2:], ids=str)
@pytest.mark.parametrize("soft", [False, True])
def test_spatial_positions_are_rows(spec: str, shape: tuple[int, ...], soft: bool) -> None:
    logits, target = batch(*shape, soft=soft)
    (rows,) = flat(logits)
    row_target = flat(target)[0] if soft else target.reshape(-1)
    expected = build(spec, K, reduction="none")(rows, row_target)
    result = build(spec, K, reduction="none")(logits, target)
    assert result.shape == shape[:1] + shape[2:]
    torch.testing.assert_close(result.reshape(-1), expected)
    torch.testing.assert_close(build(spec, K)(logits, target), expected.mean())


@each_loss
def test_a_single_example_is_a_batch_of_one(spec: str) -> None:
    logits, target = batch(1, K)
    for reduction in ("mean", "sum", "none"):
        criterion = build(spec, K, reduction=reduction, weight=[1.0, 2.0, 3.0, 4.0])
        assert criterion(logits[0], target[0]).shape == ()
        expected = criterion(logits, target).reshape(())
        torch.testing.assert_close(criterion(logits[0], target[0]), expected)
        assert criterion(logits[0], torch.full((K,), 1 / K, dtype=torch.float64)).shape == ()


@each_loss
def test_class_weights_multiply_and_the_mean_divides_by_their_sum(spec: str) -> None:
    logits, target = batch(5, K, 3)
    one_class_each = [build(spec, K, reduction="none", weight=row)(logits, target) for row in torch.eye(K).tolist()]
    weighted = sum(w * part for w, part in zip(WEIGHT, one_class_each, strict=True))
    plain = build(spec, K, reduction="none")(logits, target)
    torch.testing.assert_close(sum(one_class_each), plain)
    if not any(name in spec for name in ("label_smoothing", "bootstrap", "backward")):  # which change the label
        torch.testing.assert_close(weighted, plain * WEIGHT[target])
    torch.testing.assert_close(build(spec, K, reduction="none", weight=WEIGHT)(logits, target), weighted)
    torch.testing.assert_close(build(spec, K, reduction="sum", weight=WEIGHT)(logits, target), weighted.sum())
    mean = build(spec, K, weight=WEIGHT)(logits, target)
    torch.testing.assert_close(mean, weighted.sum() / WEIGHT[target].sum())


@each_loss
def test_class_weights_of_soft_labels_multiply_each_class_and_the_mean_divides_by_positions(spec: str) -> None:
    logits, target = batch(6, K, soft=True)
    criterion = build(spec, K, reduction="none", weight=WEIGHT)
    pure = torch.stack([criterion(logits, torch.full((6,), k)) for k in range(K)], 1)
    expected = (target * pure).sum(1)
    if "bootstrap" not in spec:
        torch.testing.assert_close(criterion(logits, target), expected)
    torch.testing.assert_close(build(spec, K, weight=WEIGHT)(logits, target), criterion(logits, target).sum() / 6)


@each_loss
@pytest.mark.parametrize("ignore_index", [-100, 2])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 3.0]])
def test_ignored_positions_count_for_nothing(spec: str, ignore_index: int, weight: list[float] | None) -> None:
    logits, target = batch(7, K, 3)
    target[::2, 1] = ignore_index
    rows, row_target = flat(logits, target)
    kept = row_target != ignore_index
    for reduction in ("mean", "sum"):
        criterion = build(spec, K, ignore_index=ignore_index, weight=weight, reduction=reduction)
        subset = build(spec, K, weight=weight, reduction=reduction)
        torch.testing.assert_close(criterion(logits, target), subset(rows[kept], row_target[kept]))
    none = build(spec, K, ignore_index=ignore_index, weight=weight, reduction="none")
    assert (none(logits, target).reshape(-1)[~kept] == 0).all()
    assert (flat(grad(lambda z: none(z, target), logits))[0][~kept] == 0).all()


@each_loss
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.5, 3.0]])
def test_sample_weights_multiply_positions_and_their_share_in_the_mean(spec: str, weight: list[float] | None) -> None:
    logits, target = batch(5, K, 3)
    target[0, 0] = -100
    classes = torch.ones(K, dtype=torch.float64) if weight is None else torch.tensor(weight, dtype=torch.float64)
    mass = torch.where(target == -100, 0.0, classes[target.clamp_min(0)])
    plain = build(spec, K, reduction="none", weight=weight)(logits, target)
    for given in (torch.rand(5, 3, dtype=torch.float64), torch.rand(5, dtype=torch.float64)):
        full = given if given.dim() == 2 else given.unsqueeze(1).expand(5, 3)
        call: dict[str, Any] = {"sample_weight": given}
        torch.testing.assert_close(
            build(spec, K, reduction="none", weight=weight)(logits, target, **call), plain * full
        )
        total = (plain * full).sum()
        torch.testing.assert_close(build(spec, K, reduction="sum", weight=weight)(logits, target, **call), total)
        mean = build(spec, K, weight=weight)(logits, target, **call)
        torch.testing.assert_close(mean, total / (mass * full).sum())


def test_sample_weights_of_soft_labels_and_of_a_single_example() -> None:
    logits, target = batch(3, K, soft=True)
    given = torch.tensor([1.0, 0.0, 3.0], dtype=torch.float64)
    plain = CE(reduction="none")(logits, target)
    torch.testing.assert_close(CE()(logits, target, sample_weight=given), (plain * given).sum() / 4)
    single = CE(reduction="none")(logits[0], target[0], sample_weight=torch.tensor(3.0))
    torch.testing.assert_close(single, 3 * plain[0])


@each_loss
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_everything_ignored_is_zero_with_a_graph(spec: str, reduction: str) -> None:
    for weight, target in itertools.product((None, [1.0, 2.0, 0.5, 3.0]), (torch.full((3,), -100),)):
        logits = draw(3, K).requires_grad_()
        value = build(spec, K, reduction=reduction, weight=weight)(logits, target)
        assert (value == 0).all()
        value.sum().backward()
        assert logits.grad is not None
        assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_a_mean_over_classes_of_no_weight_is_zero() -> None:
    logits = draw(3, K).requires_grad_()
    value = CE(weight=[0.0, 1, 1, 1])(logits, torch.zeros(3, dtype=torch.long))
    value.backward()
    assert value == 0
    assert logits.grad is not None
    assert not logits.grad.any()


@each_loss
@pytest.mark.parametrize(("logits", "target"), [((0, K), (0,)), ((0, K, 2), (0, 2)), ((2, K, 0), (2, 0))])
def test_an_empty_batch_is_zero(spec: str, logits: tuple[int, ...], target: tuple[int, ...]) -> None:
    z = torch.zeros(logits, requires_grad=True)
    hard, soft = torch.zeros(target, dtype=torch.long), torch.zeros(logits)
    for label in (hard, soft):
        for weight in (None, [1.0] * K):
            value = build(spec, K, weight=weight)(z, label)
            value.backward()
            assert value == 0
        assert build(spec, K, reduction="none")(z, label).shape == target


@pytest.mark.parametrize("spec", SPECS)
def test_the_dtype_of_the_result_is_float32_unless_the_logits_are_float64(spec: str) -> None:
    logits, target = batch(3, K)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        wanted = torch.float64 if dtype == torch.float64 else torch.float32
        for criterion in (build(spec, K), build(spec, K, weight=[1.0] * K)):
            assert criterion(logits.to(dtype), target).dtype == wanted
            assert criterion(logits.to(dtype), logits.softmax(1).to(dtype)).dtype == wanted
            assert grad(lambda z: criterion(z, target), logits.to(dtype)).dtype == dtype  # noqa: B023


def test_algebra_keeps_options_and_shares_a_sum() -> None:
    options: dict[str, Any] = {"reduction": "none", "ignore_index": 0, "weight": [1.0, 2.0, 3.0, 4.0]}
    one, other = NCE(**options), VCE(a=4, **options)
    logits, target = batch(6, K)
    expected = one(logits, target) - 2.5 * other(logits, target)
    for combined in (one - 2.5 * other, one + -2.5 * other, -(other * 2.5) + one, -(2.5 * other - one)):
        assert isinstance(combined, Sum)
        assert (combined.reduction, combined.ignore_index) == ("none", 0)
        torch.testing.assert_close(combined(logits, target), expected)


@pytest.mark.parametrize("other", [2, "ce", None, torch.ones(1)])
def test_only_losses_can_be_added(other: Any) -> None:
    with pytest.raises(TypeError):
        CE() + other
    with pytest.raises(TypeError):
        CE() - other


@pytest.mark.parametrize("factor", [True, "2", None, CE()])
def test_losses_can_be_multiplied_by_numbers_only(factor: Any) -> None:
    with pytest.raises(TypeError):
        CE() * factor


class Square(PointwiseLoss):
    name = "test_square"

    def pointwise(self, log_p: Tensor) -> Tensor:
        return (1 - log_p.exp()) ** 2


def test_a_loss_of_ones_own_needs_no_registration() -> None:
    logits, target = batch(6, K)
    square = Square(weight=WEIGHT)
    expected = (1 - logits.softmax(1).gather(1, target[:, None])[:, 0]) ** 2 * WEIGHT[target]
    torch.testing.assert_close(square(logits, target), expected.sum() / WEIGHT[target].sum())
    assert repr(square) == "test_square"
    assert repr(2 * square + CE(weight=WEIGHT)) == "2*test_square + ce"


def test_gjs_of_several_predictions() -> None:
    import reference

    weak, strong, third = draw(6, K), draw(6, K, seed=1), draw(6, K, seed=2)
    target = labels(6, classes=K)
    for views in ([weak, strong], (weak, strong, third)):
        value = GJS(pi=0.3, reduction="none")(views, target)
        expected = [reference.gjs([view[i].tolist() for view in views], int(target[i]), pi=0.3) for i in range(6)]
        torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)
        single = [view[0] for view in views]
        assert GJS(pi=0.3)(single, target[0]).item() == pytest.approx(expected[0])
        soft = F.one_hot(target, K).double()
        torch.testing.assert_close(GJS(pi=0.3, reduction="none")(views, soft), value)
    assert torch.autograd.gradcheck(
        lambda a, b: GJS(pi=0.3)([a, b], target), (weak.requires_grad_(), strong.requires_grad_())
    )


def test_a_sum_of_gjs_takes_several_predictions() -> None:
    views, target = [draw(6, K), draw(6, K, seed=1)], labels(6, classes=K)
    both = (GJS(pi=0.1) + 2 * GJS(pi=0.5))(views, target)
    assert both.item() == pytest.approx((GJS(pi=0.1)(views, target) + 2 * GJS(pi=0.5)(views, target)).item())
    assert math.isfinite(both.item())
