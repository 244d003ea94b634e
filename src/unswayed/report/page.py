"""The page: one HTML file with tables and figures of runs, which needs no network and no server."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from unswayed._files import written_whole
from unswayed.report.charts import Chart, charts
from unswayed.report.runs import Group, Run, grouped
from unswayed.report.tables import Table, findings, headline, results


def write_page(runs: Iterable[Run], path: str | Path, *, title: str = "Runs of unswayed") -> Path:
    """Write one HTML file about finished runs, grouped by what they have in common.

    It holds its own styles, data and drawing code, and asks for nothing over the network.

    Args:
        runs: at least one, see :meth:`Run.read`.
        path: the file to write.
        title: stands above all.

    >>> import tempfile
    >>> last = {"epoch": 1, "test_accuracy": 0.5}
    >>> experiment = {"data": "digits", "noise": "clean", "model": "mlp", "loss": "ce"}
    >>> run = Run({"experiment": experiment, "last": last}, [last])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "ce ends at 50.0 % test accuracy" in write_page([run], f"{folder}/report.html").read_text(encoding="utf-8")
    True
    """
    path, groups = Path(path), grouped(runs)
    drawn = [charts(group) for group in groups]
    body = [f"<h1>{escape(title)}</h1>"]
    if len(groups) > 1:
        links = "".join(f'<li><a href="#group-{i}">{escape(group.title)}</a></li>' for i, group in enumerate(groups))
        body.append(f"<nav><ul>{links}</ul></nav>")
    body += [_section(group, f"{i}", drawn[i]) for i, group in enumerate(groups)]
    data = [{"losses": [s.loss for s in group.settings], "charts": shown} for group, shown in zip(groups, drawn)]
    pieces = {"title": escape(title), "body": "\n".join(body), "data": _json(data)}
    template = (resources.files(__package__) / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: pieces[found[1]], template)
    with written_whole(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _json(value: Any) -> str:
    """Write JSON that no text in it can end: inside a script element, only ``<`` has a meaning."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


# The words and tables of a group


def _section(group: Group, name: str, shown: Sequence[Chart]) -> str:
    said = "".join(f"<li>{escape(text)}</li>" for text in findings(group))
    seeds = max(len(setting.runs) for setting in group.settings)
    epochs = max(len(run.epochs) for run in group.runs)
    size = f"{_count(len(group.settings), 'loss')}, {_count(seeds, 'seed')}, {_count(epochs, 'epoch')} each"
    return f"""<section class="group" id="group-{name}">
<p class="small">{escape(group.title)}: {size}</p>
<p class="lead">{escape(headline(group))}</p>
{f'<ul class="findings">{said}</ul>' if said else ""}
<section aria-label="Results">
{_table(results(group), [setting.loss for setting in group.settings])}
</section>
<section class="figures" aria-label="Figures">
{"".join(_figure(chart, f"{name}-{i}") for i, chart in enumerate(shown))}
</section>
<section>
<h2>Settings and versions</h2>
{_definitions(_settings(group))}
</section>
</section>"""


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}{'es' if what.endswith('s') else 's'}"


def _table(table: Table, losses: Sequence[str]) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none" title="{escape(column.meaning)}">'
        f'<button type="button">{escape(column.title)}</button></th>'
        for column in table.columns
    )
    rows = []
    for row in table.rows:
        cells = []
        for i, cell in enumerate(row):
            value = "" if cell.value is None else f' data-value="{escape(_plain(cell.value))}"'
            best = ' class="best"' if cell.best else ""
            mark = f'<span class="swatch {_look(losses.index(cell.text))}"></span>' if not i else ""
            cells.append(f"<td{value}{best}>{mark}{escape(cell.text)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    meanings = _definitions([(column.title, column.meaning) for column in table.columns])
    return (
        '<div class="wide" role="region" aria-label="Table of results" tabindex="0"><table class="results">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f'<p class="note">{escape(table.note)} Bold: the best of its column.</p>'
        f"<details><summary>What the columns say</summary>{meanings}</details>"
    )


def _plain(value: float | str) -> str:
    """Write a value as JavaScript reads it."""
    return value if isinstance(value, str) else "Infinity" if math.isinf(value) else repr(value)


def _look(loss: int) -> str:
    return f"c{loss % 8} d{loss // 8 % 3}"


def _figure(chart: Chart, name: str) -> str:
    small = chart["kind"] == "reliability"
    return (
        f'<figure class="{"full" if small else ""}"><figcaption><h3>{escape(chart["title"])}</h3>'
        f"<p>{escape(chart['about'])}</p></figcaption>"
        f'<div class="{"many" if small else "plot"}" id="chart-{name}"></div></figure>'
    )


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd>{escape(text)}</dd>' for term, text in pairs)}</dl>"


def _settings(group: Group) -> list[tuple[str, str]]:
    shared, runs = group.shared, group.runs
    rows = [(name, str(shared[name])) for name in ("data", "noise", "model") if name in shared]
    for draw in group.draws:
        rate = "an unknown share" if draw.get("rate") is None else f"{100 * draw['rate']:.2f} %"
        digest = str((draw.get("sha256") or {}).get("labels", ""))[:12]
        rows.append((
            f"noise, seed {draw.get('seed')}",
            f"{draw.get('spec')} over {draw.get('examples')} labels: {rate} wrong; SHA-256 of the labels {digest}...",
        ))  # fmt: skip
    recipe = shared.get("recipe")
    if isinstance(recipe, Mapping):
        rows.append(("recipe", ", ".join(f"{key}={value}" for key, value in recipe.items())))
    if shared.get("validation"):
        rows.append(("held out", f"{100 * float(shared['validation']):g} % of the noisy training labels"))
    rows.append(
        ("seeds", "; ".join(f"{s.loss}: {', '.join(str(run.seeds[0]) for run in s.runs)}" for s in group.settings))
    )
    rows.append(
        ("statistic", "mean and standard deviation over seeds, ddof = 1; the last epoch unless it says otherwise")
    )
    for name in ("device", "devices", "precision"):
        rows += _once(name, (run.record.get(name) for run in runs))
    versions = [run.record.get("versions") or {} for run in runs]
    for name in dict.fromkeys(key for found in versions for key in found):
        rows += _once(name, (found.get(name) for found in versions))
    return rows


def _once(name: str, values: Iterable[Any]) -> list[tuple[str, str]]:
    """Return a row with each value that occurs, or none."""
    found = list(dict.fromkeys(str(value) for value in values if value is not None))
    return [(name, "; ".join(found))] if found else []
