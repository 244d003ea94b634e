"""The one table that knows all losses: what each is called, says, takes, and what can be proved about it.

The command line, the documentation, the theory tools, the checks of parameters and the tests all read it. It is plain
data and imports nothing heavy, so that ``unswayed losses`` answers without torch.
"""

from __future__ import annotations

from unswayed.losses.catalogue import CATALOGUE
from unswayed.losses.info import LossInfo
from unswayed.spec import did_you_mean

_TABLE: dict[str, LossInfo] = {entry.name: entry for entry in CATALOGUE}


def register(entry: LossInfo) -> LossInfo:
    """Add a loss to the table, so that specs, the command line and the theory tools know it.

    >>> register(info("vce"))
    Traceback (most recent call last):
    ValueError: a loss named 'vce' is registered already
    """
    if entry.name in _TABLE:
        raise ValueError(f"a loss named {entry.name!r} is registered already")
    _TABLE[entry.name] = entry
    return entry


def info(name: str) -> LossInfo:
    """Return what is known about the loss called ``name``.

    >>> info("vce").title
    'variation cross entropy'
    """
    try:
        return _TABLE[name.lower()]
    except KeyError:
        raise ValueError(
            f"unknown loss {name!r}{did_you_mean(name.partition('(')[0], list(_TABLE))} (known: {', '.join(_TABLE)})"
        ) from None


def list_losses(*, wrappers: bool = True) -> list[str]:
    """Return the names of all losses, in the order of the table.

    >>> list_losses(wrappers=False)[-3:]
    ['vce', 'vel', 'vsl']
    """
    return [entry.name for entry in _TABLE.values() if wrappers or not entry.wrapper]
