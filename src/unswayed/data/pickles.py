"""Pickles of plain values and NumPy arrays, read so that no code of theirs can run.

CIFAR's Python files and the CIFAR-N label files are pickles, and unpickling runs what a pickle asks for. The reader
here admits containers, numbers, text and NumPy arrays of numbers or text, and refuses everything else by name.
"""

from __future__ import annotations

import codecs
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np


class _Refused(Exception):
    """What a pickle does that is not allowed: the words that follow 'it'."""


def _encode(text: str, encoding: str = "latin1") -> bytes:
    # Python 2 wrote bytes as text that is to be encoded. codecs.encode itself takes any codec, and some do more.
    if encoding != "latin1":
        raise _Refused(f"asks for the text codec {encoding!r}")
    return codecs.encode(text, "latin1")


def _dtype(*args: Any, **options: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(*args, **options)
    if dtype.hasobject or dtype.kind not in "biufcSU":
        raise _Refused(f"holds an array of {dtype}, where numbers or text are allowed")
    return dtype


def _frombuffer(buffer: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any, *_: Any) -> Any:
    return np.frombuffer(buffer, dtype=_dtype(dtype)).reshape(shape, order=order)


def _admitted() -> dict[tuple[str, str], Any]:
    # NumPy renamed its core between versions 1 and 2; a pickle of either is read under either.
    array, scalar = np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]
    found: dict[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): _dtype,
        ("_codecs", "encode"): _encode,
        ("collections", "OrderedDict"): dict,
    }
    for core in ("numpy.core", "numpy._core"):
        found[f"{core}.multiarray", "_reconstruct"] = array
        found[f"{core}.multiarray", "scalar"] = scalar
        found[f"{core}.numeric", "_frombuffer"] = _frombuffer
    return found


_ADMITTED = _admitted()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise _Refused(f"asks for {module}.{name}, which is not allowed to run")
        return _ADMITTED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("refers to data outside of it (a torch tensor?), which is not allowed")


def read_pickle(path: str | Path) -> Any:
    """Return what a pickle (or a ``.pt`` file, a zip archive of one) holds: plain values and NumPy arrays only.

    A file that asks for anything else is refused with a ``ValueError`` that names it; nothing of it runs.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{str(path)!r}: there is no such file")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
                if len(names) != 1:
                    raise ValueError(f"{str(path)!r} is a zip archive without a data.pkl, so it is no .pt file")
                raw = archive.read(names[0])
        else:
            raw = path.read_bytes()
        if not raw:
            raise ValueError(f"{str(path)!r} is empty")
        return _Unpickler(io.BytesIO(raw), encoding="latin1").load()
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{str(path)!r} cannot be read as a pickle: {error}") from None
    except _Refused as error:
        raise ValueError(f"{str(path)!r} is refused: it {error}") from None
    except Exception as error:
        raise ValueError(f"{str(path)!r} cannot be read as a pickle: {type(error).__name__}: {error}") from None
