"""The command line: ``unswayed``. Nothing here imports torch before a command needs it."""

from __future__ import annotations

import sys

MISSING = "the command line needs typer and rich: pip install 'unswayed[cli]'"


def main() -> None:
    """Run the command line; a user's mistake ends with one message and exit code 2."""
    try:
        from unswayed.cli.app import run
    except ModuleNotFoundError as error:
        if error.name in ("typer", "rich"):
            print(f"unswayed: {MISSING}", file=sys.stderr)
            raise SystemExit(2) from None
        raise
    run()
