"""One call for every data set."""

# The module is not called load.py: its function stands under that name in the package, and a module would hide it.

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from unswayed.data.core import ON_BAD_IMAGE, Data
from unswayed.spec import did_you_mean

# Name -> the function that reads it, imported when it is asked for, and which options it takes.
_FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "digits": ("unswayed.data.digits:load", ()),
    "cifar10": ("unswayed.data.cifar:load", ("cache",)),
    "cifar100": ("unswayed.data.cifar:load", ("cache",)),
    "mnist": ("unswayed.data.idx:load", ()),
    "fashion_mnist": ("unswayed.data.idx:load", ()),
    "webvision": ("unswayed.data.web:load", ("on_bad_image",)),
    "ilsvrc12": ("unswayed.data.web:load", ("on_bad_image",)),
    "clothing1m": ("unswayed.data.web:load", ("on_bad_image",)),
    "folder": ("unswayed.data.folder:load", ("on_bad_image",)),
    "features": ("unswayed.data.tables:load", ("label",)),
}
NAMES = tuple(_FORMATS)


def load(
    name: str,
    root: str | Path | None = None,
    *,
    label: str | None = None,
    cache: bool = True,
    on_bad_image: str = "error",
) -> Data:
    """Read a data set.

    Args:
        name: ``digits``, ``cifar10``, ``cifar100``, ``mnist``, ``fashion_mnist``, ``webvision``, ``ilsvrc12``,
            ``clothing1m``, ``folder`` (class folders of images) or ``features`` (a table).
        root: where it is; its layout is recognised. ``digits`` needs none.
        label: for ``features``, the column that holds the labels.
        cache: whether images that take long to decode are kept decoded, in the user's cache folder.
        on_bad_image: for images that are read while training: ``"error"``, or ``"skip"`` those that cannot be read.

    >>> load("digits").classes
    ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')
    """
    if name not in _FORMATS:
        raise ValueError(f"unknown data set {name!r}{did_you_mean(str(name), NAMES)}; known: {', '.join(NAMES)}")
    reader, takes = _FORMATS[name]
    if label is not None and "label" not in takes:
        raise ValueError(f"{name} has labels of its own; label={label!r} is for 'features'")
    if on_bad_image not in ON_BAD_IMAGE:
        raise ValueError(f"on_bad_image={on_bad_image!r} is not allowed; it is 'error' or 'skip'")
    if root is None and name != "digits":
        raise ValueError(
            f"{name} needs the folder it is in: load({name!r}, 'FOLDER'), on the command line {name}=FOLDER"
        )
    path = None if root is None else Path(root).expanduser()
    if path is not None and not path.exists():
        raise FileNotFoundError(f"{name}: there is no {str(path)!r}")
    options: dict[str, Any] = {"label": label, "cache": cache, "on_bad_image": on_bad_image}
    module, _, function = reader.partition(":")
    data: Data = getattr(importlib.import_module(module), function)(name, path, **{key: options[key] for key in takes})
    return data
