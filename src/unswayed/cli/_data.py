"""How commands name a data set: ``digits``, ``cifar10=DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unswayed.data import Data

METAVAR = "NAME[=PATH]"
HELP = "A data set and where it lies, like cifar10=DIR or features=FILE; digits needs no place."


def load(spec: str, **options: Any) -> Data:
    """Read the data set that ``NAME`` or ``NAME=PATH`` names; the options are those of :func:`unswayed.data.load`.

    >>> load("digits").num_classes
    10
    """
    from unswayed import data

    name, _, root = spec.partition("=")
    return data.load(name.strip(), root.strip() or None, **options)
