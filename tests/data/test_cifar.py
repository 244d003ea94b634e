"""CIFAR in its four layouts, tiny ones whole and broken, and the real one where it is."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
pytest.importorskip("polars")

import polars
from PIL import Image

from unswayed.data import BadImage, load
from unswayed.data.known import KNOWN, known
from unswayed.data.pickles import read_pickle

SHARED = Path(os.environ.get("UNSWAYED_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
FILES = {
    "cifar10": {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
    "cifar100": {"train": ["train"], "test": ["test"]},
}
COUNTS = {"cifar10": {"train": 40, "test": 20}, "cifar100": {"train": 200, "test": 100}}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "cache"))


def content(name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images (N, 32, 32, 3) and labels, in no order of classes."""
    n = COUNTS[name][part]
    rng = np.random.default_rng(n)
    return rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), rng.permutation(np.arange(n) % known(name).num_classes)


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def batches(name: str, part: str) -> list[tuple[str, np.ndarray, list[int]]]:
    images, labels = content(name, part)
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    files = FILES[name][part]
    return [
        (file, pixels, each.tolist())
        for file, pixels, each in zip(files, np.split(rows, len(files)), np.split(labels, len(files)), strict=True)
    ]


def pickles(folder: Path, name: str) -> None:
    for part in FILES[name]:
        for file, pixels, labels in batches(name, part):
            # Python 2 wrote them: keys are bytes to Python 3.
            key = b"labels" if name == "cifar10" else b"fine_labels"
            (folder / file).write_bytes(pickle.dumps({b"data": pixels, key: labels, b"batch_label": b"x"}, protocol=2))


def binary(folder: Path, name: str) -> None:
    for part in FILES[name]:
        for file, pixels, labels in batches(name, part):
            heads = np.array(labels, dtype=np.uint8)[:, None]
            if name == "cifar100":
                heads = np.concatenate([heads % 20, heads], axis=1)
            (folder / f"{file}.bin").write_bytes(np.concatenate([heads, pixels], axis=1).tobytes())


def parquet(folder: Path, name: str, shards: int = 1) -> None:
    label = "label" if name == "cifar10" else "fine_label"
    for part in FILES[name]:
        images, labels = content(name, part)
        for i, rows in enumerate(np.array_split(np.arange(len(images)), shards)):
            cells = [{"bytes": png(images[row]), "path": None} for row in rows]
            frame = polars.DataFrame({"img": cells, label: labels[rows].tolist()})
            frame.write_parquet(folder / f"{part}-{i:05d}-of-{shards:05d}.parquet")


def folders(folder: Path, name: str, spelled: Callable[[str], str] = str, test: str = "test") -> None:
    for part in FILES[name]:
        images, labels = content(name, part)
        for row, (pixels, label) in enumerate(zip(images, labels)):
            place = folder / (part if part == "train" else test) / spelled(known(name).classes[label])
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{row:04d}.png").write_bytes(png(pixels))


LAYOUTS = {
    "Python pickles": pickles,
    "binary files": binary,
    "parquet": parquet,
    "parquet in two files": lambda folder, name: parquet(folder, name, 2),
    "class folders": folders,
    "class folders by number": lambda folder, name: folders(
        folder, name, lambda title: str(known(name).classes.index(title)), "val"
    ),
    "class folders in other spelling": lambda folder, name: folders(
        folder, name, lambda t: t.title().replace("_", " ")
    ),
}


@pytest.mark.parametrize(
    ("layout", "inside"), [*((layout, ".") for layout in LAYOUTS), ("Python pickles", "below"), ("parquet", "below")]
)
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_every_layout_gives_the_same(
    name: str, layout: str, inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root" / inside
    folder.mkdir(parents=True)
    LAYOUTS[layout](folder, name)
    sizes = {"train_size": COUNTS[name]["train"], "test_size": COUNTS[name]["test"]}
    monkeypatch.setitem(KNOWN, name, dataclasses.replace(known(name), **sizes))
    data = load(name, tmp_path / "root")
    assert (data.name, data.num_classes, data.in_shape) == (name, known(name).num_classes, (3, 32, 32))
    assert data.known is KNOWN[name]
    assert layout.split(" in ")[0].split(" by ")[0] in data.layout
    for split, part in ((data.train, "train"), (data.test, "test")):
        images, labels = content(name, part)
        order = np.arange(len(labels))
        if "folders" in layout:
            # By class, and in each class in the order of the files: the published order is lost, and not claimed.
            order = np.argsort(labels, kind="stable")
            assert split.index is None
            assert "order is lost" in data.layout
        else:
            assert np.array_equal(split.index, order)
        assert split.inputs is not None
        assert split.inputs.dtype == torch.uint8
        assert np.array_equal(split.labels, labels[order])
        assert np.array_equal(split.inputs.permute(0, 2, 3, 1), images[order])


def test_a_part_of_the_images_has_no_place_in_the_published_order(tmp_path: Path) -> None:
    pickles(tmp_path, "cifar10")
    data = load("cifar10", tmp_path)
    assert data.train.index is None
    assert "40 train images of 50,000" in data.layout


Change = Callable[[Path], Any]


def rewrite(file: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))


