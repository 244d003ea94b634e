"""Class folders of images: which classes and sizes they have, and what is said when they are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")

from PIL import Image

from unswayed.data import BadImage, Data, Loader, augmentation, load


def draw(path: Path, value: int, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 50, 100)).save(path)


def fill(root: Path, counts: dict[str, int], value: int = 0, **options: Any) -> Path:
    for name, count in counts.items():
        for n in range(count):
            value += 1
            draw(root / name / f"{n:03d}.png", value, **options)
    return root


def values(data: Data, part: str = "train") -> list[int]:
    split = data.train if part == "train" else data.tests[part]
    assert split.read is not None
    return [int(split.read(row)[0, 0, 0]) for row in range(len(split))]


@pytest.mark.parametrize("test", ["test", "val", "valid", "validation", "testing"])
def test_training_and_test_folders(test: str, tmp_path: Path) -> None:
    fill(tmp_path / "train", {"dog": 2, "cat": 3})
    fill(tmp_path / test, {"cat": 1, "dog": 1}, value=50)
    data = load("folder", tmp_path)
    assert data.classes == ("cat", "dog")
    assert data.in_shape == (3, 8, 8)
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1]
    assert values(data) == [3, 4, 5, 1, 2]
    part = "test" if test.startswith("test") else "val"
    assert list(data.tests) == [part]
    assert values(data, part) == [51, 52]
    assert data.train.inputs is None
    assert data.train.index is None
    assert f"5 in train, 2 in {test}" in data.layout


def test_test_and_validation_images_are_both_there(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        fill(tmp_path / part, {"a": 2, "b": 2})
    assert list(load("folder", tmp_path).tests) == ["test", "val"]


def test_folders_that_are_numbers_stand_in_their_order(tmp_path: Path) -> None:
    fill(tmp_path / "train", {str(n): 1 for n in (10, 9, 0, 1)})
    fill(tmp_path / "val", {"9": 1})
    data = load("folder", tmp_path)
    assert data.classes == ("0", "1", "9", "10")
    assert data.test.labels.tolist() == [2]


def test_without_a_test_folder_a_fifth_of_each_class_is_held_out(tmp_path: Path) -> None:
    fill(tmp_path, {"a": 10, "b": 5, "c": 1})
    data = load("folder", tmp_path)
    assert np.bincount(data.train.labels).tolist() == [8, 4, 1]
    assert np.bincount(data.test.labels).tolist() == [2, 1]
    assert sorted(values(data) + values(data, "test")) == list(range(1, 17))
    assert values(load("folder", tmp_path), "test") == values(data, "test")
    assert "20% of each class are held out: 3" in data.layout


def test_folders_in_folders_other_files_and_hidden_ones(tmp_path: Path) -> None:
    fill(tmp_path / "train", {"a/deep/er": 1, "a": 1, "b": 2})
    fill(tmp_path / "val", {"a": 1, "b": 1})
    for name in ("train/a/readme.txt", "train/a/.hidden.png", "train/loose.png", "train/.cache/x.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    draw(tmp_path / "train/a/UPPER.PNG", 9)
    data = load("folder", tmp_path)
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1]
    assert sorted(values(data)) == [1, 2, 3, 4, 9]


def test_grey_images_stay_grey_unless_one_is_not(tmp_path: Path) -> None:
    fill(tmp_path / "train", {"a": 2, "b": 2}, mode="L")
    fill(tmp_path / "val", {"a": 1, "b": 1}, mode="L")
    assert load("folder", tmp_path).in_shape == (1, 8, 8)
    draw(tmp_path / "val/b/colour.png", 3)
    data = load("folder", tmp_path)
    assert data.in_shape == (3, 8, 8)
    assert data.train.read is not None
    assert data.train.read(0).shape == (3, 8, 8)


@pytest.mark.parametrize(
    ("sizes", "side"), [([(8, 8)], 8), ([(20, 30), (40, 50), (64, 60)], 40), ([(500, 400)], 224), ([(12, 10)], 10)]
)
def test_images_come_out_in_one_size(sizes: list[tuple[int, int]], side: int, tmp_path: Path) -> None:
    for part in ("train", "val"):
        for name in "ab":
            for n, size in enumerate(sizes):
                draw(tmp_path / part / name / f"{n}.png", n + 1, size)
    data = load("folder", tmp_path)
    assert data.in_shape == (3, side, side)
    for split in (data.train, data.test):
        x, index = next(Loader(split, 100, shuffle=False).epoch(0))
        assert x.shape == (2 * len(sizes), 3, side, side)
        assert torch.equal((x[:, 0, 0, 0] * 255).round().long(), index % len(sizes) + 1)
    x, _ = next(Loader(data.train, 100, augment=augmentation("resized_crop(6) + flip")).epoch(0))
    assert x.shape == (2 * len(sizes), 3, 6, 6)


def test_a_size_that_was_not_looked_at_does_no_harm(tmp_path: Path) -> None:
    fill(tmp_path / "train", {"a": 70, "b": 70})
    fill(tmp_path / "val", {"a": 1, "b": 1})
    draw(tmp_path / "train/a/001.png", 1, (30, 20))  # between two of the images that are looked at
    data = load("folder", tmp_path)
    assert data.in_shape == (3, 8, 8)
    assert next(Loader(data.train, 140).epoch(0))[0].shape == (140, 3, 8, 8)


@pytest.mark.parametrize("workers", [0, 1])
def test_broken_images_end_the_run_or_are_left_out(workers: int, tmp_path: Path) -> None:
    fill(tmp_path / "train", {"a": 3, "b": 3})
    fill(tmp_path / "val", {"a": 1, "b": 1})
    (tmp_path / "train/b/001.png").write_bytes(b"broken")
    with pytest.raises(BadImage, match=r"b/001\.png' cannot be read as an image"):
        list(Loader(load("folder", tmp_path).train, 4, workers=workers).epoch(0))
    loader = Loader(load("folder", tmp_path, on_bad_image="skip").train, 4, workers=workers)
    with pytest.warns(UserWarning, match=r"b/001\.png' .*; it is left out"):
        seen = torch.cat([index for _, index in loader.epoch(0)])
    assert sorted(seen.tolist()) == [0, 1, 2, 3, 5]
    # It was told once.
    assert len(torch.cat([index for _, index in loader.epoch(1)])) == 5


@pytest.mark.parametrize(
    ("folders", "error", "says"),
    [
        ({}, ValueError, "holds no folder, where a folder for each class is expected"),
        ({"train/a": 2}, ValueError, "holds only the folder 'a', where a folder for each class"),
        ({"val/a": 1, "val/b": 1}, FileNotFoundError, "train' is missing; there are only images to test on"),
        ({"train/a": 1, "train/b": 0}, FileNotFoundError, "train/b' has no image (.png, .jpg"),
        (
            {"train/cat": 1, "train/dog": 1, "val/cat": 1, "val/dgo": 1},
            ValueError,
            "val/dgo' is no class of the training images; did you mean 'dog'?",
        ),
        ({"train/a": 1, "train/b": 1, "val/a": 0}, FileNotFoundError, "val' has no images in class folders"),
    ],
)
def test_mistakes_are_told(folders: dict[str, int], error: type[Exception], says: str, tmp_path: Path) -> None:
    for name, count in folders.items():
        (tmp_path / name).mkdir(parents=True)
        fill(tmp_path, {name: count})
    with pytest.raises(error) as caught:
        load("folder", tmp_path)
    assert says in str(caught.value)


def test_one_image_a_class_is_not_enough_to_test_on(tmp_path: Path) -> None:
    fill(tmp_path, {"a": 1, "b": 1})
    with pytest.raises(ValueError, match="no class has two examples"):
        load("folder", tmp_path)


def test_a_file_is_no_folder_and_broken_images_show_no_size(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file, where a folder"):
        load("folder", tmp_path / "file")
    for name in ("train/a/1.png", "train/a/2.png", "train/b/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"broken")
    with pytest.raises(BadImage, match=r"a/[12]\.png"):
        load("folder", tmp_path)
