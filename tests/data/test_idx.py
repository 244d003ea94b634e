"""MNIST and Fashion-MNIST from idx files, as they lie about in the world, whole and broken."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from unswayed.data import load

IMAGES = {part: np.random.default_rng(n).integers(0, 256, (n, 28, 28), dtype=np.uint8) for part, n in
          (("train", 20), ("t10k", 10))}  # fmt: skip
LABELS = {"train": np.arange(20, dtype=np.uint8) % 10, "t10k": np.arange(10, dtype=np.uint8)}


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def write(folder: Path, mark: str = "-", pack: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part in IMAGES:
        for kind, values in (("images", IMAGES[part]), ("labels", LABELS[part])):
            raw = gzip.compress(idx(values)) if pack else idx(values)
            name = f"{part}-{kind}{mark}idx{values.ndim}-ubyte" + (".gz" if pack else "")
            (folder / name).write_bytes(raw)
    return folder


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("mark", ["-", "."])
@pytest.mark.parametrize("place", [".", "raw", "torchvision"])
def test_every_layout_gives_the_same(name: str, pack: bool, mark: str, place: str, tmp_path: Path) -> None:
    under = {"torchvision": {"mnist": "MNIST/raw", "fashion_mnist": "FashionMNIST/raw"}[name]}.get(place, place)
    folder = write(tmp_path / under, mark, pack)
    data = load(name, tmp_path)
    assert data.name == name
    assert data.known is not None
    assert (data.in_shape, data.num_classes, len(data.classes)) == ((1, 28, 28), 10, 10)
    assert str(folder) in data.layout
    for split, part in ((data.train, "train"), (data.test, "t10k")):
        assert split.inputs is not None
        assert split.inputs.dtype == torch.uint8
        assert np.array_equal(split.inputs[:, 0], IMAGES[part])
        assert np.array_equal(split.labels, LABELS[part])
        assert split.index is None


def test_compression_is_told_by_the_content_not_the_name(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(gzip.compress(file.read_bytes()))
    assert len(load("mnist", tmp_path).train) == 20


Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        (
            "train-images-idx3-ubyte",
            lambda raw: raw[:-5],
            "is truncated: images of shape (20, 28, 28) take 15680 bytes",
        ),
        ("train-images-idx3-ubyte", lambda raw: raw + b"x", "has more bytes than its head says"),
        ("train-images-idx3-ubyte", lambda raw: raw[:10], "ends within its head"),
        ("train-images-idx3-ubyte", lambda raw: b"", "is empty, where images are expected"),
        ("train-images-idx3-ubyte", lambda raw: b"<html>", "begins with 3c 68 74 6d, where images are expected"),
        ("train-images-idx3-ubyte", lambda raw: idx(LABELS["train"]), "holds labels, where images are expected"),
        ("t10k-labels-idx1-ubyte", lambda raw: idx(IMAGES["t10k"]), "holds images, where labels are expected"),
        ("t10k-labels-idx1-ubyte", lambda raw: idx(LABELS["train"]), "has 20 labels"),
        ("t10k-labels-idx1-ubyte", lambda raw: raw[:-1] + b"\x0a", "has the label 10, where 0 to 9"),
        ("t10k-images-idx3-ubyte", lambda raw: idx(IMAGES["t10k"][:, :20]), "images of 20 x 28 pixels"),
        ("t10k-images-idx3-ubyte", lambda raw: raw[:4] + b"\xff" * 12, "is truncated"),
        ("t10k-images-idx3-ubyte", lambda raw: gzip.compress(raw)[:-20], "is truncated"),
        ("t10k-images-idx3-ubyte", lambda raw: gzip.compress(raw)[:-8] + b"abcdefgh", "is damaged (CRC"),
        ("t10k-images-idx3-ubyte", lambda raw: gzip.compress(raw)[:10] + b"\xff" * 50, "is damaged"),
    ],
)
def test_broken_files_are_named(file: str, change: Change, words: str, tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError) as caught:
        load("mnist", tmp_path)
    assert words in str(caught.value)
    assert file in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no idx files of MNIST .* train-images-idx3-ubyte"):
        load("mnist", tmp_path)
    write(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte' is missing"):
        load("mnist", tmp_path)


def test_one_set_taken_for_the_other_is_noticed(tmp_path: Path) -> None:
    write(tmp_path)
    for name, first in (("fashion_mnist", [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]), ("mnist", [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])):
        labels = np.array(first * 2, dtype=np.uint8)
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(labels))
        assert len(load(name, tmp_path).train) == 20
        (other,) = {"mnist", "fashion_mnist"} - {name}
        with pytest.raises(ValueError, match=f"load it as '{name}'"):
            load(other, tmp_path)


DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Debian's package dataset-fashion-mnist is not installed")
def test_the_real_fashion_mnist() -> None:
    data = load("fashion_mnist", DEBIAN)
    assert (len(data.train), len(data.test)) == (60000, 10000)
    assert data.train.index is not None
    assert np.array_equal(data.train.index, np.arange(60000))
    assert np.bincount(data.train.labels).tolist() == [6000] * 10
    assert np.bincount(data.test.labels).tolist() == [1000] * 10
    assert data.train.inputs is not None
    assert data.known is not None
    pixels = data.train.inputs.numpy()
    assert pixels.mean() / 255 == pytest.approx(data.known.mean[0], abs=1e-4)
    assert pixels.std() / 255 == pytest.approx(data.known.std[0], abs=1e-4)
    with pytest.raises(ValueError, match="holds Fashion-MNIST, not MNIST"):
        load("mnist", DEBIAN)
