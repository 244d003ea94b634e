"""What a bench says of itself: its matrix, what is done, what failed, how long the rest takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from unswayed.bench.store import Plan, Planned, Store

_STATES = ("done", "running", "begun", "failed", "open")


def matrix(plan: Plan, store: Store) -> Iterator[str]:
    """Yield a table of each data set: a row a method, a column a noise, and in it how many seeds of how many are done.

    ``!`` marks failed runs, ``*`` running ones.
    """
    states = {cell.id: store.state(cell.id).name for cell in plan.cells}
    for data in dict.fromkeys(cell.data for cell in plan.cells):
        cells = [cell for cell in plan.cells if cell.data == data]
        columns = list(dict.fromkeys(cell.column for cell in cells))
        rows = list(dict.fromkeys(cell.method for cell in cells))
        found = [[_entry([c for c in cells if (c.method, c.column) == (row, column)], states) for column in columns]
                 for row in rows]  # fmt: skip
        yield from _table([data, *columns], [[row, *entries] for row, entries in zip(rows, found)])
        models = dict.fromkeys(f"{c.settings['model']}, {c.settings['recipe']['epochs']} epochs" for c in cells)
        seeds = dict.fromkeys(str(cell.seed) for cell in cells)
        yield f"  {'; '.join(models)}; seeds {', '.join(seeds)}"
        yield ""


def _entry(cells: Sequence[Planned], states: dict[str, str]) -> str:
    found = [states[cell.id] for cell in cells]
    if not found:
        return ""
    marks = ("!" if "failed" in found else "") + ("*" if "running" in found else "")
    return f"{found.count('done')}/{len(found)}{marks}"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        yield "  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:]))])


def summary(plan: Plan, store: Store) -> Iterator[str]:
    """Yield sentences: how many runs are done, running, failed (and why)."""
    ids = dict.fromkeys(cell.id for cell in plan.cells)
    states = {id: store.state(id) for id in ids}
    counts = {name: sum(state.name == name for state in states.values()) for name in _STATES}
    told = [f"{count} {name}" for name, count in counts.items() if count]
    yield f"{len(ids)} runs: {', '.join(told) or 'none'}"
    running = dict.fromkeys(state.detail for state in states.values() if state.name == "running")
    for who in running:
        yield f"  running: {who}"
    reasons: dict[str, list[str]] = {}
    for id, state in states.items():
        if state.name == "failed":
            reasons.setdefault(state.detail.splitlines()[0], []).append(id)
    for reason, failed in reasons.items():
        yield f"  failed: {some(failed)}: {reason}"


def title(plan: Plan) -> str:
    """Say what a plan is, how the paper was read, and what was changed."""
    changes = f", with {', '.join(plan.changes)}" if plan.changes else ""
    reading = f", as {plan.reading}" if plan.name.startswith("paper/") else ""
    return f"{plan.name}, protocol {plan.protocol}{reading}{changes}"


def some(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are.

    >>> some(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def describe(settings: Any) -> str:
    """Return a run in few words.

    >>> describe({"loss": "ce", "data": "digits", "noise": "clean", "seed": 1})
    'ce, digits, clean, seed 1'
    """
    return f"{settings['loss']}, {settings['data']}, {settings['noise']}, seed {settings['seed']}"
