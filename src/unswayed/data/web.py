"""WebVision, ILSVRC12 and Clothing1M: lists of images on disk, which are read when they are needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unswayed.data.core import Data, Split
from unswayed.data.images import SUFFIXES, ImageFiles
from unswayed.data.known import known

# The first 50 of ILSVRC12's classes, in its order: folder name, then what it shows.
_FIFTY = """
    n01440764 tench, n01443537 goldfish, n01484850 great white shark, n01491361 tiger shark, n01494475 hammerhead,
    n01496331 electric ray, n01498041 stingray, n01514668 cock, n01514859 hen, n01518878 ostrich, n01530575 brambling,
    n01531178 goldfinch, n01532829 house finch, n01534433 junco, n01537544 indigo bunting, n01558993 robin,
    n01560419 bulbul, n01580077 jay, n01582220 magpie, n01592084 chickadee, n01601694 water ouzel, n01608432 kite,
    n01614925 bald eagle, n01616318 vulture, n01622779 great grey owl, n01629819 European fire salamander,
    n01630670 common newt, n01631663 eft, n01632458 spotted salamander, n01632777 axolotl, n01641577 bullfrog,
    n01644373 tree frog, n01644900 tailed frog, n01664065 loggerhead, n01665541 leatherback turtle,
    n01667114 mud turtle, n01667778 terrapin, n01669191 box turtle, n01675722 banded gecko, n01677366 common iguana,
    n01682714 American chameleon, n01685808 whiptail, n01687978 agama, n01688243 frilled lizard,
    n01689811 alligator lizard, n01692333 Gila monster, n01693334 green lizard, n01694178 African chameleon,
    n01695060 Komodo dragon, n01697457 African crocodile
