"""``unswayed data``: what a data set's folder holds, as the other commands will see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from unswayed.data import Data

EXAMPLES = """Examples:

`unswayed data check digits`

`unswayed data check cifar10 DIR --plot cifar10.png`

`unswayed data check features table.csv --label species --json`
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="See what a data set's folder holds.")


@app.callback()
def _group() -> None:
    """Keep ``check`` a command with a name, although it is the only one."""


@app.command(epilog=EXAMPLES)
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is: cifar10, folder, features, ...")],
    root: Annotated[Path | None, typer.Argument(metavar="[ROOT]", help="Where it is; digits need no place.")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Label column of a table.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw images of each class, or features on two axes."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what was recognised, and how many examples each class has in each split."""
    from unswayed.data import load

    data = load(name, root, label=label)
    facts = _facts(data)
    if plot is not None:
        from unswayed.report.examples import plot_examples

        plot_examples(data, plot)
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _tell(facts)
        if plot is not None:
            print(f"wrote {plot}")


def _facts(data: Data) -> dict[str, Any]:
    import numpy as np

    splits = {"train": data.train, **data.tests}
    return {
        "name": data.name,
        "layout": data.layout,
        "in_shape": list(data.in_shape),
        "classes": list(data.classes),
        "splits": {
            part: {
                "size": len(split),
                "per_class": np.bincount(split.labels, minlength=data.num_classes).tolist(),
                "in_memory": split.inputs is not None,
                "published_order": split.index is not None,
                "human": {key: float((values != split.labels).mean()) for key, values in split.human.items()},
            }
            for part, split in splits.items()
        },
    }


def _tell(facts: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    splits, classes = facts["splits"], facts["classes"]
    shape = " x ".join(map(str, facts["in_shape"]))
    console.print(facts["layout"], markup=False)
    console.print(f"{len(classes)} classes, examples of {shape}")
    for part, split in splits.items():
        kept = "in memory" if split["in_memory"] else "read from disk when needed"
        order = "place in the published order known" if split["published_order"] else "no published order"
        console.print(f"  {part:<9} {split['size']:>9,}   {kept}; {order}", markup=False)
        for key, rate in split["human"].items():
            console.print(f"            human labels {key}: {100 * rate:.2f} % differ", markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("class", style="cyan")
    for part in splits:
        table.add_column(part, justify="right")
    for label, title in enumerate(classes):
        table.add_row(escape(title), *(f"{split['per_class'][label]:,}" for split in splits.values()))
    console.print(table)
