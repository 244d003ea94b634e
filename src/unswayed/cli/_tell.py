"""What a command says at its end."""

from __future__ import annotations

import os
import sys


def tell(text: str, *, error: bool = False) -> None:
    """Print, once for all processes of a run."""
    if int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) == 0:
        print(text, file=sys.stderr if error else sys.stdout)
