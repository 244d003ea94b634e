"""Losses that change while they train, in the training loop."""

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
