"""CIFAR-10 and CIFAR-100 in each of their layouts: Python pickles, binary, Hugging Face parquet, class folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.cache import cached
from unswayed.data.core import Data, Split
from unswayed.data.frames import columns_of, polars, read_frame
from unswayed.data.images import SUFFIXES, decode
from unswayed.data.known import Known, known
from unswayed.data.pickles import read_pickle

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_BATCHES = {
    "cifar10": {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
    "cifar100": {"train": ["train"], "test": ["test"]},
}
_LABELS = {"cifar10": "label", "cifar100": "fine_label"}

# Images (N, 3, 32, 32) and labels of each split.
_Parts = dict[str, tuple[Tensor, NDArray[np.int64]]]


@dataclass(frozen=True)
class _Layout:
    title: str
    holds: Callable[[Known, Path], bool]
    read: Callable[[Known, Path, bool], _Parts]
    in_order: bool = True


def load(name: str, root: Path, *, cache: bool = True) -> Data:
    """Read CIFAR-10 or CIFAR-100 from its folder, or from the folder above it."""
    facts = known(name)
    layout, folder = _recognise(facts, root)
    parts = layout.read(facts, folder, cache)
    missing = set(range(facts.num_classes)) - set(np.unique(parts["train"][1]).tolist())
    if missing:
        raise ValueError(
            f"{str(folder)!r}: no training image has label {min(missing)} ({facts.classes[min(missing)]}), so that "
            f"it is not {facts.title}, or not all of it"
        )
    splits, told = {}, []
    for key, size in (("train", facts.train_size), ("test", facts.test_size)):
        images, labels = parts[key]
        # The published order is known of the published images alone, not of a part of them.
        whole = len(labels) == size
        index = np.arange(size) if whole and layout.in_order else None
        splits[key] = Split(labels, images, index=index)
        told.append(f"{len(labels):,} {key} images" + ("" if whole else f" of {size:,}"))
    return Data(
        name, splits["train"], {"test": splits["test"]}, facts.num_classes, facts.in_shape, facts.classes, facts,
        layout=f"{layout.title} in {folder}: {', '.join(told)}"
        + ("" if layout.in_order else "; the published order is lost"),
    )  # fmt: skip


def _recognise(facts: Known, root: Path) -> tuple[_Layout, Path]:
    if not root.is_dir():
        hint = ", which is to be unpacked first" if re.search(r"\.(tar|t?gz|zip)$", root.name) else ""
        raise ValueError(f"{facts.name}: {str(root)!r} is a file{hint}; give the folder that {facts.title} is in")
    below = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))

    def find(facts: Known) -> tuple[_Layout, Path] | None:
        for folders in ([root], below):
            for layout in _LAYOUTS:
                for folder in folders:
                    if layout.holds(facts, folder):
                        return layout, folder
        return None

    found = find(facts)
    if found is not None:
        return found
    other = known("cifar100" if facts.name == "cifar10" else "cifar10")
    mistaken = find(other)
    if mistaken is not None:
        raise ValueError(
            f"{str(mistaken[1])!r} holds {other.title} ({mistaken[0].title}), not {facts.title}; "
            f"use {other.name!r} for it"
        )
    files = [file for part in _BATCHES[facts.name].values() for file in part]
    raise FileNotFoundError(
        f"{facts.title} is not found in {str(root)!r}, nor in a folder in it; expected are the files "
        f"{', '.join(files)}, the same with .bin, train*.parquet and test*.parquet, or the class folders "
        f"train/{facts.classes[0]} ... and test/{facts.classes[0]} ..."
    )


def _check_labels(values: Any, facts: Known, path: Path) -> NDArray[np.int64]:
    labels = np.asarray(values)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{str(path)!r}: labels are to be whole numbers, one an image, not {labels.dtype}")
    wrong = labels[(labels < 0) | (labels >= facts.num_classes)]
    if len(wrong):
        raise ValueError(
            f"{str(path)!r}: label {wrong[0]} is not allowed; {facts.title} has labels 0 to {facts.num_classes - 1}"
        )
    return labels.astype(np.int64)


# Pickles and binary files: a fixed set of batches


def _batches(
    facts: Known, folder: Path, suffix: str, read: Callable[[Known, Path], tuple[NDArray[np.uint8], Any]]
) -> _Parts:
    parts = {}
    for key, names in _BATCHES[facts.name].items():
        paths = [folder / f"{name}{suffix}" for name in names]
        for path in paths:
            if not path.is_file():
                raise FileNotFoundError(
                    f"{str(path)!r} is missing; {facts.title} has {', '.join(p.name for p in paths)}"
                )
        pixels, labels = [], []
        for path in paths:
            rows, values = read(facts, path)
            labels.append(_check_labels(values, facts, path))
            pixels.append(rows)
            if len(rows) != len(pixels[0]) or not len(rows) == len(labels[-1]) > 0:
                raise ValueError(
                    f"{str(path)!r} has {len(rows)} images and {len(labels[-1])} labels, where "
                    f"{len(pixels[0]) or 10000} of both are expected"
                )
        images = torch.from_numpy(np.concatenate(pixels)).view(-1, 3, _SIDE, _SIDE)
        parts[key] = images, np.concatenate(labels)
    return parts


def _read_pickle(facts: Known, path: Path) -> tuple[NDArray[np.uint8], Any]:
    found = read_pickle(path)
    if not isinstance(found, dict):
        raise ValueError(f"{str(path)!r} holds a {type(found).__name__}, where a dict is expected")
    content = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in found.items()}
    wanted = "labels" if facts.name == "cifar10" else "fine_labels"
    for key in ("data", wanted):
        if key not in content:
            raise ValueError(
                f"{str(path)!r} has no {key!r} but {', '.join(map(str, content))}: it is no file of {facts.title}"
            )
    data = content["data"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
        shape = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise ValueError(f"{str(path)!r}: 'data' is {shape}, where uint8 (N, {_PIXELS}) is expected")
    return data, content[wanted]


def _read_binary(facts: Known, path: Path) -> tuple[NDArray[np.uint8], Any]:
    # CIFAR-100 has the label of the super-class before that of the class.
    head = 1 if facts.name == "cifar10" else 2
    raw = np.fromfile(path, dtype=np.uint8)
    if len(raw) % (head + _PIXELS):
        raise ValueError(
            f"{str(path)!r} has {len(raw):,} bytes, which is no multiple of {head + _PIXELS:,} (an image of "
            f"{facts.title} with its label): it is truncated, or of another data set"
        )
    rows = raw.reshape(-1, head + _PIXELS)
    return rows[:, head:], rows[:, head - 1]


def _holds_batches(facts: Known, folder: Path, suffix: str) -> bool:
    there = sum((folder / f"{name}{suffix}").is_file() for names in _BATCHES[facts.name].values() for name in names)
    # Many a folder has a file called test.
    return there > (0 if facts.name == "cifar10" else 1)


# Parquet, as Hugging Face has it


def _shards(folder: Path, key: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"{key}*.parquet") if path.is_file())


def _holds_parquet(facts: Known, folder: Path) -> bool:
    shards = _shards(folder, "train") + _shards(folder, "test")
    if not shards:
        return False
    try:
        return _LABELS[facts.name] in columns_of(shards[0])
    except ValueError:
        # A broken file is told of when it is read.
        return True


def _read_parquet(facts: Known, folder: Path, cache: bool) -> _Parts:
    parts = {}
    for key in ("train", "test"):
        shards = _shards(folder, key)
        if not shards:
            raise FileNotFoundError(f"{str(folder / f'{key}-00000-of-00001.parquet')!r} is missing")
        for path in shards:
            numbers = re.fullmatch(rf"{key}-(\d+)-of-(\d+)\.parquet", path.name)
            if numbers and int(numbers[2]) != len(shards):
                raise FileNotFoundError(
                    f"{str(path)!r} is one of {int(numbers[2])} files, of which {len(shards)} are there"
                )
        labels = []
        image = ""
        for path in shards:
            columns, column = columns_of(path), _LABELS[facts.name]
            image = next((name for name in ("img", "image") if name in columns), "")
            if not image or column not in columns:
                raise ValueError(f"{str(path)!r} has columns {', '.join(columns)}, where img and {column} are expected")
            labels.append(_check_labels(read_frame(path, [column])[column].to_numpy(), facts, path))
        whole = np.concatenate(labels)

        def decode_all(shards: list[Path] = shards, image: str = image, n: int = len(whole)) -> NDArray[np.uint8]:
            return _pixels(_encoded(shards, image), n)

        parts[key] = _cached(facts, key, shards, decode_all, cache), whole
    return parts


def _encoded(shards: Sequence[Path], column: str) -> Iterator[tuple[bytes, str]]:
    for path in shards:
        images = read_frame(path, [column])[column]
        if images.dtype == polars().Struct:
            images = images.struct.field("bytes")
        for row, content in enumerate(images):
            yield content or b"", f"{path}, row {row}"


# Class folders of images


def _class_folders(facts: Known, folder: Path) -> dict[str, int]:
    """Return the class of each folder, by published name or by number; folders that are no class have -1."""
    by_name = {name: label for label, name in enumerate(facts.classes)}
    found = {
        path.name: by_name.get(re.sub(r"[ -]", "_", path.name.lower()), -1)
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and not path.name.startswith(".")
    }
    if len(found) == facts.num_classes and all(name.isdecimal() for name in found):
        return {name: int(name) for name in found}
    return found


def _holds_folders(facts: Known, folder: Path) -> bool:
    return any(label >= 0 for label in _class_folders(facts, folder / "train").values())


def _read_folders(facts: Known, folder: Path, cache: bool) -> _Parts:
    parts = {}
    for key in ("train", "test"):
        names = ["train"] if key == "train" else ["test", "val", "valid"]
        base = next((folder / name for name in names if (folder / name).is_dir()), folder / key)
        if not base.is_dir():
            raise FileNotFoundError(f"{str(base)!r} is missing; there are only training images")
        classes = _class_folders(facts, base)
        for name, label in classes.items():
            if not 0 <= label < facts.num_classes:
                raise ValueError(
                    f"{str(base / name)!r} is no class of {facts.title}; its classes: {', '.join(facts.classes)}"
                )
        files, labels = [], []
        for label, title in enumerate(facts.classes):
            folders = sorted(name for name, found in classes.items() if found == label)
            here = sorted(p for name in folders for p in (base / name).iterdir() if p.suffix.lower() in SUFFIXES)
            if not here:
                place = base / (folders[0] if folders else title)
                raise FileNotFoundError(f"{str(place)!r} has no image, where {facts.title} has {title} images")
            files += here
            labels += [label] * len(here)

        def decode_all(files: list[Path] = files) -> NDArray[np.uint8]:
            return _pixels(((path, str(path)) for path in files), len(files))

        parts[key] = _cached(facts, key, files, decode_all, cache), np.array(labels)
    return parts


# Decoding


def _pixels(sources: Iterator[tuple[Path | bytes, str]], n: int) -> NDArray[np.uint8]:
    pixels = np.empty((n, _SIDE, _SIDE, 3), dtype=np.uint8)
    for row, (source, name) in enumerate(sources):
        image = decode(source, 3, name=name)
        if image.shape[1:] != (_SIDE, _SIDE):
            height, width = image.shape[1:]
            raise ValueError(f"{name!r} is an image of {width} x {height} pixels, where 32 x 32 is expected")
        pixels[row] = image.permute(1, 2, 0).numpy()
    return pixels


def _cached(
    facts: Known, key: str, sources: Sequence[Path], decode_all: Callable[[], NDArray[np.uint8]], cache: bool
) -> Tensor:
    return cached(f"{facts.name}-{key}", sources, decode_all, use=cache).permute(0, 3, 1, 2)


_LAYOUTS = (
    _Layout(
        "Python pickles",
        lambda facts, folder: _holds_batches(facts, folder, ""),
        lambda facts, folder, _: _batches(facts, folder, "", _read_pickle),
    ),
    _Layout(
        "binary files",
        lambda facts, folder: _holds_batches(facts, folder, ".bin"),
        lambda facts, folder, _: _batches(facts, folder, ".bin", _read_binary),
    ),
    _Layout("parquet", _holds_parquet, _read_parquet),
    _Layout("class folders", _holds_folders, _read_folders, in_order=False),
)
