"""MNIST and Fashion-MNIST in their idx files, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from unswayed.data.core import Data, Split
from unswayed.data.known import known

_FOLDERS = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}  # what torchvision calls them
# The files of both sets have the same names and sizes; how their training labels begin tells them apart.
_FIRST = {"mnist": [5, 0, 4, 1, 9, 2, 1, 3, 1, 4], "fashion_mnist": [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]}
_KINDS = {1: "labels", 3: "images"}
_DEFLATE = 1032  # times as long as a deflated stream can its content be, at most


def load(name: str, root: Path) -> Data:
    """Read ``mnist`` or ``fashion_mnist`` from ``root``, its ``raw`` or torchvision's ``MNIST/raw`` under it."""
    facts = known(name)
    folder = _folder(name, root)
    splits = {}
    for part, size in (("train", facts.train_size), ("t10k", facts.test_size)):
        files = [_find(folder, part, dims) for dims in (3, 1)]
        images, labels = (_read(file, dims) for file, dims in zip(files, (3, 1)))
        if len(images) != len(labels):
            raise ValueError(
                f"{str(files[0])!r} has {len(images)} images, but {str(files[1])!r} has {len(labels)} labels; "
                "both must be of one download"
            )
        if images.shape[1:] != facts.in_shape[1:]:
            raise ValueError(f"{str(files[0])!r} has images of {_size(images)} pixels, where 28 x 28 are expected")
        if len(labels) and labels.max() >= facts.num_classes:
            raise ValueError(f"{str(files[1])!r} has the label {labels.max()}, where 0 to 9 are expected")
        # The published order is known of the published images alone, not of a part of them.
        index = np.arange(size) if len(labels) == size else None
        splits[part] = Split(labels.astype(np.int64), torch.from_numpy(images)[:, None], index=index)
    for other, first in _FIRST.items():
        if other != name and splits["train"].labels[:10].tolist() == first:
            raise ValueError(f"{str(folder)!r} holds {known(other).title}, not {facts.title}; load it as {other!r}")
    return Data(
        name, splits["train"], {"test": splits["t10k"]}, facts.num_classes, facts.in_shape, facts.classes, facts,
        layout=f"idx files in {str(folder)!r}",
    )  # fmt: skip


def _names(part: str, dims: int) -> list[str]:
    stems = [f"{part}-{_KINDS[dims]}{mark}idx{dims}-ubyte" for mark in "-."]
    return [stem + suffix for stem in stems for suffix in ("", ".gz")]


def _folder(name: str, root: Path) -> Path:
    """Return the first folder with one of the four files."""
    places = [root, root / "raw", root / _FOLDERS[name] / "raw", root / _FOLDERS[name]]
    for place in places:
        if any(
            (place / file).is_file() for part in ("train", "t10k") for dims in _KINDS for file in _names(part, dims)
        ):
            return place
    raise FileNotFoundError(
        f"there are no idx files of {known(name).title} in {str(root)!r}; train-images-idx3-ubyte, "
        "train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte are expected there (or in raw or "
        f"{_FOLDERS[name]}/raw), each with .gz or without"
    )


def _find(folder: Path, part: str, dims: int) -> Path:
    for name in _names(part, dims):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{str(folder / _names(part, dims)[0])!r} is missing (it may end in .gz)")


def _read(path: Path, dims: int) -> NDArray[np.uint8]:
    """Return what an idx file of bytes with ``dims`` dimensions holds."""
    try:
        with path.open("rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if gzipped:
                with gzip.GzipFile(fileobj=raw) as stream:
                    return _parse(stream, path, dims)  # type: ignore[arg-type]
            return _parse(raw, path, dims)
    except EOFError:
        raise ValueError(f"{str(path)!r} is truncated; get it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); get it again") from None


def _parse(stream: BinaryIO, path: Path, dims: int) -> NDArray[np.uint8]:
    magic = stream.read(4)
    if magic != bytes([0, 0, 8, dims]):
        kind = _KINDS.get(magic[3]) if len(magic) == 4 and magic[:3] == b"\0\0\x08" else None
        found = f"holds {kind}" if kind else "is empty" if not magic else f"begins with {magic.hex(' ')}"
        raise ValueError(
            f"{str(path)!r} {found}, where {_KINDS[dims]} are expected: an idx file that begins with 00 00 08 0{dims}"
        )
    head = stream.read(4 * dims)
    if len(head) < 4 * dims:
        raise ValueError(f"{str(path)!r} is truncated: it ends within its head")
    shape = struct.unpack(f">{dims}I", head)
    size = math.prod(shape)
    # A damaged head must not make this ask for more memory than any such file can fill.
    body = stream.read(size + 1) if size <= _DEFLATE * path.stat().st_size else b""
    if len(body) != size:
        state = "has more bytes than its head says" if len(body) > size else "is truncated"
        raise ValueError(f"{str(path)!r} {state}: {_KINDS[dims]} of shape {shape} take {size} bytes after the head")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape).copy()


def _size(images: NDArray[np.uint8]) -> str:
    return " x ".join(map(str, images.shape[1:]))
