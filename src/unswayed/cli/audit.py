"""``unswayed audit``: which labels to distrust."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unswayed._files import written_whole
from unswayed.cli import _probabilities

if TYPE_CHECKING:
    from unswayed.audit import Suspects

EXAMPLES = """Examples:

`unswayed audit --data features=table.csv --label species --out suspects.csv`

`unswayed audit --probabilities probabilities.npz` - what `unswayed noise estimate --save` wrote

Rows are counted from 0, in the order of the (training) data. Scores: self-confidence, normalised margin, log margin.
"""


def command(
    data: _probabilities.DataOption = None,
    label: _probabilities.LabelOption = None,
    noise: _probabilities.NoiseOption = "given",
    probabilities: _probabilities.FileOption = None,
    score: Annotated[str, typer.Option("--score", help="What ranks the labels.")] = "self-confidence",
    loss: _probabilities.LossOption = None,
    model: _probabilities.ModelOption = _probabilities.MODEL,
    folds: _probabilities.FoldsOption = 5,
    seed: Annotated[int, typer.Option("--seed", help="Of folds, training, and of --noise.")] = 0,
    top: Annotated[int, typer.Option("--top", min=0, help="How many suspects are shown.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write all suspects, the first most so: a .csv file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suspects as JSON.")] = False,
) -> None:
    """Rank labels by how suspicious they are, with what they should probably be."""
    from unswayed import audit

    if out is not None and (out.suffix != ".csv" or not out.parent.is_dir()):
        raise ValueError(f"{str(out)!r}: suspects are written as .csv, in a folder that is there")
    audit.check_score(score)
    got = _probabilities.get(data, label, noise, probabilities, loss, model, folds, seed, quiet)
    found = audit.suspects(got.labels, got.table, score)
    if out is not None:
        with written_whole(out) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "label", "proposed", "quality", "chance"])
            for row in found.records():
                label_name, proposed = (_name(int(row[key]), got.classes) for key in ("label", "proposed"))
                writer.writerow([row["row"], label_name, proposed, f"{row['quality']:.6g}", f"{row['chance']:.4f}"])
    if as_json:
        record = {
            "examples": len(found.order), "number": found.number, "score": found.score,
            "expected_precision": found.expected_precision(), "classes": found.by_class(), "suspects": found.records(),
        }  # fmt: skip
        print(json.dumps(record, indent=2))
        return
    _show(found, top, got.classes)
    if out is not None:
        print(f"wrote {out}")


def _name(number: int, classes: Sequence[str] | None) -> str:
    return str(number) if classes is None else classes[number]


def _show(found: Suspects, top: int, classes: Sequence[str] | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    print(
        f"{found.number:,} of {len(found.order):,} labels are suspects, ranked by {found.score}; about "
        f"{100 * found.expected_precision():.0f} % of them should really be wrong."
    )
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=max(160, console.width), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("row", "label", "probably", "quality", "chance to be wrong"):
        table.add_column(title, justify="left" if title in ("label", "probably") else "right")
    for row in found.records(min(top, found.number)):
        names = (escape(_name(int(row[key]), classes)) for key in ("label", "proposed"))
        table.add_row(str(row["row"]), *names, f"{row['quality']:.4f}", f"{100 * row['chance']:.0f} %")
    console.print(table)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("label", "examples", "suspects", "share", "probably, most often"):
        table.add_column(title, justify="left" if title in ("label", "probably, most often") else "right")
    for row in found.by_class()[:top]:
        mostly = "" if row["mostly"] is None else escape(_name(row["mostly"], classes))
        share = f"{100 * row['suspects'] / row['examples']:.1f} %"
        name = escape(_name(row["label"], classes))
        table.add_row(name, f"{row['examples']:,}", f"{row['suspects']:,}", share, mostly)
    console.print(table)
