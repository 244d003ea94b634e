"""How long a bench will take: from epochs that were timed, or from a few steps that are timed now."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from unswayed.bench.store import Store
from unswayed.bench.work import is_told, stackable
from unswayed.data import Data, Split
from unswayed.training import Diverged, Experiment, train, train_stacked
from unswayed.training.run import name_of_data

# A step is timed on at most so many examples, as large batches of large images may not fit in memory here.
_MOST = 32
_TIMED = 3
# Runs of a stack, which do little in a step, are timed together over several.
_STEPS, _RUNS = 20, 8


def kind(settings: Mapping[str, Any]) -> str:
    """Return what the time of an epoch hangs on: data, network, recipe, and whether the loss can be in a stack.

    >>> kind({"data": "digits", "model": "mlp", "recipe": {"epochs": 3, "batch_size": 128}, "loss": "ce"})
    'digits mlp batch_size=128'
    """
    recipe = {key: value for key, value in settings["recipe"].items() if key in _SLOW}
    alone = ["alone"] if is_told(settings["loss"]) else []
    return " ".join([settings["data"], settings["model"], *(f"{k}={v}" for k, v in recipe.items()), *alone])


_SLOW = ("batch_size", "optimizer", "l1", "clip_norm", "augment", "average", "precision")


def measured(store: Store, cells: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, float]:
    """Return the median of the seconds of an epoch for each kind of which a run, done or not, has some."""
    found: dict[str, list[float]] = {}
    for id, settings in cells:
        found.setdefault(kind(settings), []).extend(float(epoch["seconds"]) for epoch in store.epochs(id))
    return {name: statistics.median(seconds) for name, seconds in found.items() if seconds}


def left(store: Store, cells: Iterable[tuple[str, Mapping[str, Any]]], pace: Mapping[str, float]) -> float | None:
    """Return the seconds that the rest of some runs takes, one after the other; ``None`` if a pace is not known."""
    total = 0.0
    for id, settings in cells:
        if store.state(id).name == "done":
            continue
        if kind(settings) not in pace:
            return None
        total += pace[kind(settings)] * max(0, settings["recipe"]["epochs"] - len(store.epochs(id)))
    return total


def time_steps(one: Experiment, data: Data, threads: int | None = None) -> float:
    """Return the seconds of an epoch, as far as a few steps tell: its steps, and a third of one for as many tests.

    ``threads`` are those of the worker that will run it.

    >>> from unswayed.data import load
    >>> from unswayed.training import Recipe
    >>> time_steps(Experiment("digits", "clean", "linear", "ce", Recipe()), load("digits")) > 0
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        return _timed(one, data)
    finally:
        torch.set_num_threads(before)


def _timed(one: Experiment, data: Data) -> float:
    stacked = stackable(one) and data.train.inputs is not None
    batch = one.recipe.batch_size if stacked else min(one.recipe.batch_size, _MOST)
    size = min(_STEPS * batch if stacked else batch, len(data.train))
    few = replace(data, train=_first(data.train, size), tests={})
    plan = one.recipe.replace(epochs=_TIMED + 1, batch_size=batch)
    if stacked:
        name = name_of_data(few)
        runs = [replace(one, data=name, noise="given", recipe=plan, seed=i, order_seed=0) for i in range(_RUNS)]
        result = train_stacked(runs, few)[0]
        if isinstance(result, Diverged):
            raise result
    else:
        result = train(one.model, few, one.loss, plan, noise="given")
    # The first epoch also warms up what the others find warm.
    seconds = min(float(epoch["seconds"]) for epoch in result.epochs[1:])
    examples = len(data.train) + sum(len(split) for split in data.tests.values()) / 3
    return seconds * examples / size


def _first(split: Split, n: int) -> Split:
    inputs = None if split.inputs is None else split.inputs[:n]
    return replace(split, labels=split.labels[:n], inputs=inputs, index=None, human={})


def in_words(seconds: float) -> str:
    """Write a time.

    >>> in_words(42), in_words(1234), in_words(100_000)
    ('42 s', '21 min', '27 h 47 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
