"""``unswayed losses``: the table of losses, one loss in detail, or a plot of some."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed.losses.catalogue import CONDITION, DOMINANT, IN_THE_LIMIT
from unswayed.losses.info import LossInfo
from unswayed.losses.registry import info, list_losses
from unswayed.spec import REQUIRED, write

EXAMPLES = """Examples:

`unswayed losses` - the table of all losses

`unswayed losses vce` - one loss: formula, parameters, published settings

`unswayed losses ce "vce(a=1)" "vce(a=4)" --plot slopes.png` - draw their slopes and values
"""


def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Losses; specs with --plot.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw |l'(u)| and l(u): .png, .pdf or .svg.")
    ] = None,
    normalise: Annotated[
        bool, typer.Option("--normalise/--raw", help="In the plot, scale each loss to least slope 1.")
    ] = False,
) -> None:
    """List the losses, show one, or draw some."""
    if plot is not None:
        from unswayed.report.figures import plot_losses

        chosen = names or ["ce", "mae(scale=1)", "gce(q=0.7)", "vce(a=1)", "vce(a=4)", "vel(a=2)", "vsl(a=0.28)"]
        print(f"wrote {plot_losses(chosen, plot, normalise=normalise)}")
        return
    entries = [info(name) for name in names or list_losses()]
    if as_json:
        print(json.dumps([record(entry) for entry in entries], indent=2, ensure_ascii=False))
    elif names:
        for entry in entries:
            _show(entry)
    else:
        _table(entries)


def record(entry: LossInfo) -> dict[str, Any]:
    """Return what is known about a loss as plain values."""
    from unswayed.losses.presets import list_presets

    return {
        "name": entry.name,
        "title": entry.title,
        "formula": entry.formula,
        "latex": entry.latex,
        "variation_ratio": entry.ratio,
        "variation_ratio_at_defaults": _ratio(entry),
        "symmetric": entry.symmetric,
        "asymmetric": entry.asymmetric,
        "bounded": entry.bounded if entry.bounded or not entry.wrapper else None,
        "pointwise": entry.pointwise,
        "wrapper": entry.wrapper,
        "smooth": entry.smooth,
        "wants": list(entry.wants),
        "parameters": [
            {
                "name": p.name,
                "default": None if p.default is REQUIRED else p.default,
                "required": p.default is REQUIRED,
                "range": p.range,
                "meaning": p.meaning,
            }
            for p in entry.params
        ],
        "why_default": entry.why_default,
        "identities": list(entry.reduces_to),
        "paper": entry.paper,
        "presets": [
            {
                "method": p.method,
                "dataset": p.dataset,
                "spec": p.spec,
                "source": p.source,
                "notes": list(p.notes),
                "variants": dict(p.variants),
                "l1": p.l1,
                "l2": p.l2,
            }
            for p in list_presets()
            if _uses(p.spec, entry.name)
        ],
    }


def _uses(spec: str, name: str) -> bool:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in spec).split()
    return name in words


def _ratio(entry: LossInfo) -> str | None:
    """Return v at the default parameters, as text, where there is a closed form."""
    if entry.ratio_of is None or len(entry.defaults) < len(entry.params):
        return None
    value = entry.ratio_of(entry.defaults)
    return "inf" if math.isinf(value) else f"{value:.4g}"


def _table(entries: list[LossInfo]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        # A pipe has no width of its own, and cells folded for 80 columns cannot be searched.
        console = Console(width=140)
    for title, wrappers in (("Losses", False), ("Losses around a loss", True)):
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
        table.add_column("spec with defaults", style="cyan", overflow="fold", ratio=3)
        if not wrappers:
            table.add_column("v", justify="right", no_wrap=True)
            table.add_column("sym.", no_wrap=True)
            table.add_column("asym.", no_wrap=True)
            table.add_column("bounded", no_wrap=True)
        table.add_column("formula", overflow="fold", ratio=5)
        for entry in entries:
            if entry.wrapper == wrappers:
                ratio = (_ratio(entry) or "-").replace("inf", "∞")
                facts = (ratio, _yes(entry.symmetric), _asymmetric(entry), _yes(entry.bounded))
                table.add_row(escape(entry.signature), *(() if wrappers else facts), escape(entry.formula))
        console.print(table)
    console.print(
        "u: probability of the given class.  v: variation ratio at the defaults.  sym.: the same sum over all labels.\n"
        "asym.: certified against any noise that leaves the true label the likeliest (yes), if v <= w_t/w_i, how much\n"
        "likelier it must be (by v), if a is large enough (by a), beside such a loss (in sums), or not.\n"
        "More on one: unswayed losses vce. Combine them: nce + 10*vce(a=4).",
        style="dim",
        soft_wrap=True,
        highlight=False,
    )


def _asymmetric(entry: LossInfo) -> str:
    words = {DOMINANT: "yes", IN_THE_LIMIT: "in sums", "no": "no"}
    return words.get(entry.asymmetric, "by v" if entry.asymmetric.startswith(CONDITION) else "by a")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _show(entry: LossInfo) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)

    def line(label: str, text: str) -> None:
        console.print(f"  [dim]{label:<16}[/dim]", end="")
        console.print(text, markup=False)

    console.print(f"[bold cyan]{entry.name}[/bold cyan]  {entry.title}")
    line("formula", entry.formula)
    line("LaTeX", entry.latex)
    line("variation ratio", entry.ratio + (f"   ({_ratio(entry)} at the defaults)" if _ratio(entry) else ""))
    line("symmetric", _yes(entry.symmetric))
    line("asymmetric", entry.asymmetric)
    line("bounded", "as the loss inside" if entry.wrapper and not entry.bounded else _yes(entry.bounded))
    if entry.wants:
        line("wants", f"{' and '.join(f'{name}=' for name in entry.wants)} in each call; unswayed train gives it")
    for param in entry.params:
        default = "required" if param.default is REQUIRED else f"default {write(param.default, param.kind)}"
        line("parameter", f"{param.range}; {default}: {param.meaning}")
    if entry.why_default:
        line("why the default", entry.why_default)
    for identity in entry.reduces_to:
        line("identity", identity)
    line("paper", entry.paper)
    for preset in record(entry)["presets"]:
        line("published", f"{preset['dataset']:<11} {preset['method']:<12} {preset['spec']}   [{preset['source']}]")
    console.print()
