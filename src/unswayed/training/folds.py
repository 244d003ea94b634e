"""Cross-validation: probabilities for each example from a classifier that has not seen it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.data import Data
from unswayed.losses.base import Loss
from unswayed.noise import NoisyLabels
from unswayed.spec import Param
from unswayed.training.devices import where
from unswayed.training.progress import Progress
from unswayed.training.recipes import Recipe
from unswayed.training.recipes import recipe as named_recipe
from unswayed.training.run import experiment_of, make_noise, name_of_data
from unswayed.training.stack import Features, Stack
from unswayed.training.stacked import Run
from unswayed.training.stopping import Diverged

_FOLDS = Param("folds", 5, "parts of the data, each left out once", kind="integer", low=2)
_CHUNK = 4096
_STEPS = 2000


def out_of_sample(
    data: Data,
    loss: Loss | str | None = None,
    model: str = "mlp(hidden=256)",
    recipe: Recipe | str | None = None,
    *,
    noise: str | NoisyLabels = "given",
    folds: int = 5,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Return class probabilities ``(N, K)`` of the training examples, each from a model that has not seen it.

    The examples are dealt into folds, each noisy class as evenly as it goes; for each fold a model is trained on all
    others. The models are one stack (see :func:`train_stacked`).

    Args:
        data: features or small images, in memory; its test sets are not looked at.
        loss: a loss or its spec; by default ``vce(a=10/K)``, which is robust and yet learns: where nothing is known,
            that is where ``p = 1/K``, it learns as fast for any number of classes.
        model: ``linear`` or ``mlp``, with parameters like ``mlp(hidden=256)``.
        recipe: a :class:`Recipe`, or the name of one; by default ``features`` with 15 epochs, or as many (up to 200) as
            make 2000 steps.
        noise: as for :func:`train`: a spec, noisy labels, or ``"given"``.
        folds: how many; from 2 to the number of examples.
        seed: of the noise, the folds, the initial weights and the order.
        device: as for :func:`train`.
        progress: who is told how it goes.

    >>> from unswayed.data import load
    >>> out_of_sample(load("digits"), model="linear", recipe=Recipe(epochs=3), folds=3).shape
    (1437, 10)
    """
    folds = _FOLDS.check("out_of_sample", folds)
    data = replace(data, tests={})
    if folds > len(data.train):
        raise ValueError(f"folds={folds} is not possible: there are {len(data.train)} examples")
    if loss is None:
        loss = f"vce(a={10 / data.num_classes:g})"
    if recipe is None:
        usual = named_recipe("features")
        steps = -(-len(data.train) // usual.batch_size)
        recipe = usual.replace(epochs=min(200, max(15, -(-_STEPS // steps))))
    noisy, place = make_noise(data, noise, seed), where(device)
    fold, name = _deal(noisy.labels, folds, seed), name_of_data(data)
    runs = []
    for left_out in range(folds):
        experiment = experiment_of(model, data, loss, recipe, noise=noisy, seed=seed, order_seed=left_out)
        run = Run.of(experiment, data, name, noisy, None)
        run.rows = np.flatnonzero(fold != left_out)
        runs.append(run)
    # The runs of a stack take equally many steps: where folds differ in size, by one, the larger rests give one away.
    least = min(len(run.rows) for run in runs if run.rows is not None)
    for run in runs:
        assert run.rows is not None
        run.rows = run.rows[len(run.rows) - least :]
    features = Features.of(data, place)
    Stack(runs, features, place).run(progress or Progress(quiet=True))
    found = np.empty((len(fold), data.num_classes), np.float32)
    for left_out, run in enumerate(runs):
        if isinstance(run.outcome, Diverged):
            raise run.outcome
        network: Any = run.outcome.model.to(place)
        with torch.no_grad():
            for rows in torch.split(torch.from_numpy(np.flatnonzero(fold == left_out)), _CHUNK):
                logits = network(features.train[rows.to(place)])
                found[rows.numpy()] = torch.softmax(logits.float(), 1).cpu().numpy()
    return found


def _deal(labels: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Deal the examples out, class by class, each class in random order; sizes differ by one at most."""
    order = np.random.default_rng([seed, folds]).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(len(labels), np.int64)
    fold[order] = np.arange(len(labels)) % folds
    return fold
