"""The table of a group of runs, free of any format, and what it says in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unswayed.report.runs import Group, Run, Setting, Summary

if TYPE_CHECKING:
    from unswayed.theory import Certificate


@dataclass(frozen=True)
class Cell:
    """One entry of a table: its text, the unrounded value that sorts it, and whether it is the best of its column."""

    text: str
    value: float | str | None
    best: bool = False


@dataclass(frozen=True)
class Column:
    """One column of a table; ``better`` is ``high``, ``low`` or nothing, ``meaning`` says in words what is in it."""

    title: str
    meaning: str
    better: str = ""


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, and a note below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


@dataclass(frozen=True)
class Measure:
    """Something that was measured at one of the epochs that a run keeps."""

    at: str
    name: str
    column: Column


MEASURES = (
    Measure("last", "test_accuracy", Column("last epoch", "test accuracy after the last epoch, %", "high")),
    Measure(
        "best", "test_accuracy",
        Column("best epoch", "test accuracy at the epoch where it is highest, %: chosen by the test set", "high"),
    ),
    Measure(
        "chosen", "test_accuracy",
        Column("chosen epoch", "test accuracy at the epoch chosen by held-out noisy labels, %", "high"),
    ),
    Measure(
        "last", "memorised",
        Column("memorised", "share of the wrong training labels that the network predicts, last epoch, %", "low"),
    ),
    Measure(
        "last", "test_ece",
        Column("ECE", "expected calibration error on the test set, 15 bins, last epoch, %", "low"),
    ),
)  # fmt: skip


def results(group: Group, certificates: Sequence[Certificate | None] | None = None) -> Table:
    """Return the table of a group: a row a setting, mean ± standard deviation over the seeds.

    A column of which nothing is known is left out. The best of a column is decided on unrounded means, and ties share.

    Args:
        group: from :func:`unswayed.report.runs.group`.
        certificates: of each setting's loss, if these are to be shown; see :func:`certificates`.
    """
    columns, cells = [Column("loss", "what was minimised")], [[Cell(s.loss, s.loss)] for s in group.settings]
    for certain in (_ratios, _certified) if certificates else ():
        column, more = certain(certificates or ())
        columns.append(column)
        for row, cell in zip(cells, more):
            row.append(cell)
    for measure in MEASURES:
        found = [setting.summary(measure.at, measure.name) for setting in group.settings]
        known = [summary.mean for summary in found if summary is not None]
        if known:
            top = max(known) if measure.column.better == "high" else min(known)
            columns.append(measure.column)
            for row, summary in zip(cells, found):
                row.append(Cell("", None) if summary is None else Cell(str(summary), summary.mean, summary.mean == top))
    sizes = [len(setting.runs) for setting in group.settings]
    # A column that says the same of every row is one number, and stands in the note.
    if len(set(sizes)) > 1:
        columns.append(Column("n", "number of seeds"))
        for row, size in zip(cells, sizes):
            row.append(Cell(str(size), size))
    count = f"n = {sizes[0]}" if len(set(sizes)) == 1 else "n as given"
    note = f"Mean ± standard deviation over seeds ({count}, ddof = 1), in percent." if max(sizes) > 1 else "One seed."
    if any(column.title == "best epoch" for column in columns):
        note += " The best epoch is chosen by the test set, so it is what an oracle would get."
    return Table(tuple(columns), tuple(map(tuple, cells)), note)


def certificates(group: Group) -> list[Certificate | None]:
    """Return for each setting whether its loss is proved to ignore the group's noise.

    ``None`` where that cannot be said: a loss of one's own, or noise that has no transition matrix of its own (it was
    given, or depends on the example).
    """
    from unswayed.noise import NoiseSpec
    from unswayed.theory import certify

    try:
        spec = NoiseSpec.parse(str(group.shared["noise"]))
        matrix = spec.transition(len(group.classes))
    except ValueError:
        return [None for _ in group.settings]
    found: list[Certificate | None] = []
    for setting in group.settings:
        try:
            found.append(certify(setting.loss, matrix.tolist()))
        except (ValueError, TypeError):
            found.append(None)
    return found


def _ratios(certificates: Sequence[Certificate | None]) -> tuple[Column, list[Cell]]:
    column = Column("v", "variation ratio: largest over least slope of the loss (of its part that has one)", "low")
    ratios = [None if c is None else c.ratio for c in certificates]
    return column, [Cell("–", None) if v is None else Cell("∞" if math.isinf(v) else f"{v:.3g}", v) for v in ratios]


def _certified(certificates: Sequence[Certificate | None]) -> tuple[Column, list[Cell]]:
    column = Column("certified", "whether the loss is proved to ignore this noise", "high")
    return column, [Cell("–", None) if c is None else Cell("yes" if c.holds else "no", float(c.holds)) for c in certificates]


def headline(group: Group) -> str:
    """Say in one sentence what was seen, from the values alone: who ends highest, and beside it how ``ce`` ends.

    >>> def run(loss, accuracy):
    ...     last = {"test_accuracy": accuracy, "memorised": 1 - accuracy}
    ...     return Run({"experiment": {"data": "digits", "noise": "n", "model": "m", "loss": loss}, "last": last}, [last])
    >>> from unswayed.report.runs import group
    >>> headline(group([run("ce", 0.7), run("vce(a=1)", 0.9)])[0])
    'vce(a=1) ends at 90.00 % test accuracy and ce at 70.00 %: vce(a=1) has memorised 10.00 % of the wrong labels, ce 30.00 %.'
    """
    ranked = _ranked(group)
    if not ranked:
        return f"{len(group.runs)} runs; nothing was measured on a test set."
    (winner, top), rest = ranked[0], ranked[1:]
    equal = [setting.loss for setting, summary in ranked if summary.mean == top.mean]
    if len(equal) > 1:
        return f"{_list(equal)} end at the same test accuracy, {_percent(top)}."
    if not rest:
        return f"{winner.loss} ends at {_percent(top)} test accuracy{_memory([winner])}."
    other, accuracy = next(((s, a) for s, a in rest if s.loss == "ce"), rest[0])
    text = f"{winner.loss} ends at {_percent(top)} test accuracy and {other.loss} at {_percent(accuracy)}"
    return text + _close(top, accuracy) + _memory([winner, other]) + "."


def findings(group: Group) -> list[str]:
    """Say in further sentences what else was seen: the order of all settings, and who was better before the end."""
    ranked = _ranked(group)
    said = []
    if len(ranked) > 2:
        said.append("By test accuracy after the last epoch: " + ", ".join(f"{s.loss} {_percent(a)}" for s, a in ranked) + ".")
    if len(ranked) > 1:
        (first, top), (second, next_best) = ranked[:2]
        gap = 100 * (top.mean - next_best.mean)
        said.append(f"{first.loss} is {gap:.2f} points above {second.loss}, the next{_close(top, next_best)}.")
    for setting, last in ranked:
        best = setting.summary("best", "test_accuracy")
        if best is not None and best.n == last.n and best.mean - last.mean >= 0.05:
            lost = 100 * (best.mean - last.mean)
            said.append(f"{setting.loss} reached {_percent(best)} on the way, and lost {lost:.2f} points by the last epoch.")
    return said


def _ranked(group: Group) -> list[tuple[Setting, Summary]]:
    found = [(setting, setting.summary("last", "test_accuracy")) for setting in group.settings]
    measured = [(setting, summary) for setting, summary in found if summary is not None]
    return sorted(measured, key=lambda pair: -pair[1].mean)


def _percent(summary: Summary) -> str:
    return f"{summary} %"


def _close(a: Summary, b: Summary) -> str:
    """Return a remark where two means differ by less than their standard deviations together, or where none is known."""
    if a.std is None or b.std is None:
        return ""
    return ", a difference within the spread of the seeds" if abs(a.mean - b.mean) <= math.hypot(a.std, b.std) else ""


def _memory(settings: Sequence[Setting]) -> str:
    shares = [(s.loss, summary) for s in settings if (summary := s.summary("last", "memorised")) is not None]
    if len(shares) < len(settings):
        return ""
    (first, share), rest = shares[0], shares[1:]
    more = "".join(f", {loss} {_percent(summary)}" for loss, summary in rest)
    return f": {first} has memorised {_percent(share)} of the wrong labels{more}"


def _list(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1]


_ = Callable, Run  # used by doctests
