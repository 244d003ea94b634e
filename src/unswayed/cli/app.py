"""The program: its commands, and how mistakes are told."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import unswayed
from unswayed.cli import audit, bench, data, demo, doctor, losses, noise, theory, train
from unswayed.cli._tell import tell

app = typer.Typer(
    name="unswayed",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train classifiers on labels that are partly wrong: robust losses, and what can be proved about them.",
)
app.command(name="demo", epilog=demo.EXAMPLES)(demo.command)
app.command(name="losses", epilog=losses.EXAMPLES)(losses.command)
app.command(name="theory", epilog=theory.EXAMPLES)(theory.command)
app.add_typer(noise.app, name="noise")
app.command(name="audit", epilog=audit.EXAMPLES)(audit.command)
app.command(name="train", epilog=train.EXAMPLES)(train.command)
app.command(name="doctor", epilog=doctor.EXAMPLES)(doctor.command)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"unswayed {unswayed.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


def run() -> None:
    """Run the program; mistakes of the user (and missing extras) are told without a traceback."""
    try:
        app()
    except (ValueError, TypeError, ImportError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        tell(f"unswayed: {error}", error=True)
        raise SystemExit(2) from None
