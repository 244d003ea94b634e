"""Train one model: from data, noise, network, loss and recipe to a folder with the result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unswayed import models, noise
from unswayed.data import Data, Loader, augmentation
from unswayed.losses.base import Loss
from unswayed.losses.expression import loss as build_loss
from unswayed.noise import NoisyLabels
from unswayed.training.experiment import Experiment
from unswayed.training.folder import RunFolder
from unswayed.training.loop import Loop, seed_of
from unswayed.training.precision import FABRIC, has_convolutions, resolve
from unswayed.training.progress import Progress, percent
from unswayed.training.recipe import Recipe, recipe as named_recipe

# One stream of random numbers for each purpose, so that a change in one leaves the others as they are.
_INITIAL, _ORDER, _HELD_OUT = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Result:
    """What a run gave.

    ``epochs`` holds a record for each epoch; ``last``, ``best`` (by test accuracy, so an oracle's choice) and ``chosen``
    (by accuracy on held-out noisy labels; ``None`` without such) are three of them. ``model`` is the network as it was
    trained, with the weights of the last epoch; ``folder`` has those of the other two.
    """

    experiment: Experiment
    epochs: list[dict[str, Any]]
    noise: dict[str, Any]
    calibration: dict[str, Any] | None
    model: nn.Module
    folder: Path | None

    @property
    def last(self) -> dict[str, Any]:
        """The last epoch."""
        return self.epochs[-1]

    @property
    def best(self) -> dict[str, Any] | None:
        """The epoch of the highest test accuracy, the first of several."""
        return _highest(self.epochs, "test_accuracy")

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The epoch of the highest accuracy on held-out noisy labels, the first of several."""
        return _highest(self.epochs, "val_accuracy")

    def record(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "experiment": self.experiment.settings,
            "id": self.experiment.id,
            "noise": self.noise,
            "epochs": len(self.epochs),
            "last": self.last,
            "best": self.best,
            "chosen": self.chosen,
            "calibration": self.calibration,
        }

    def __str__(self) -> str:
        rows = [("last epoch", self.last), ("best epoch, by the test set", self.best)]
        rows += [("chosen by noisy validation", self.chosen)]
        lines = [str(self.experiment)]
        for label, record in rows:
            if record is not None:
                lines.append(
                    f"  {label:<28} epoch {record['epoch']:>3}   test {percent(record.get('test_accuracy')):>8}   "
                    f"memorised {percent(record['memorised']):>8}"
                )
        return "\n".join(lines)


def _highest(epochs: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    return max(epochs, key=lambda record: record[key]) if epochs and key in epochs[0] else None


def train(
    model: nn.Module | str,
    data: Data,
    loss: Loss | nn.Module | str = "vce",
    recipe: Recipe | str | None = None,
    *,
    noise: str | NoisyLabels = "given",
    seed: int = 0,
    noise_seed: int | None = None,
    validation: float = 0.0,
    out: str | Path | None = None,
    device: str = "auto",
    devices: int = 1,
    workers: int = 0,
    checkpoint_every: float = 30.0,
    progress: Progress | None = None,
) -> Result:
    """Train a classifier on labels that are partly wrong.

    Args:
        model: a network, or the spec of one (``"cnn8"``), which is built with a seed of its own.
        data: from :func:`unswayed.data.load` or :func:`unswayed.data.wrap`.
        loss: a loss, its spec, or any module that is called like ``torch.nn.CrossEntropyLoss``.
        recipe: a :class:`Recipe`, or the name of one; by default ``Recipe()``.
        noise: a noise spec (``"symmetric(0.4)"``), noisy labels, or ``"given"``: the data's labels as they are.
        seed: of initial weights, order, augmentation and dropout.
        noise_seed: of the noise and of the examples held out; ``seed`` unless given.
        validation: share of the training examples that is held out, with its noisy labels, to choose an epoch.
        out: folder of the run. There the run goes on if it was stopped, and is not done again if it is done.
        device: ``auto``, ``cpu``, ``cuda`` or another accelerator that Lightning Fabric knows.
        devices: how many, each with a process of its own.
        workers: processes that read images from disk, for data that is not in memory.
        checkpoint_every: seconds between checkpoints.
        progress: who is told how it goes; by default nobody.

    >>> from unswayed.data import load
    >>> result = train("mlp(hidden=32)", load("digits"), "vce", Recipe(epochs=3), noise="symmetric(0.4)")
    >>> len(result.epochs), 0 < result.last["test_accuracy"] < 1
    (3, True)
    """
    chosen = Recipe() if recipe is None else named_recipe(recipe) if isinstance(recipe, str) else recipe
    noisy = _noisy_labels(data, noise, seed if noise_seed is None else noise_seed)
    criterion = build_loss(loss) if isinstance(loss, (str, Loss)) else loss
    experiment = Experiment(
        data=data.name,
        noise=str(noisy.spec),
        model=models.canonical(model) if isinstance(model, str) else _name_of(model),
        loss=str(criterion) if isinstance(criterion, Loss) else repr(criterion),
        recipe=chosen,
        seed=seed,
        noise_seed=noisy.seed,
        validation=validation,
    )
    folder = None if out is None else RunFolder(out, experiment)
    return _Run(experiment, data, noisy, model, criterion, folder).go(
        device, devices, workers, checkpoint_every, progress or Progress(quiet=True)
    )
