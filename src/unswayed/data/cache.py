"""Decoded images, kept in the user's cache folder as memory-mapped files."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed._files import written_whole

# To be raised when decoded images come out differently from the same files.
_FORMAT = 1


def cache_folder() -> Path:
    """Return the folder for files that can be made again; the variable ``UNSWAYED_CACHE`` names another one."""
    if own := os.environ.get("UNSWAYED_CACHE"):
        return Path(own).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "unswayed" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "unswayed"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unswayed"


def cached(name: str, sources: Sequence[Path], decode: Callable[[], NDArray[np.uint8]], *, use: bool = True) -> Tensor:
    """Return what ``decode`` makes of the files ``sources``, from the cache if it was made before.

    The tensor of a cached array is mapped from the file, copy on write. Two processes may make it at the same time; a
    cache that cannot be written costs the time to decode, and a warning.
    """
    if not use:
        return torch.from_numpy(decode())
    stats = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    place, state = _digest([_FORMAT, [where for where, *_ in stats]]), _digest(stats)
    path = cache_folder() / f"{name}-{place}-{state}.npy"
    found = _mapped(path)
    if found is not None:
        return found
    array = np.ascontiguousarray(decode())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as part, part.open("wb") as file:
            np.save(file, array)
        for older in path.parent.glob(f"{name}-{place}-*.npy"):
            # Windows keeps files that are in use.
            with suppress(PermissionError):
                if older != path:
                    older.unlink(missing_ok=True)
    except OSError as error:
        _tell(f"decoded images cannot be kept in {str(path.parent)!r} ({error.strerror or error}), so that they are "
              f"decoded again each time; the variable UNSWAYED_CACHE names another folder")  # fmt: skip
    # The array itself is let go: mapped memory is shared by the processes of a machine.
    found = _mapped(path)
    return torch.from_numpy(array) if found is None else found


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _mapped(path: Path) -> Tensor | None:
    try:
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return torch.from_numpy(array) if array.dtype == np.uint8 else None


@functools.cache
def _tell(problem: str) -> None:
    warnings.warn(problem, stacklevel=4)
