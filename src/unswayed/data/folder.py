"""Class folders of images, which are read when they are needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unswayed.data.arrays import HELD_OUT, held_out
from unswayed.data.core import BadImage, Data, Split
from unswayed.data.images import SUFFIXES, ImageFiles, look
from unswayed.spec import did_you_mean

_TRAIN = ("train", "training")
_TESTS = {"test": ("test", "testing"), "val": ("val", "valid", "validation")}
_PROBES = 64  # images whose size is looked at
_LARGEST = 224


def load(name: str, root: Path, on_bad_image: str = "error") -> Data:
    """Read ``train`` and ``test`` or ``val`` of class folders, or class folders alone.

    Classes are the folders of ``train``, in the order of their names (of numbers, in that of the numbers). Images are
    grey if all that are looked at are. If those are squares of one size it is kept; others are scaled and cut to a
    square of the usual shorter side, of 224 pixels at most.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{name}: {str(root)!r} is a file, where a folder with train and val is expected")
    folders = {"train": _first(root, _TRAIN)} | {part: _first(root, names) for part, names in _TESTS.items()}
    found = {part: (folder, _images(folder)) for part, folder in folders.items() if folder is not None}
    if not found:
        found["train"] = root, _images(root)
    elif "train" not in found:
        raise FileNotFoundError(f"{str(root / 'train')!r} is missing; there are only images to test on")
    classes = _classes(*found["train"])
    listed = {part: (folder, *_listed(folder, images, classes)) for part, (folder, images) in found.items()}
    told = ", ".join(f"{len(names):,} in {folder.name}" for folder, names, _ in listed.values())
    if len(listed) == 1:
        folder, names, labels = listed["train"]
        for part, rows in zip(("train", "test"), held_out(labels, repr(str(folder)))):
            listed[part] = folder, [names[row] for row in rows], labels[rows]
        told += f"; no folder to test on, so that {HELD_OUT:.0%} of each class are held out: {len(listed['test'][1]):,}"
    channels, size = _shape([ImageFiles(folder, names) for folder, names, _ in listed.values()])
    splits = {
        part: Split(labels, read=ImageFiles(folder, names, channels), size=size, on_bad_image=on_bad_image)
        for part, (folder, names, labels) in listed.items()
    }
    kind = "grey" if channels == 1 else "RGB"
    return Data(
        name, splits.pop("train"), splits, len(classes), (channels, size, size), tuple(classes),
        layout=f"class folders in {str(root)!r}: {told}; {kind} images, as {size} x {size}",
    )  # fmt: skip


def _first(root: Path, names: Sequence[str]) -> Path | None:
    return next((root / name for name in names if (root / name).is_dir()), None)


def _images(folder: Path) -> dict[str, list[bytes]]:
    """Return the images of each folder in ``folder``, at any depth, relative to it."""
    found = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir() and not entry.name.startswith("."):
            images = []
            for place, below, files in os.walk(entry.path, followlinks=True):
                below[:] = sorted(name for name in below if not name.startswith("."))
                inside = [name for name in files if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
                inner = os.path.relpath(place, folder)
                images += [os.fsencode(os.path.join(inner, name)) for name in inside]
            found[entry.name] = sorted(images)
    return found


def _classes(folder: Path, images: Mapping[str, list[bytes]]) -> list[str]:
    if len(images) < 2:
        there = f"only the folder {next(iter(images))!r}" if images else "no folder"
        raise ValueError(
            f"{str(folder)!r} holds {there}, where a folder for each class is expected, like train/cat, train/dog and "
            "val/cat, val/dog"
        )
    for name, inside in images.items():
        if not inside:
            raise FileNotFoundError(
                f"{str(folder / name)!r} has no image ({', '.join(SUFFIXES[:4])}, ...); images of a class are expected"
            )
    return sorted(images, key=int if all(name.isdecimal() for name in images) else None)


def _listed(
    folder: Path, images: Mapping[str, list[bytes]], classes: Sequence[str]
) -> tuple[list[bytes], NDArray[np.int64]]:
    for name in images:
        if name not in classes:
            raise ValueError(
                f"{str(folder / name)!r} is no class of the training images{did_you_mean(name, classes)}; they have "
                f"{', '.join(classes[:12])}{', ...' if len(classes) > 12 else ''}"
            )
    counts = [len(images.get(name, ())) for name in classes]
    if not sum(counts):
        raise FileNotFoundError(f"{str(folder)!r} has no images in class folders")
    return [name for title in classes for name in images.get(title, ())], np.repeat(np.arange(len(classes)), counts)


def _shape(parts: Sequence[ImageFiles]) -> tuple[int, int]:
    """Return channels and side that images are brought to."""
    seen, broken = [], None
    for files in parts:
        for row in np.unique(np.linspace(0, len(files) - 1, _PROBES).astype(int)).tolist():
            try:
                seen.append(look(files.path(row)))
            except BadImage as error:
                broken = broken or error
    if not seen:
        assert broken is not None
        raise broken
    sides = [min(height, width) for height, width, _ in seen]
    square = len({(height, width) for height, width, _ in seen}) == 1 and seen[0][0] == seen[0][1]
    return 1 if all(grey for *_, grey in seen) else 3, sides[0] if square else min(_LARGEST, int(np.median(sides)))
