"""One piece of a bench's work: some cells on one data set, claimed, run and written down."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch

from unswayed.bench.claims import beating
from unswayed.bench.sources import Sources
from unswayed.bench.store import Store
from unswayed.data import Data
from unswayed.losses.base import what_it_wants
from unswayed.losses.expression import loss as build_loss
from unswayed.models import ModelSpec
from unswayed.training import Diverged, Experiment, train, train_stacked

# Runs of a task that are trained as a stack: enough for stacks of a good size, few enough for all workers to have some.
_STACKED = 24


@dataclass(frozen=True)
class Task:
    """Experiments on the data that the grid calls ``data``; several are trained as a stack."""

    data: str
    experiments: tuple[Experiment, ...]
    stacked: bool


@dataclass(frozen=True)
class Outcome:
    """What came of one cell: ``done``, ``failed`` (and why), or ``elsewhere``: done or being run by others."""

    id: str
    name: str
    seconds: float
    detail: str = ""


def tasks(experiments: Iterable[tuple[str, Experiment]], workers: int = 1) -> list[Task]:
    """Return experiments (with what the grid calls their data) as tasks; those that can be are stacked.

    Stacks take runs of one order of the data, which share their batches; with several workers, all get a share.

    >>> runs = [Experiment("digits", "clean", "linear", loss) for loss in ("ce", "mae")]
    >>> [len(task.experiments) for task in tasks(("digits", run) for run in runs)]
    [2]
    """
    single: list[Task] = []
    groups: dict[tuple[str, str, str, float, int], list[Experiment]] = {}
    for data, one in experiments:
        if not stackable(one):
            single.append(Task(data, (one,), False))
            continue
        key = (data, one.model, repr(one.recipe.settings), one.validation, one.order)
        groups.setdefault(key, []).append(one)
    stacked: list[Task] = []
    for key, group in groups.items():
        size = min(_STACKED, -(-len(group) // workers))
        stacked += [Task(key[0], tuple(group[i : i + size]), True) for i in range(0, len(group), size)]
    return stacked + single


def stackable(one: Experiment) -> bool:
    """Whether a run can be trained in a stack, if its data is in memory.

    >>> stackable(Experiment("digits", "clean", "cnn4", "ce"))
    False
    """
    head = ModelSpec.parse(one.model).name in ("linear", "mlp")
    return head and one.recipe.augment == "none" and not is_told(one.loss)


@cache
def is_told(loss: str) -> bool:
    """Whether a loss wants to be told more than logits and labels, which a stack does not do.

    >>> is_told("ogc(loss=ce)"), is_told("ce")
    (True, False)
    """
    return bool(what_it_wants(build_loss(loss)))


def work(task: Task, sources: Sources, store: Store, device: str = "auto") -> list[Outcome]:
    """Do a task; an error ends the cell that it belongs to, and is kept in its folder."""
    claims = {one.id: store.claim(one.id) for one in task.experiments}
    mine = [one for one in task.experiments if claims[one.id] is not None]
    outcomes = [Outcome(one.id, "elsewhere", 0.0) for one in task.experiments if claims[one.id] is None]
    started = time.monotonic()
    with beating(claim for claim in claims.values() if claim is not None):
        found = _run(task, mine, sources, store, device)
        share = (time.monotonic() - started) / max(1, len(mine))
        for one, error in zip(mine, found):
            if error is not None:
                store.fail(one.id, error)
            outcomes.append(
                Outcome(one.id, "done" if error is None else "failed", share, "" if error is None else _line(error))
            )
    return outcomes


def _run(task: Task, mine: Sequence[Experiment], sources: Sources, store: Store, device: str) -> list[Exception | None]:
    """Run experiments, and return the error of each, or ``None``."""
    if not mine:
        return []
    try:
        data = sources.load(task.data)
    except Exception as error:
        return [error] * len(mine)
    if task.stacked and data.train.inputs is not None:
        return _together(mine, data, store, device)
    # Images that are read from disk are read by as many processes as there are processors for this worker but one.
    readers = 0 if data.train.inputs is not None else torch.get_num_threads() - 1
    found: list[Exception | None] = []
    for one in mine:
        try:
            train(
                one.model, data, one.loss, one.recipe, noise=one.noise, seed=one.seed, noise_seed=one.noise_seed,
                order_seed=one.order_seed, validation=one.validation, out=store.folder(one.id), device=device,
                workers=readers,
            )  # fmt: skip
            found.append(None)
        except Exception as error:
            found.append(error)
    return found


def _together(mine: Sequence[Experiment], data: Data, store: Store, device: str) -> list[Exception | None]:
    try:
        results = train_stacked(mine, data, out=store.path, device=device)
    except Exception as error:
        if len(mine) == 1:
            return [error]
        # One of them cannot be run, and must not stop the others.
        return [found for one in mine for found in _together([one], data, store, device)]
    return [result if isinstance(result, Diverged) else None for result in results]


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
