"""What a report knows of runs, and which of them may be averaged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unswayed.data.known import KNOWN

_SEEDS = ("seed", "noise_seed")


@dataclass(frozen=True)
class Run:
    """One finished run, as plain values: ``record`` is what ``result.json`` holds, ``epochs`` the table of its epochs.

    >>> epoch = {"epoch": 1, "test_accuracy": 0.5}
    >>> Run({"experiment": {"loss": "ce", "seed": 3}, "last": epoch}, [epoch]).loss
    'ce'
    """

    record: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, folder: str | Path) -> Run:
        """Read the folder of a run that is done."""
        folder = Path(folder)
        try:
            record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            epochs = [json.loads(line) for line in (folder / "epochs.jsonl").read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError as error:
            missing = Path(error.filename).name
            raise ValueError(
                f"{folder} holds no finished run: there is no {missing}; finish it, or leave it out"
            ) from None
        except ValueError:
            raise ValueError(f"{folder} cannot be read as JSON; it is no run of unswayed, or it was damaged") from None
        if not isinstance(record, dict) or not isinstance(record.get("experiment"), dict):
            raise ValueError(f"{folder}/result.json is not the result of a run of unswayed")
        if not epochs or len(epochs) != record.get("epochs"):
            raise ValueError(
                f"{folder}/epochs.jsonl has {len(epochs)} epochs, where result.json speaks of {record.get('epochs')}; "
                "it was damaged: delete the folder and run it again"
            )
        return cls(record, epochs)

    @property
    def experiment(self) -> Mapping[str, Any]:
        """The settings: data, noise, model, loss, recipe, seeds."""
        settings: Mapping[str, Any] = self.record["experiment"]
        return settings

    @property
    def loss(self) -> str:
        """The spec of the loss."""
        return str(self.experiment["loss"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seed of the run, seed of the noise."""
        return tuple(self.experiment.get(name, 0) for name in _SEEDS)

    @property
    def noise(self) -> Mapping[str, Any]:
        """The manifest of the noisy labels."""
        return self.record.get("noise") or {}

    def value(self, at: str, name: str) -> float | None:
        """Return what was measured at the ``last`` epoch, the ``best`` (by the test set) or the ``chosen`` one."""
        found = (self.record.get(at) or {}).get(name)
        return None if found is None else float(found)


@dataclass(frozen=True)
class Summary:
    """Some values, their mean and their standard deviation (of a sample: ``ddof`` is 1; ``None`` of a single value).

    >>> print(Summary((0.93, 0.95)), Summary((0.93,)))
    94.00 ± 1.41 93.00
    """

    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """How many."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return math.fsum(self.values) / self.n

    @property
    def std(self) -> float | None:
        """The standard deviation."""
        if self.n < 2:
            return None
        mean = self.mean
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (self.n - 1))

    def __str__(self) -> str:
        """Write mean and standard deviation in percent."""
        return f"{100 * self.mean:.2f}" + ("" if self.std is None else f" ± {100 * self.std:.2f}")


@dataclass(frozen=True)
class Setting:
    """Runs that differ in their seeds alone; only these are averaged."""

    loss: str
    runs: tuple[Run, ...]

    def summary(self, at: str, name: str) -> Summary | None:
        """Return the mean over the runs that have such a value; ``None`` where none has."""
        values = [value for run in self.runs if (value := run.value(at, name)) is not None]
        return Summary(tuple(values)) if values else None

    def curve(self, name: str) -> list[Summary | None]:
        """Return the mean over the runs at each epoch."""
        columns = zip(*(run.epochs for run in self.runs), strict=True)
        found = [[float(record[name]) for record in records if record.get(name) is not None] for records in columns]
        return [Summary(tuple(values)) if values else None for values in found]


@dataclass(frozen=True)
class Group:
    """Settings that differ in the loss alone, and so stand in one table.

    ``shared`` holds what they have in common: data, noise, model, recipe, validation.
    """

    shared: Mapping[str, Any]
    settings: tuple[Setting, ...]

    @property
    def runs(self) -> list[Run]:
        """All runs of all settings."""
        return [run for setting in self.settings for run in setting.runs]

    @property
    def title(self) -> str:
        """Data, noise and model."""
        return f"{self.shared['data']}, {self.shared['noise']}, {self.shared['model']}"

    @property
    def draws(self) -> list[Mapping[str, Any]]:
        """The manifests of the noisy labels, each once."""
        found = {run.experiment.get("noise_seed", 0): run.noise for run in self.runs}
        return [manifest for _, manifest in sorted(found.items()) if manifest]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers; none where their number is unknown."""
        known = KNOWN.get(str(self.shared["data"]))
        size = max((int(manifest.get("num_classes") or 0) for manifest in self.draws), default=0)
        if known is not None and size in (0, known.num_classes) and known.classes:
            return known.classes
        return tuple(map(str, range(size)))


def grouped(runs: Iterable[Run]) -> list[Group]:
    """Sort runs into tables, settings and seeds, in the order in which each is first met.

    >>> epoch = {"epoch": 1, "test_accuracy": 0.5}
    >>> one = {"data": "digits", "noise": "clean", "model": "mlp", "seed": 0}
    >>> runs = [Run({"experiment": one | {"loss": loss}, "last": epoch}, [epoch]) for loss in ("ce", "vce(a=1)")]
    >>> [(each.title, len(each.settings)) for each in grouped(runs)]
    [('digits, clean, mlp', 2)]
    """
    tables: dict[str, tuple[dict[str, Any], dict[str, dict[tuple[int, ...], Run]]]] = {}
    for run in runs:
        shared = {key: value for key, value in run.experiment.items() if key not in ("loss", *_SEEDS)}
        _, losses = tables.setdefault(json.dumps(shared, sort_keys=True), (shared, {}))
        seeds = losses.setdefault(run.loss, {})
        if run.seeds in seeds:
            raise ValueError(
                f"{run.loss} with seed {run.seeds[0]} is given twice ({shared['data']}, {shared['noise']})"
            )
        seeds[run.seeds] = run
    if not tables:
        raise ValueError("there is no run to report; give at least one")
    return [
        Group(
            shared, tuple(Setting(loss, tuple(seeds[key] for key in sorted(seeds))) for loss, seeds in losses.items())
        )
        for shared, losses in tables.values()
    ]
