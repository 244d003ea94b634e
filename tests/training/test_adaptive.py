"""Losses that want more than logits and labels, in the training loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unswayed
from unswayed import Loss
from unswayed.data import Data, wrap
from unswayed.training import Recipe, train
from unswayed.training.loop import Loop

SPECS = [
    "ogc(loss=ce, budget=1, every=3, window=32)",
    "elr(loss=vce(a=1), beta=0.5, weight=1)",
    "nce + truncated_gce(q=0.7, k=0.4, start=1, every=1)",
    "after(loss=ce, then=elr(loss=label_smoothing(r=-0.2), weight=1), epoch=2)",
]
PLAN = Recipe(epochs=4, batch_size=16, lr=0.3)


def points() -> Data:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(100) % 4
    x = torch.randn(4, 6, generator=generator)[labels] + 0.7 * torch.randn(100, 6, generator=generator)
    return wrap((x[:70], labels[:70]), (x[70:], labels[70:]))


def network() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))


class Killed(BaseException):
    pass


def run(spec: str, out: Path | None = None) -> tuple[Loss, Any]:
    criterion = unswayed.loss(spec)
    result = train(
        network(), points(), criterion, PLAN, noise="symmetric(0.4)", seed=3, out=out, checkpoint_every=0
    )  # fmt: skip
    return criterion, result


def state(criterion: Loss) -> dict[str, Any]:
    return {
        key: value.tolist() if isinstance(value, Tensor) else value for key, value in criterion.state_dict().items()
    }


@pytest.mark.parametrize("spec", SPECS)
def test_a_run_that_was_killed_ends_with_the_same_memory(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, expected = run(spec)
    real = Loop._step
    for at in (2, 7, 13):

        def step(self: Loop, x: Tensor, index: Tensor, at: int = at) -> None:
            if self.epoch * len(self.train) + self.step == at:
                raise Killed
            real(self, x, index)

        monkeypatch.setattr(Loop, "_step", step)
        with pytest.raises(Killed):
            run(spec, tmp_path)
    monkeypatch.setattr(Loop, "_step", real)
    killed, found = run(spec, tmp_path)
    assert state(killed) == state(whole)
    assert all(torch.equal(value, expected.weights()[key]) for key, value in found.weights().items())
    for a, b in zip(found.epochs, expected.epochs, strict=True):
        assert a | {"seconds": 0} == b | {"seconds": 0}


def test_the_loop_tells_index_epoch_and_learning_rate() -> None:
    told: list[tuple[Tensor, int, float]] = []

    class Asking(nn.Module):
        def forward(self, logits: Tensor, target: Tensor, lr: float, epoch: int, index: Tensor) -> Tensor:
            told.append((index, epoch, lr))
            return nn.functional.cross_entropy(logits, target)

    train(network(), points(), Asking(), PLAN.replace(schedule="milestones([2], 0.5)"))
    assert [epoch for _, epoch, _ in told] == [epoch for epoch in range(4) for _ in range(5)]
    assert [lr for _, epoch, lr in told] == [0.3 if epoch < 2 else 0.15 for _, epoch, _ in told]
    assert sorted(torch.cat([index for index, _, _ in told[:5]]).tolist()) == list(range(70))


def test_after_trains_as_its_first_loss_and_then_as_its_second() -> None:
    def losses(spec: str) -> list[float]:
        return [epoch["train_loss"] for epoch in run(spec)[1].epochs]

    both, first = losses("after(loss=vce(a=4), then=mae, epoch=2)"), losses("vce(a=4)")
    assert both[:2] == first[:2]
    assert all(value < 0 for value in first)
    assert all(value > 0 for value in both[2:])


def pictures() -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (50, 3, 8, 8), generator=generator, dtype=torch.uint8)
    return wrap((x, torch.arange(50) % 4), (x[:9], torch.arange(9) % 4))


def test_gjs_sees_two_augmentations_of_each_example() -> None:
    batches: list[Tensor] = []

    class Net(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                batches.append(x.clone())
            out: Tensor = super().forward(x)
            return out

    torch.manual_seed(1)
    net = Net(nn.Flatten(), nn.Linear(192, 4))
    start = {key: value.clone() for key, value in net.state_dict().items()}
    plan = Recipe(epochs=1, batch_size=50, lr=0.1, momentum=0, clip_norm=0, augment="crop(2) + flip")
    result = train(net, pictures(), "gjs(pi=0.3)", plan)
    (x,) = batches
    weak, strong = x.unflatten(0, (2, 50)).unbind(0)
    assert not torch.equal(weak, strong)
    # The one step, by hand; the order of the examples is that of a run with one view.
    batches.clear()
    single = Net(nn.Flatten(), nn.Linear(192, 4))
    order: list[Tensor] = []

    class Asking(nn.Module):
        def forward(self, logits: Tensor, target: Tensor, index: Tensor) -> Tensor:
            order.append(target)
            return nn.functional.cross_entropy(logits, target)

    train(single, pictures(), Asking(), plan)
    assert torch.equal(batches[0], weak)
    net.load_state_dict(start)
    net.eval()
    value = unswayed.GJS(pi=0.3)([net(weak), net(strong)], order[0])
    value.backward()
    assert result.last["train_loss"] == pytest.approx(value.item(), rel=1e-5)
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(result.weights()[key], start[key] - 0.1 * parameter.grad)


def test_a_sum_in_which_not_all_take_several_views_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one part compares 2 views of each example, .* write gjs\(views=1\)"):
        train("linear", pictures(), "ce + gjs", Recipe(epochs=1, augment="flip"))
    for spec in ("ce + gjs(views=1)", "0.5*gjs(pi=0.1) + gjs"):
        train("linear", pictures(), spec, Recipe(epochs=1, augment="flip"))


def test_without_augmentation_one_view_is_enough() -> None:
    plan = Recipe(epochs=2, augment="none")
    found, expected = (train("linear", pictures(), spec, plan) for spec in ("ce + gjs(pi=0.3)", "ce + js(pi=0.3)"))
    assert found.last["train_loss"] == pytest.approx(expected.last["train_loss"], rel=1e-5)


@pytest.mark.slow
def test_each_beats_cross_entropy_on_digits_with_wrong_labels() -> None:
    from unswayed.data import load
    from unswayed.training import recipe

    data, plan = load("digits"), recipe("digits").replace(epochs=50)

    def accuracies(spec: str) -> list[float]:
        runs = (train("mlp(hidden=256)", data, spec, plan, noise="symmetric(0.4)", seed=seed) for seed in (0, 1, 2))
        return [run.last["test_accuracy"] for run in runs]

    plain = accuracies("ce")
    assert max(plain) < 0.85
    for spec in (
        "ogc(budget=5)",
        "elr",
        "elr(loss=vce(a=1), beta=0.9, weight=0.3)",
        "truncated_gce(start=10, every=5)",
        "after(ce, then=label_smoothing(r=-1), epoch=5)",
        "after(vce(a=1), then=label_smoothing(vce(a=1), r=-0.2), epoch=25)",
    ):
        found = accuracies(spec)
        # The largest spread of one loss over seeds is a few hundredths.
        assert min(found) > max(plain) + 0.05, (spec, found, plain)