def repickle(file: str, **changes: Any) -> Change:
    def change(folder: Path) -> None:
        found = {key.decode(): value for key, value in pickle.loads((folder / file).read_bytes()).items()}
        found = {key: value for key, value in (found | changes).items() if value is not None}
        (folder / file).write_bytes(pickle.dumps(found))

    return change


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


@pytest.mark.parametrize(
    ("make", "change", "file", "says"),
    [
        (pickles, lambda f: (f / "data_batch_3").unlink(), "data_batch_3", "is missing; CIFAR-10 has data_batch_1, "),
        (pickles, lambda f: (f / "test_batch").unlink(), "test_batch", "is missing"),
        (pickles, rewrite("data_batch_2", lambda raw: raw[:-50]), "data_batch_2", "cannot be read as a pickle"),
        (pickles, rewrite("test_batch", lambda raw: b""), "test_batch", "is empty"),
        (pickles, rewrite("test_batch", lambda raw: pickle.dumps([1])), "test_batch", "a list, where a dict"),
        (pickles, repickle("data_batch_1", labels=None), "data_batch_1", "has no 'labels' but data, batch_label"),
        (pickles, repickle("data_batch_1", labels=[10] * 8), "data_batch_1", "label 10 is not allowed"),
        (pickles, repickle("data_batch_1", labels=[0.5] * 8), "data_batch_1", "whole numbers"),
        (pickles, repickle("data_batch_4", labels=[1] * 7), "data_batch_4", "8 images and 7 labels, where 8 of both"),
        (pickles, repickle("test_batch", data=np.zeros((20, 784), np.uint8)), "test_batch", "uint8 (20, 784), where"),
        (pickles, repickle("test_batch", data="x"), "test_batch", "'data' is str"),
        (pickles, rewrite("test_batch", lambda raw: pickle.dumps(Evil())), "test_batch", "is refused: it asks for"),
        (binary, rewrite("data_batch_2.bin", lambda raw: raw[:-1]), "data_batch_2.bin", "no multiple of 3,073"),
        (binary, rewrite("data_batch_2.bin", lambda raw: raw[:3073]), "data_batch_2.bin", "where 8 of both"),
        (binary, rewrite("data_batch_1.bin", lambda raw: b"\x0b" + raw[1:]), "data_batch_1.bin", "label 11 is not"),
        (parquet, rewrite("train-00000-of-00001.parquet", lambda raw: raw[:-9]), "train-00000", "read as parquet"),
        (parquet, lambda f: (f / "test-00000-of-00001.parquet").unlink(), "test-00000-of-00001.parquet", "is missing"),
        (
            lambda f, name: parquet(f, name, 2),
            lambda f: (f / "train-00001-of-00002.parquet").unlink(),
            "train-00000-of-00002.parquet",
            "is one of 2 files, of which 1 are there",
        ),
        (
            parquet,
            lambda f: polars.DataFrame({"label": [1]}).write_parquet(f / "test-00000-of-00001.parquet"),
            "test-00000-of-00001.parquet",
            "has columns label, where img and label",
        ),
        (folders, lambda f: (f / "train/cat").rename(f / "cat"), "train/cat", "has no image, where CIFAR-10 has cat"),
        (folders, lambda f: (f / "train/cat").rename(f / "train/kat"), "train/kat", "is no class of CIFAR-10"),
        (folders, lambda f: (f / "test").rename(f / "else"), "test", "is missing; there are only training images"),
    ],
)
def test_broken_folders_are_named(make: Any, change: Change, file: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    make(folder, "cifar10")
    change(folder)
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        load("cifar10", folder)
    assert file in str(caught.value)
    assert says in str(caught.value)
    assert not Path("evil").exists()


def test_broken_images_are_named(tmp_path: Path) -> None:
    folders(tmp_path / "a", "cifar10")
    image = next((tmp_path / "a/train/dog").iterdir())
    image.write_bytes(png(np.zeros((32, 31, 3), np.uint8)))
    with pytest.raises(ValueError, match=rf"{image.name}' is an image of 31 x 32 pixels, where 32 x 32 is expected"):
        load("cifar10", tmp_path / "a")
    image.write_bytes(b"no image")
    with pytest.raises(BadImage, match=image.name):
        load("cifar10", tmp_path / "a")
    (tmp_path / "b").mkdir()
    parquet(tmp_path / "b", "cifar10")
    file = tmp_path / "b/train-00000-of-00001.parquet"
    cells = polars.read_parquet(file).to_dict(as_series=False)
    cells["img"][3]["bytes"] = b"broken"
    polars.DataFrame(cells).write_parquet(file)
    with pytest.raises(BadImage, match=rf"{file.name}, row 3' cannot be read"):
        load("cifar10", tmp_path / "b")


@pytest.mark.parametrize("layout", ["Python pickles", "binary files", "parquet", "class folders"])
@pytest.mark.parametrize(("asked", "there"), [("cifar10", "cifar100"), ("cifar100", "cifar10")])
def test_one_set_taken_for_the_other_is_noticed(asked: str, there: str, layout: str, tmp_path: Path) -> None:
    LAYOUTS[layout](tmp_path, there)
    with pytest.raises(ValueError, match=f"use '{there}' for it"):
        load(asked, tmp_path)


def test_other_places_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"expected are the files data_batch_1, .* or the class folders train/air"
    ):
        load("cifar10", tmp_path)
    (tmp_path / "test").touch()
    for name in ("cifar10", "cifar100"):
        with pytest.raises(FileNotFoundError, match="is not found in"):
            load(name, tmp_path)
    (tmp_path / "cifar-10-python.tar.gz").touch()
    with pytest.raises(ValueError, match="is a file, which is to be unpacked first"):
        load("cifar10", tmp_path / "cifar-10-python.tar.gz")
    pickles(tmp_path, "cifar10")
    for file in FILES["cifar10"]["train"]:
        repickle(file, labels=[1] * 8)(tmp_path)
    with pytest.raises(ValueError, match=r"no training image has label 0 \(airplane\)"):
        load("cifar10", tmp_path)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The real CIFAR-10, and the seconds (wall and of this process) to load it for the first and the second time."""
    if not (SHARED / "cifar10").is_dir():
        pytest.skip(f"the real CIFAR-10 is not in {SHARED}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSWAYED_CACHE", str(tmp_path_factory.mktemp("cache")))
        seconds = []
        for _ in range(2):
            start = time.perf_counter(), time.process_time()
            data = load("cifar10", SHARED / "cifar10")
            seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        return data, seconds


@pytest.mark.slow
def test_the_real_cifar10(real: Any) -> None:
    data, _ = real
    facts = known("cifar10")
    assert (len(data.train), len(data.test), data.classes) == (50000, 10000, facts.classes)
    assert np.bincount(data.train.labels).tolist() == [5000] * 10
    assert np.bincount(data.test.labels).tolist() == [1000] * 10
    assert np.array_equal(data.train.index, np.arange(50000))
    pixels = data.train.inputs[::5].numpy() / 255
    assert pixels.mean((0, 2, 3)) == pytest.approx(facts.mean, abs=3e-3)
    assert pixels.std((0, 2, 3)) == pytest.approx(facts.std, abs=3e-3)


@pytest.mark.slow
def test_the_real_cifar10_is_in_the_order_of_its_other_labels(real: Any) -> None:
    data, _ = real
    embedded = load("features", SHARED / "embeddings" / "cifar10.npz")
    for split, other in ((data.train, embedded.train), (data.test, embedded.test)):
        assert np.array_equal(split.labels, other.labels)
        assert np.array_equal(split.index, other.index)
    human = read_pickle(SHARED / "cifar-n" / "CIFAR-10_human.pt")
    assert np.array_equal(data.train.labels, human["clean_label"])


@pytest.mark.slow
def test_the_real_cifar10_loads_in_time(real: Any) -> None:
    # Of this process: another one on the same core is none of the loader's business.
    (_, first), (_, cached) = real[1]
    assert first < 60
    assert cached < 3
