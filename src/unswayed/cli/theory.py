"""``unswayed theory``: what can be proved about a loss, with and without noise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """Examples:

`unswayed theory "nce + 10*vce(a=4)" --noise "symmetric(0.8)" --classes 10`

`unswayed theory "vsl(a=0.65)" --noise "asymmetric(0.4)" --classes 100 --json`

`unswayed theory "gce(q=0.7)" --noise "matrix(T.csv)" --plot slopes.png`
"""


def command(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help='A loss, like "nce + 10*vce(a=4)".')],
    noise: Annotated[
        str | None, typer.Option("--noise", help="symmetric(r), asymmetric(r) (to one other class) or matrix(FILE).")
    ] = None,
    classes: Annotated[int | None, typer.Option("--classes", "-k", min=2, help="Number of classes.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; infinity is the string inf.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the slope against the noise's threshold.")
    ] = None,
) -> None:
    """Variation ratio, conditions, margin and excess-risk bound of a loss, and the noise it is certified against."""
    from unswayed import theory
    from unswayed.losses.expression import loss as build
    from unswayed.theory.certificate import json_ready

    loss = build(spec)
    certificate = None if noise is None else theory.certify(loss, noise, classes)
    count = certificate.num_classes if certificate else classes or 10
    curve = theory.split(loss).curve
    if certificate is not None:
        facts = certificate.as_dict()
    else:
        facts = {
            "loss": str(loss),
            "num_classes": count,
            "ratio": None if curve is None else curve.ratio,
            "gap": theory.symmetry_gap(loss, count),
            "tolerated": theory.tolerated(loss, count),
        }
        facts = {key: vars(value) if key in ("gap", "tolerated") else value for key, value in facts.items()}
    if plot is not None:
        from unswayed.report.figures import plot_losses

        if curve is None:
            raise ValueError(f"{loss} is no function of the given class's probability alone; there is no slope to draw")
        shown = loss if loss.is_pointwise else curve.name
        plot_losses([shown], plot, normalise=True, threshold=certificate.threshold if certificate else None)
    if as_json:
        print(json.dumps(json_ready(facts), indent=2))
    else:
        _tell(facts, None if certificate is None else str(certificate))
        if plot is not None:
            print(f"wrote {plot}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}".replace("inf", "∞")


def _tell(facts: dict[str, object], paragraph: str | None) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    gap, tolerated = facts["gap"], facts["tolerated"]
    assert isinstance(gap, dict)
    assert isinstance(tolerated, dict)
    if paragraph is not None:
        console.print(paragraph, markup=False)
        console.print()
    rows = [("variation ratio v", facts["ratio"])]
    if paragraph is not None:
        rows += [("threshold of the noise", facts["threshold"]), ("margin", facts["margin"]), ("bound", facts["bound"])]
    rows += [
        ("symmetry gap", gap["gap"]),
        ("  of least slope 1", gap["normalised"]),
        ("  paper's bound v - 1", gap["bound"]),
        ("certified symmetric", tolerated["symmetric"]),
        ("certified asymmetric", tolerated["asymmetric"]),
    ]
    if paragraph is None:
        console.print(f"{facts['loss']} with {facts['num_classes']} classes", markup=False)
    for label, value in rows:
        console.print(f"  {label:<24}{_number(value)}", markup=False)  # type: ignore[arg-type]
    if not gap["exact"] and math.isfinite(gap["gap"]):
        console.print("  (the gap was searched for, and is a lower bound)")