"""
_SYNSETS, _ANIMALS = zip(*(entry.strip().split(None, 1) for entry in _FIFTY.split(",")))
_CLOTHES = (
    "T-shirt", "shirt", "knitwear", "chiffon", "sweater", "hoodie", "windbreaker", "jacket", "down coat", "suit",
    "shawl", "dress", "vest", "underwear",
)  # fmt: skip
_SIDE = 224
_PROBES = 16  # names of a list that are looked for, to find the folder it is relative to

# Where images may be: a folder under the root, and the beginning that names of the list have too much.
_Places = Sequence[tuple[str, bytes]]
_WEB_TRAIN: _Places = (("", b""), ("google_resized_256", b""), ("train", b""), ("", b"/"))
_WEB_VAL: _Places = (("val_images_256", b""), ("val_images", b""), ("", b""), ("", b"/"))
_ILSVRC: _Places = (("", b""), ("imagenet", b""), ("imagenet/val", b""), ("ILSVRC2012_img_val", b""), ("", b"/"))
_CLOTHING: _Places = (("", b""), ("", b"images/"), ("images", b""), ("", b"/"))


def load(name: str, root: Path, on_bad_image: str = "error") -> Data:
    """Read ``webvision``, ``ilsvrc12`` (which has test images only) or ``clothing1m`` from the lists in ``root``."""
    if not root.is_dir():
        raise NotADirectoryError(f"{name}: {str(root)!r} is a file, where the folder of the data set is expected")
    return {"webvision": _webvision, "ilsvrc12": _ilsvrc12, "clothing1m": _clothing1m}[name](root, on_bad_image)


def _webvision(root: Path, on_bad_image: str) -> Data:
    facts = known("webvision")
    lists = [
        _first(root, [f"webvision_mini_{part}.txt", f"info/{published}.txt"], facts.title)
        for part, published in (("train", "train_filelist_google"), ("val", "val_filelist"))
    ]
    train, test = (
        _split(root, path, *_listed(path, 50, others=950), 50, places, on_bad_image)
        for path, places in zip(lists, (_WEB_TRAIN, _WEB_VAL))
    )
    tests = {"test": test}
    found = _validation(root, ("imagenet/val", "imagenet"), on_bad_image)
    if found is not None:
        tests["ilsvrc12"] = found[0]
    layout = f"the first 50 classes of the lists {_quoted(lists)}" + (f"; ILSVRC12: {found[1]}" if found else "")
    return Data("webvision", train, tests, 50, facts.in_shape, _ANIMALS, facts, layout)


def _ilsvrc12(root: Path, on_bad_image: str) -> Data:
    facts = known("ilsvrc12")
    found = _validation(root, ("", "val", "imagenet/val", "imagenet"), on_bad_image)
    if found is None:
        raise FileNotFoundError(
            f"{str(root)!r} holds no ILSVRC12 validation images; expected are class folders 0 to 49, or n01440764 "
            "and so on, there or in val or imagenet/val, or a list imagenet_val.txt of paths and classes"
        )
    nothing = Split(np.empty(0, dtype=np.int64), read=ImageFiles(root, ()), size=_SIDE)
    layout = f"test images only: {found[1]}"
    return Data("ilsvrc12", nothing, {"test": found[0]}, 50, facts.in_shape, _ANIMALS, facts, layout)


def _validation(root: Path, folders: Sequence[str], on_bad_image: str) -> tuple[Split, str] | None:
    """Return ILSVRC12's validation images of the 50 classes, and where they come from."""
    for name in ("imagenet_val.txt", "imgnet_val.txt"):
        if (root / name).is_file():
            path = root / name
            return _split(root, path, *_listed(path, 50, others=950), 50, _ILSVRC, on_bad_image), f"the list {name!r}"
    for place in folders:
        folder = root / place
        for names in (tuple(map(str, range(50))), _SYNSETS):
            there = [(folder / name).is_dir() for name in names]
            # A lone folder called 0 proves nothing.
            if sum(there) < 25:
                continue
            if not all(there):
                missing = folder / names[there.index(False)]
                raise FileNotFoundError(f"{str(missing)!r} is missing; the folders of 50 classes are expected there")
            entries: list[bytes] = []
            labels: list[int] = []
            for label, name in enumerate(names):
                inside = sorted(e.name for e in os.scandir(folder / name) if e.name.lower().endswith(SUFFIXES))
                entries += [os.fsencode(f"{name}/{file}") for file in inside if not file.startswith(".")]
                labels += [label] * (len(entries) - len(labels))
            split = _split(folder, folder, entries, np.array(labels, np.int64), None, 50, (("", b""),), on_bad_image)
            return split, f"class folders {names[0]} to {names[-1]} in {str(folder)!r}"
    return None


def _clothing1m(root: Path, on_bad_image: str) -> Data:
    facts = known("clothing1m")
    folders = [root, root / "annotations"]
    keyed = next((folder for folder in folders if (folder / "noisy_label_kv.txt").is_file()), None)
    plain = next((folder for folder in folders if (folder / "noisy_train.txt").is_file()), None)
    folder = keyed or plain
    if folder is None:
        raise FileNotFoundError(
            f"{str(root)!r} holds no lists of Clothing1M; expected are, there or in annotations: noisy_label_kv.txt, "
            "clean_label_kv.txt, noisy_train_key_list.txt, clean_val_key_list.txt and clean_test_key_list.txt, or "
            "noisy_train.txt, clean_val.txt and clean_test.txt"
        )
    splits = {}
    for part, kind, stem in (("train", "noisy", "train"), ("test", "clean", "test"), ("val", "clean", "val")):
        path = _first(folder, [f"{kind}_{stem}_key_list.txt" if keyed else f"{kind}_{stem}.txt"], facts.title)
        listed = _keyed(path, _first(folder, [f"{kind}_label_kv.txt"], facts.title)) if keyed else _listed(path, 14)
        splits[part] = _split(root, path, *listed, 14, _CLOTHING, on_bad_image)
    layout = f"{'key lists' if keyed else 'lists'} in {str(folder)!r}; noisy labels to train on, clean ones to test on"
    return Data("clothing1m", splits.pop("train"), splits, 14, facts.in_shape, _CLOTHES, facts, layout)


