"""Many small models at once: runs of ``linear`` and ``mlp`` heads as one batched computation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from unswayed.data import Data
from unswayed.losses.base import Loss
from unswayed.losses.expression import loss as build_loss
from unswayed.models import ModelSpec
from unswayed.models import build as build_model
from unswayed.noise import NoisyLabels
from unswayed.training.devices import where
from unswayed.training.experiment import Experiment
from unswayed.training.folder import RunFolder
from unswayed.training.loop import seed_of
from unswayed.training.progress import Progress
from unswayed.training.run import INITIAL, Result, finished, held_out, make_noise, name_of_data
from unswayed.training.stack import Features, Stack
from unswayed.training.stopping import Diverged

# Bytes of weights, gradients and momenta of a stack, which should stay in the processor's cache.
_CACHE = 16 << 20
_MOST = 64
# From so many runs on that see the examples in one order, they get a stack of their own, which is faster.
_FEW = 4
# Labels of a stack: its runs' times the examples'.
_LABELS = 1 << 24


def train_stacked(
    experiments: Iterable[Experiment],
    data: Data,
    *,
    out: str | Path | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> list[Result | Diverged]:
    """Train many ``linear`` or ``mlp`` classifiers as few batched models.

    Each run has its own noisy labels, loss, initial weights and order of the data, and ends where
    :func:`unswayed.training.train` would, up to rounding. Runs of one model, recipe and share of validation are
    stacked; those that see the data in one order (same ``seed``, or same ``order_seed``) read each batch once for all
    of them, which is faster. The results come in the order of the experiments. A run that diverges does not stop the
    others: in its place stands the error.

    Args:
        experiments: what to run, as :func:`unswayed.training.experiment_of` makes them.
        data: their data, in memory.
        out: folder of the runs' folders, each called by its experiment's id, of the form that ``train`` writes. Runs
            that are done are not done again. Folders are written when a stack ends; a stopped one starts anew.
        device: as for ``train``.
        progress: who is told how it goes: the mean over the runs of a stack.

    >>> from unswayed.data import load
    >>> from unswayed.training import Recipe, experiment_of
    >>> data, recipe = load("digits"), Recipe(epochs=3)
    >>> runs = [experiment_of("linear", data, loss, recipe, seed=seed) for loss in ("ce", "vce") for seed in (0, 1)]
    >>> [len(result.epochs) for result in train_stacked(runs, data)]
    [3, 3, 3, 3]
    """
    place = where(device)
    name, labels = name_of_data(data), {}
    runs: dict[str, Run] = {}
    experiments = list(experiments)
    for experiment in experiments:
        assert experiment.noise_seed is not None
        key = experiment.noise, experiment.noise_seed
        if key not in labels:
            labels[key] = make_noise(data, *key)
        if experiment.id not in runs:
            runs[experiment.id] = Run.of(experiment, data, name, labels[key], out)
    features = Features.of(data, place)
    shown = progress or Progress(quiet=True)
    for stack in _stacks(list(runs.values())):
        try:
            waiting = [run for run in stack if not run.open()]
            if waiting:
                Stack(waiting, features, place).run(shown)
        finally:
            for run in stack:
                if run.folder is not None:
                    run.folder.close()
    return [runs[experiment.id].outcome for experiment in experiments]


@dataclass(eq=False)
class Run:
    """One run of a stack: what it is made of, and what has come of it."""

    experiment: Experiment
    loss: Loss
    noisy: NoisyLabels
    network: nn.Module
    folder: RunFolder | None
    rows: NDArray[np.int64] | None
    held_out: NDArray[np.int64] | None
    epochs: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    calibration: dict[str, Any] | None = None
    _outcome: Result | Diverged | None = None

    @classmethod
    def of(cls, experiment: Experiment, data: Data, name: str, noisy: NoisyLabels, out: str | Path | None) -> Run:
        if experiment.data != name:
            raise ValueError(f"{experiment}: the data given is {name}")
        model = ModelSpec.parse(experiment.model)
        if model.name not in ("linear", "mlp"):
            raise ValueError(f"{model} cannot be trained in a stack: only linear and mlp can; use train()")
        if experiment.recipe.augment != "none":
            raise ValueError(f"augment={experiment.recipe.augment!r} is not possible in a stack; use train()")
        network = build_model(
            model, num_classes=data.num_classes, in_shape=data.in_shape, seed=seed_of(experiment.seed, INITIAL)
        )
        folder = None if out is None else RunFolder(Path(out) / experiment.id, experiment)
        loss, parts = build_loss(experiment.loss), held_out(len(data.train), experiment)
        return cls(experiment, loss, noisy, network, folder, *parts)

    def open(self) -> bool:
        """Open the folder; whether the run is done."""
        if self.folder is not None:
            self.folder.open(self.noisy.manifest)
            if self.folder.done:
                self._outcome = finished(self.experiment, self.noisy, self.network, self.folder)
        return self._outcome is not None

    @property
    def outcome(self) -> Result | Diverged:
        assert self._outcome is not None
        return self._outcome

    @property
    def running(self) -> bool:
        return self._outcome is None

    @property
    def order(self) -> tuple[int, int | None]:
        """What the order of the examples hangs on."""
        e = self.experiment
        return e.order, e.noise_seed if e.validation else None

    @property
    def kind(self) -> tuple[str, str, float]:
        """What runs of one stack have in common."""
        e = self.experiment
        return str(ModelSpec.parse(e.model)), repr(sorted(e.recipe.settings.items())), e.validation

    @property
    def size(self) -> int:
        """Bytes of weights, gradients and momenta."""
        return 3 * sum(p.numel() * p.element_size() for p in self.network.parameters())

    def layers(self) -> list[nn.Linear]:
        return [module for module in self.network.modules() if isinstance(module, nn.Linear)]

    def fail(self, error: Diverged) -> None:
        self._outcome = error

    def finish(self, computed: dict[str, Any]) -> None:
        """Write the folder: the weights that are kept, the epochs, and last the result."""
        folder, kept = (None, self.kept) if self.folder is None else (self.folder.path, {})
        result = Result(
            self.experiment, self.epochs, self.noisy, self.calibration, self.network.eval(), folder, kept,
        )  # fmt: skip
        if self.folder is not None:
            self.folder.write(self.epochs, self.kept)
            self.folder.finish(result.record() | computed)
            self.kept = {}
        self._outcome = result


def _stacks(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in groups that can be trained together; runs of one order together, where they are several."""
    kinds: dict[Any, dict[Any, list[Run]]] = {}
    for run in runs:
        kinds.setdefault(run.kind, {}).setdefault(run.order, []).append(run)
    stacks = []
    for orders in kinds.values():
        groups = [group for group in orders.values() if len(group) >= _FEW]
        groups.append([run for group in orders.values() if len(group) < _FEW for run in group])
        for group in groups:
            if group:
                first = group[0]
                most = max(1, min(_MOST, _CACHE // first.size, _LABELS // len(first.noisy)))
                count = -(-len(group) // most)
                stacks += [group[len(group) * i // count : len(group) * (i + 1) // count] for i in range(count)]
    return stacks
