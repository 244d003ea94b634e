"""The table of a group of runs, free of any format, and what it says in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from unswayed.report.runs import Group, Setting, Summary

if TYPE_CHECKING:
    import rich.table

    from unswayed.theory import Certificate


@dataclass(frozen=True)
class Cell:
    """One entry of a table: its text, the unrounded value that sorts it, and whether it is the best of its column."""

    text: str
    value: float | str | None
    best: bool = False


@dataclass(frozen=True)
class Column:
    """One column of a table; ``meaning`` says in words what is in it."""

    title: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, and a note below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


@dataclass(frozen=True)
class Measure:
    """Something that was measured at one of the epochs that a run keeps; ``high`` values are good, or low ones."""

    at: str
    name: str
    column: Column
    high: bool = True


MEASURES = (
    Measure("last", "test_accuracy", Column("last epoch", "test accuracy after the last epoch, %")),
    Measure(
        "best", "test_accuracy",
        Column("best epoch", "test accuracy at the epoch where it is highest, %: chosen by the test set"),
    ),
    Measure(
        "chosen", "test_accuracy",
        Column("chosen epoch", "test accuracy at the epoch chosen by held-out noisy labels, %"),
    ),
    Measure(
        "last", "memorised",
        Column("memorised", "share of the wrong training labels that the network predicts, last epoch, %"), high=False,
    ),
    Measure(
        "last", "test_ece",
        Column("ECE", "expected calibration error on the test set, 15 bins, last epoch, %"), high=False,
    ),
)  # fmt: skip


def results(group: Group) -> Table:
    """Return the table of a group: a row a setting, mean ± standard deviation over the seeds.

    A column of which nothing is known is left out. The best of a column is decided on unrounded means, and ties share.

    >>> from unswayed.report.runs import Run, grouped
    >>> last = {"epoch": 1, "test_accuracy": 0.5}
    >>> experiment = {"data": "digits", "noise": "symmetric(0.4)", "loss": "vce(a=1)"}
    >>> run = Run({"experiment": experiment, "last": last}, [last])
    >>> table = results(grouped([run])[0])
    >>> [column.title for column in table.columns], [cell.text for cell in table.rows[0]]
    (['loss', 'last epoch', 'v', 'proved'], ['vce(a=1)', '50.00', '2', 'yes'])
    """
    columns, rows = [Column("loss", "what was minimised")], [[Cell(s.loss, s.loss)] for s in group.settings]

    def add(column: Column, cells: Sequence[Cell]) -> None:
        if any(cell.value is not None for cell in cells):
            columns.append(column)
            for row, cell in zip(rows, cells):
                row.append(cell)

    for measure in MEASURES:
        found = [setting.summary(measure.at, measure.name) for setting in group.settings]
        pick = max if measure.high else min
        best = pick((summary.mean for summary in found if summary is not None), default=None)
        add(measure.column, [_cell(summary, setting, best) for summary, setting in zip(found, group.settings)])
    proofs = certificates(group)
    ratios = [None if proof is None else proof.ratio for proof in proofs]
    verdicts = [None if proof is None else proof.holds for proof in proofs]
    add(
        Column("v", "variation ratio: largest over least slope of the loss, or of its terms that have one"),
        [Cell("–", None) if v is None else Cell("∞" if math.isinf(v) else f"{v:.3g}", v) for v in ratios],
    )
    add(
        Column("proved", "whether the loss is proved to ignore this noise"),
        [Cell("–", None) if held is None else Cell("yes" if held else "no", float(held)) for held in verdicts],
    )
    sizes = [len(setting.runs) for setting in group.settings]
    note = f"n = {sizes[0]}"
    if len(set(sizes)) > 1:
        note = "n as given"
        add(Column("n", "number of seeds"), [Cell(str(size), size) for size in sizes])
    note = "One seed, in percent." if max(sizes) == 1 else (
        f"Mean ± standard deviation over seeds ({note}, ddof = 1), in percent."
    )  # fmt: skip
    if any(column.title == "best epoch" for column in columns):
        note += " The best epoch is chosen by the test set: what an oracle would get."
    return Table(tuple(columns), tuple(map(tuple, rows)), note)


def _cell(summary: Summary | None, setting: Setting, best: float | None) -> Cell:
    if summary is None:
        return Cell("", None)
    fewer = "" if summary.n == len(setting.runs) else f" (n = {summary.n})"
    return Cell(f"{summary}{fewer}", summary.mean, summary.mean == best)


def certificates(group: Group) -> list[Certificate | None]:
    """Return for each setting whether its loss is proved to ignore the group's noise.

    ``None`` where that cannot be said: a loss of one's own, or noise without one transition matrix for all examples.
    """
    return [_certificate(s.loss, str(group.shared["noise"]), len(group.classes)) for s in group.settings]


@cache
def _certificate(loss: str, noise: str, num_classes: int) -> Certificate | None:
    from unswayed.theory import certify

    try:
        return certify(loss, noise, num_classes)
    except ValueError:
        return None


def headline(group: Group) -> str:
    """Say in one sentence what was seen, from the values alone: who ends highest, and beside it how ``ce`` ends.

    >>> from unswayed.report.runs import Run, grouped
    >>> def run(loss, accuracy):
    ...     last = {"test_accuracy": accuracy, "memorised": 1 - accuracy}
    ...     return Run({"experiment": {"data": "digits", "noise": "clean", "loss": loss}, "last": last}, [last])
    >>> print(headline(grouped([run("ce", 0.7), run("vce(a=1)", 0.9)])[0]))
    vce(a=1) ends at 90.0 % test accuracy, ce at 70.0 %; of the wrong labels, vce(a=1) has memorised 10.0 %, ce 30.0 %.
    """
    ranked = _ranked(group)
    if not ranked:
        return f"{len(group.runs)} runs; nothing was measured on a test set."
    (winner, top), rest = ranked[0], ranked[1:]
    equal = [setting.loss for setting, summary in ranked if summary.mean == top.mean]
    if len(equal) > 1:
        return f"{', '.join(equal[:-1])} and {equal[-1]} end at the same test accuracy, {_percent(top)}."
    if not rest:
        return f"{winner.loss} ends at {_percent(top)} test accuracy{_memory([winner])}."
    other, accuracy = next((pair for pair in rest if pair[0].loss == "ce"), rest[0])
    text = f"{winner.loss} ends at {_percent(top)} test accuracy, {other.loss} at {_percent(accuracy)}"
    return text + _close(top, accuracy) + _memory([winner, other]) + "."


def findings(group: Group) -> list[str]:
    """Say in further sentences what else was seen: how far the best is ahead, and who lost most before the end."""
    ranked = _ranked(group)
    said = []
    if len(ranked) > 2 and ranked[0][1].mean > ranked[1][1].mean:
        (first, top), (second, next_best) = ranked[:2]
        gap = 100 * (top.mean - next_best.mean)
        said.append(f"{first.loss} is {gap:.1f} points above {second.loss}, the next{_close(top, next_best)}.")
    lost = []
    for setting, last in ranked:
        best = setting.summary("best", "test_accuracy")
        if best is not None and best.n == last.n and best.mean - last.mean >= 0.05:
            lost.append((best.mean - last.mean, setting.loss, best))
    for points, loss, best in sorted(lost, reverse=True, key=lambda entry: entry[0])[:3]:
        said.append(
            f"{loss} reached {_percent(best)} on the way, and lost {100 * points:.1f} points by the last epoch."
        )
    return said


def _ranked(group: Group) -> list[tuple[Setting, Summary]]:
    found = [(setting, setting.summary("last", "test_accuracy")) for setting in group.settings]
    measured = [(setting, summary) for setting, summary in found if summary is not None]
    return sorted(measured, key=lambda pair: -pair[1].mean)


def _percent(summary: Summary) -> str:
    return f"{100 * summary.mean:.1f} %"


def _close(a: Summary, b: Summary) -> str:
    """Return a remark where two means differ by less than their standard deviations together, where both are known."""
    if a.std is None or b.std is None or abs(a.mean - b.mean) > math.hypot(a.std, b.std):
        return ""
    return ", a difference within the spread of the seeds"


def _memory(settings: Sequence[Setting]) -> str:
    shares = [(s.loss, share) for s in settings if (share := s.summary("last", "memorised")) is not None]
    if len(shares) < len(settings):
        return ""
    (first, share), rest = shares[0], shares[1:]
    more = "".join(f", {loss} {_percent(other)}" for loss, other in rest)
    return f"; of the wrong labels, {first} has memorised {_percent(share)}{more}"


def for_terminal(table: Table) -> rich.table.Table:
    """Return a table that rich prints; the best of a column is bold."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for i, column in enumerate(table.columns):
        shown.add_column(column.title, justify="right" if i else "left", no_wrap=not i)
    for row in table.rows:
        # Without these spaces, all columns fit into a terminal 80 wide.
        shown.add_row(*(Text(cell.text.replace(" ± ", "±"), style="bold" if cell.best else "") for cell in row))
    return shown
