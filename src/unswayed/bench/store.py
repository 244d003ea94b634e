"""The folder of a bench: a folder for each run, called by its experiment's id, and which cells there are to be."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import time
import traceback
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unswayed._files import write_json
from unswayed.bench.claims import Claim, owner
from unswayed.bench.grid import Grid

FORMAT = 1
_GRIDS = "grids"
_ERROR = "error.json"


@dataclass(frozen=True)
class Planned:
    """A cell as a bench's folder knows it: where it stands in a table, and the experiment's id and settings."""

    data: str
    method: str
    column: str
    seed: int
    id: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """A grid as a bench's folder knows it; ``changes`` are the settings that were changed in all its cells."""

    name: str
    protocol: str
    reading: str
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    cells: tuple[Planned, ...]


@dataclass(frozen=True)
class State:
    """How far a run is: ``done``, ``failed``, ``running``, ``begun`` or ``open``; and what is to be said of it."""

    name: str
    detail: str = ""


def plan_of(grid: Grid, names: Mapping[str, str]) -> Plan:
    """Return a grid's plan, where ``names`` are those of its data in experiments.

    >>> from unswayed.bench import paper_grid
    >>> plan = plan_of(paper_grid("paper/ablation"), {"cifar10": "cifar10", "cifar100": "cifar100"})
    >>> len(plan.cells), plan.cells[0].id
    (96, '...')
    """
    cells = []
    for cell in grid.cells:
        one = cell.experiment(names[cell.data])
        cells.append(Planned(cell.data, cell.method, cell.column, cell.seed, one.id, one.settings))
    return Plan(grid.name, grid.protocol, grid.reading, grid.changes, grid.notes, tuple(cells))


class Store:
    """Runs under one folder, and the plans they belong to.

    >>> Store("results/of/nobody").plans()
    []
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def folder(self, id: str) -> Path:
        """Return the folder of a run."""
        return self.path / id

    def add(self, plan: Plan) -> None:
        """Keep a plan, beside those that are there."""
        content = {
            "format": FORMAT, "name": plan.name, "protocol": plan.protocol, "as": plan.reading,
            "changes": list(plan.changes), "notes": list(plan.notes), "cells": [vars(cell) for cell in plan.cells],
        }  # fmt: skip
        # Each plan has a file of its own, so that two benches never write the same one with different content.
        mark = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        path = self.path / _GRIDS / f"{mark}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, content)

    def plans(self) -> list[Plan]:
        """Return the plans; those of one name, protocol, reading of the paper and changes as one."""
        found: dict[tuple[str, str, str, tuple[str, ...]], tuple[tuple[str, ...], dict[Any, Planned]]] = {}
        for path in sorted((self.path / _GRIDS).glob("*.json")):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                form, changes = content["format"], tuple(content["changes"])
                key = content["name"], content["protocol"], content["as"], changes
                cells = [Planned(**cell) for cell in content["cells"]]
                notes = tuple(content["notes"])
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{path} cannot be read: it is no plan of a bench, or it was damaged") from None
            if form > FORMAT:
                raise ValueError(f"{path} was written by a newer version of unswayed; update this one")
            _, known = found.setdefault(key, (notes, {}))
            for cell in cells:
                known.setdefault((cell.id, cell.data, cell.method, cell.column, cell.seed), cell)
        return [Plan(*key, notes, tuple(known.values())) for key, (notes, known) in found.items()]

    def cells(self) -> dict[str, Planned]:
        """Return the runs of all plans, by their ids."""
        return {cell.id: cell for plan in self.plans() for cell in plan.cells}

    def state(self, id: str) -> State:
        """Return how far a run is."""
        folder = self.folder(id)
        if (folder / "result.json").is_file():
            return State("done")
        someone = owner(folder)
        if someone is not None:
            return State("running", someone)
        error = self.error(id)
        if error is not None:
            return State("failed", str(error["error"]))
        epochs = self.epochs(id)
        if epochs or (folder / "checkpoint.pt").is_file():
            return State("begun", f"{len(epochs)} epochs")
        return State("open")

    def epochs(self, id: str) -> list[dict[str, Any]]:
        """Return the records of the epochs of a run, as far as it is."""
        try:
            lines = (self.folder(id) / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        except (OSError, ValueError):
            return []

    def error(self, id: str) -> dict[str, Any] | None:
        """Return what :meth:`fail` wrote."""
        try:
            found = json.loads((self.folder(id) / _ERROR).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "error" in found else None

    def fail(self, id: str, error: BaseException | str) -> None:
        """Keep the error of a run in its folder."""
        folder = self.folder(id)
        folder.mkdir(parents=True, exist_ok=True)
        trace = traceback.format_exception(error) if isinstance(error, BaseException) else []
        kind = type(error).__name__ if isinstance(error, BaseException) else ""
        write_json(
            folder / _ERROR,
            {
                "error": str(error) or kind, "kind": kind, "traceback": "".join(trace), "host": socket.gethostname(),
                "time": time.strftime("%Y-%m-%d %H:%M:%S%z"),
            },
        )  # fmt: skip

    def claim(self, id: str) -> Claim | None:
        """Claim a run that is not done; ``None`` if it is, or another one has it. An old error is forgotten."""
        if self.state(id).name == "done":
            return None
        claim = Claim.take(self.folder(id))
        if claim is None:
            return None
        # Who had it before may just have come to its end.
        if (self.folder(id) / "result.json").is_file():
            claim.release()
            return None
        (self.folder(id) / _ERROR).unlink(missing_ok=True)
        return claim


def merge(sources: Iterable[str | Path], out: str | Path) -> Iterator[tuple[str, str]]:
    """Copy the runs and plans of several benches into one folder; yield each run's id and what was done with it.

    A run that is done takes the place of one that is not; of two unfinished ones, the one with more epochs stays. What
    somebody writes at this moment is left out.
    """
    target = Store(out)
    stores = [Store(source) for source in sources]
    for store in stores:
        if not (store.path / _GRIDS).is_dir():
            raise ValueError(f"{store.path} is no folder of a bench: it has no {_GRIDS}")
        if store.path.resolve() == target.path.resolve():
            raise ValueError(f"{store.path} is to be merged into itself; give another folder with --out")
    for store in stores:
        for plan in store.plans():
            target.add(plan)
        for id in store.cells():
            theirs, ours = store.state(id), target.state(id)
            if theirs.name == "open":
                continue
            if "running" in (theirs.name, ours.name):
                yield id, "left out: it is being run"
                continue
            if not _further(store, theirs, target, ours, id):
                yield id, "was there already"
                continue
            part = target.path / f".{id}.{uuid.uuid4().hex[:8]}.part"
            # Lock, owner and half-written files belong to the process that wrote them.
            shutil.copytree(store.folder(id), part, ignore=shutil.ignore_patterns(".*"))
            old = target.path / f".{id}.{uuid.uuid4().hex[:8]}.old.part"
            if target.folder(id).exists():
                target.folder(id).rename(old)
            part.rename(target.folder(id))
            shutil.rmtree(old, ignore_errors=True)
            yield id, "copied"


def _further(store: Store, theirs: State, target: Store, ours: State, id: str) -> bool:
    """Whether their run is further than ours."""
    order = ("open", "failed", "begun", "done")
    if theirs.name == ours.name == "begun":
        return len(store.epochs(id)) > len(target.epochs(id))
    return order.index(theirs.name) > order.index(ours.name)