def _first(root: Path, names: Sequence[str], title: str) -> Path:
    for name in names:
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"{title}: {str(root)!r} has no {' and no '.join(map(repr, names))}")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text file that are not blank, with their numbers."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line := line.strip():
                yield number, line


def _pairs(path: Path, num_classes: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield number, name and class of each line of a list."""
    for number, line in _lines(path):
        name, _, label = line.replace(b"\t", b" ").rpartition(b" ")
        if not name or not label.isdigit() or int(label) >= num_classes:
            raise ValueError(
                f"{str(path)!r}, line {number}: {_shown(line)}, where the path of an image and its class (0 to "
                f"{num_classes - 1}) are expected"
            )
        yield number, name.rstrip(), int(label)


# Names of images, their classes, and their places in the published order.
_Listed = tuple[list[bytes], NDArray[np.int64], NDArray[np.int64] | None]


def _keyed(path: Path, source: Path) -> _Listed:
    """Return what a list of keys names, with the classes that ``source`` gives for them."""
    label_of = {key: label for _, key, label in _pairs(source, 14)}
    keys = []
    for line, key in _lines(path):
        if key not in label_of:
            raise ValueError(f"{str(path)!r}, line {line}: {_shown(key)} has no label in {source.name!r}")
        keys.append(key)
    return keys, np.fromiter((label_of[key] for key in keys), np.int64, len(keys)), np.arange(len(keys))


def _listed(path: Path, num_classes: int, others: int = 0) -> _Listed:
    """Return names, classes and places of the images of a list, without those of the ``others`` that follow."""
    names, labels, places = [], [], []
    for place, (_, name, label) in enumerate(_pairs(path, num_classes + others)):
        if label < num_classes:
            names.append(name)
            labels.append(label)
            places.append(place)
    # A list that somebody made has an order of its own.
    index = np.array(places, dtype=np.int64) if path.parent.name == "info" else None
    return names, np.array(labels, dtype=np.int64), index


def _split(
    root: Path,
    source: Path,
    names: list[bytes],
    labels: NDArray[np.int64],
    index: NDArray[np.int64] | None,
    num_classes: int,
    places: _Places,
    on_bad_image: str,
) -> Split:
    absent = np.flatnonzero(np.bincount(labels, minlength=num_classes) == 0)
    if len(absent):
        raise ValueError(
            f"{str(source)!r} has no image of class {absent[0]}; images of the classes 0 to {num_classes - 1} are "
            "expected: is it whole?"
        )
    folder, extra = _where(root, source, names, places)
    files = ImageFiles(folder, (name.removeprefix(extra) for name in names) if extra else names)
    return Split(labels, read=files, size=_SIDE, index=index, on_bad_image=on_bad_image)


def _where(root: Path, source: Path, names: list[bytes], places: _Places) -> tuple[Path, bytes]:
    """Return the first of the ``places`` that holds some of the named images; a few of all may be missing."""
    probes = [names[i] for i in np.linspace(0, len(names) - 1, min(_PROBES, len(names))).astype(int)]
    for place, extra in places:
        if any(os.path.isfile(_path(root / place, probe, extra)) for probe in probes):
            return root / place, extra
    tried = dict.fromkeys(_path(root / place, probes[0], extra) for place, extra in places)
    raise FileNotFoundError(
        f"none of the images of {str(source)!r} that were looked for is there, like {' or '.join(map(repr, tried))}"
    )


def _path(folder: Path, name: bytes, extra: bytes) -> str:
    return os.path.join(folder, os.fsdecode(name.removeprefix(extra)))


def _shown(line: bytes) -> str:
    return repr(line[:120].decode(errors="replace"))


def _quoted(paths: Sequence[Path]) -> str:
    return " and ".join(repr(str(path)) for path in paths)
