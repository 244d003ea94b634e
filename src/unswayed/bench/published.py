"""The numbers of the paper's tables, to stand beside one's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from unswayed.spec import did_you_mean


@dataclass(frozen=True)
class Number:
    """One number of a table: test accuracy in percent over three seeds, at the ``last`` epoch or the ``best``.

    ``std`` is ``None`` where the paper quotes another paper's number without one.
    """

    dataset: str
    method: str
    noise: str
    statistic: str
    mean: float
    std: float | None


def published(table: str) -> list[Number]:
    """Return the numbers of the paper's table ``instance``, ``benchmark``, ``ablation``, ``combination`` or
    ``real_world``.

    >>> [(n.method, n.mean, n.std) for n in published("benchmark") if n.noise == "human(worst)"][-1]
    ('NCE+VSL', 81.08, 0.4)
    """
    tables = _content()["tables"]
    if table not in tables:
        raise ValueError(f"the paper has no table {table!r}{did_you_mean(table, tables)}; it has: {', '.join(tables)}")
    return [Number(**row) for row in tables[table]]


@cache
def _content() -> dict[str, Any]:
    text = (files("unswayed.bench") / "reference" / "vbl.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
