"""WebVision, ILSVRC12 and Clothing1M from the published lists, with a few tiny images each."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")

from PIL import Image

from unswayed.data import BadImage, Data, load
from unswayed.data.images import ImageFiles
from unswayed.data.web import _ANIMALS, _SYNSETS


def draw(path: Path, value: int = 0, size: tuple[int, int] = (4, 3)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, 100, 200)).save(path, "PNG")


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def first_pixel(data: Data, split: str, row: int) -> int:
    part = data.train if split == "train" else data.tests[split]
    assert part.read is not None
    return int(part.read(row)[0, 0, 0])


@pytest.fixture
def webvision(tmp_path: Path) -> Path:
    """The published lists of all classes: two training images a class, some of other classes in between."""
    train, val = [], []
    for label in [*range(30), 50, 999, *range(30, 50)]:
        for n in range(2):
            train.append(f"google/q{label:04d}/{n}.jpg {label}")
            if label < 50:
                draw(tmp_path / f"google/q{label:04d}/{n}.jpg", 2 * label + n)
        val.append(f"val{label:06d}.jpg {label}")
        draw(tmp_path / f"val_images_256/val{label:06d}.jpg", label % 250)
    write(tmp_path / "info/train_filelist_google.txt", train)
    write(tmp_path / "info/val_filelist.txt", val)
    return tmp_path


def test_webvision_as_published(webvision: Path) -> None:
    data = load("webvision", webvision)
    assert (data.num_classes, data.in_shape, len(data.train), len(data.test)) == (50, (3, 224, 224), 100, 50)
    assert list(data.tests) == ["test"]
    assert np.array_equal(data.train.labels, np.repeat(np.arange(50), 2))
    # The published order counts the images of the other classes too.
    assert data.train.index is not None
    assert np.array_equal(data.train.index, [*range(60), *range(64, 104)])
    assert data.train.inputs is None
    assert data.train.size == 224
    assert [first_pixel(data, "train", row) for row in (0, 1, 99)] == [0, 1, 99]
    assert [first_pixel(data, "test", row) for row in (0, 49)] == [0, 49]
    assert data.train.read is not None
    assert data.train.read(0).shape == (3, 3, 4)
    assert "train_filelist_google.txt" in data.layout


def test_webvision_from_lists_of_ones_own(webvision: Path) -> None:
    """Such lists stand beside the published ones, which they come before, and have all sorts of ends of lines."""
    lines = [f"google/q{label:04d}/1.jpg\t{label}" for label in range(50)]
    write(webvision / "webvision_mini_train.txt", lines)
    (webvision / "webvision_mini_val.txt").write_bytes(
        b"".join(b"val_images_256/val%06d.jpg %d\r\n\r\n" % (label, label) for label in range(50))
    )
    data = load("webvision", webvision)
    assert (len(data.train), len(data.test)) == (50, 50)
    assert data.train.index is None
    assert [first_pixel(data, "train", row) for row in (0, 49)] == [1, 99]
    assert first_pixel(data, "test", 7) == 7


def test_images_may_be_where_their_archive_puts_them(webvision: Path) -> None:
    (webvision / "google_resized_256").mkdir()
    (webvision / "google").rename(webvision / "google_resized_256/google")
    (webvision / "val_images_256").rename(webvision / "val_images")
    data = load("webvision", webvision)
    assert first_pixel(data, "train", 3) == 3
    assert first_pixel(data, "test", 3) == 3


def test_absolute_paths_and_paths_with_spaces(webvision: Path, tmp_path: Path) -> None:
    place = webvision / "my images"
    for label in range(50):
        draw(place / f"{label}.png", label)
    write(webvision / "webvision_mini_train.txt", [f"{place}/{label}.png {label}" for label in range(50)])
    write(webvision / "webvision_mini_val.txt", [f"/my images/{label}.png  {label}" for label in range(50)])
    data = load("webvision", webvision)
    assert first_pixel(data, "train", 5) == 5
    assert first_pixel(data, "test", 6) == 6


@pytest.mark.parametrize("names", [tuple(map(str, range(50))), _SYNSETS])
def test_ilsvrc12_from_class_folders(names: tuple[str, ...], webvision: Path) -> None:
    for label, name in enumerate(names):
        for n in (1, 0):
            draw(webvision / "imagenet/val" / name / f"ILSVRC2012_val_{n}.JPEG", 2 * label + n)
    (webvision / "imagenet/val" / names[0] / ".hidden.JPEG").touch()
    (webvision / "imagenet/val" / names[0] / "readme.txt").touch()
    draw(webvision / "imagenet/val/n99999999/a.JPEG")
    data = load("webvision", webvision)
    assert list(data.tests) == ["test", "ilsvrc12"]
    assert np.array_equal(data.tests["ilsvrc12"].labels, np.repeat(np.arange(50), 2))
    assert [first_pixel(data, "ilsvrc12", row) for row in (0, 1, 98)] == [0, 1, 98]

    for root in (webvision / "imagenet/val", webvision / "imagenet", webvision):
        alone = load("ilsvrc12", root)
        assert (len(alone.train), len(alone.test), list(alone.tests)) == (0, 100, ["test"])
        assert first_pixel(alone, "test", 97) == 97
        assert alone.layout.startswith("test images only")

    (webvision / "imagenet/val" / names[7]).rename(webvision / "elsewhere")
    with pytest.raises(FileNotFoundError, match=rf"val/{names[7]}' is missing"):
        load("webvision", webvision)


def test_ilsvrc12_from_a_list(webvision: Path) -> None:
    for label in range(50):
        draw(webvision / f"imagenet/val/{label}.JPEG", label)
    write(webvision / "imagenet_val.txt", [f"{label}.JPEG {label}" for label in (*range(49, -1, -1), 70)])
    for data in (load("webvision", webvision), load("ilsvrc12", webvision)):
        split = list(data.tests)[-1]
        assert np.array_equal(data.tests[split].labels, np.arange(49, -1, -1))
        assert first_pixel(data, split, 0) == 49


def test_the_fifty_classes() -> None:
    assert len(set(_SYNSETS)) == len(set(_ANIMALS)) == 50
    assert list(_SYNSETS) == sorted(_SYNSETS)
    assert (_ANIMALS[0], _ANIMALS[2], _ANIMALS[49]) == ("tench", "great white shark", "African crocodile")


KEYS = [f"images/{label % 10}/{label:02d}/{n},{n}.jpg" for label in range(14) for n in range(3)]


@pytest.fixture(params=["published", "annotations"])
def clothing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The key lists of Clothing1M, where a third of the labels are wrong; some images have clean labels too."""
    folder = tmp_path / {"published": ".", "annotations": "annotations"}[request.param]
    noisy = {key: (i // 3 + (i % 3 == 0)) % 14 for i, key in enumerate(KEYS)}
    clean = {f"images/clean/{label}_{part}.jpg": label for label in range(14) for part in ("val", "test")}
    write(folder / "noisy_label_kv.txt", [f"{key} {label}" for key, label in reversed(noisy.items())])
    write(folder / "clean_label_kv.txt", [f"{key} {label}" for key, label in clean.items()])
    write(folder / "noisy_train_key_list.txt", KEYS)
    for part in ("val", "test"):
        write(folder / f"clean_{part}_key_list.txt", [key for key in clean if part in key])
    for i, key in enumerate(KEYS):
        draw(tmp_path / key, i)
    for key, label in clean.items():
        draw(tmp_path / key, 100 + label)
    return tmp_path


def test_clothing1m_from_key_lists(clothing: Path) -> None:
    data = load("clothing1m", clothing)
    assert (data.num_classes, len(data.classes), data.in_shape) == (14, 14, (3, 224, 224))
    assert list(data.tests) == ["test", "val"]
    assert np.array_equal(data.train.labels, [(i // 3 + (i % 3 == 0)) % 14 for i in range(42)])
    assert np.array_equal(data.test.labels, np.arange(14))
    assert data.train.index is not None
    assert np.array_equal(data.train.index, np.arange(42))
    assert [first_pixel(data, "train", row) for row in (0, 41)] == [0, 41]
    assert [first_pixel(data, split, 3) for split in ("test", "val")] == [103, 103]


def test_clothing1m_without_the_folder_that_keys_begin_with(clothing: Path) -> None:
    for folder in (clothing / "images").iterdir():
        folder.rename(clothing / folder.name)
    assert first_pixel(load("clothing1m", clothing), "train", 41) == 41


def test_clothing1m_from_lists_with_labels(tmp_path: Path) -> None:
    for label in range(14):
        draw(tmp_path / f"images/{label}.jpg", label)
    for name in ("noisy_train", "clean_val", "clean_test"):
        write(tmp_path / f"annotations/{name}.txt", [f"/images/{label}.jpg {label}" for label in range(14)])
    data = load("clothing1m", tmp_path)
    assert np.array_equal(data.train.labels, np.arange(14))
    assert data.train.index is None
    assert first_pixel(data, "train", 9) == 9


def test_broken_images_are_named_when_they_are_read(webvision: Path) -> None:
    (webvision / "google/q0000/0.jpg").write_bytes(b"\xff\xd8 broken")
    (webvision / "google/q0049/1.jpg").unlink()
    data = load("webvision", webvision, on_bad_image="skip")
    assert data.train.on_bad_image == data.test.on_bad_image == "skip"
    assert data.train.read is not None
    with pytest.raises(BadImage, match=r"q0000/0\.jpg'"):
        data.train.read(0)
    with pytest.raises(BadImage, match=r"q0049/1\.jpg' .* no such file"):
        data.train.read(99)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (
            "info/train_filelist_google.txt",
            "google/q0000/0.jpg\n",
            "line 1: 'google/q0000/0.jpg', where the path of an",
        ),
        ("info/train_filelist_google.txt", "a.jpg 0\nb.jpg x\n", "line 2: 'b.jpg x'"),
        (
            "info/train_filelist_google.txt",
            "a.jpg 0\n\nb.jpg -1\n",
            "line 3: 'b.jpg -1', where the path of an image and",
        ),
        ("info/train_filelist_google.txt", "a.jpg 1000\n", "its class (0 to 999)"),
        ("info/train_filelist_google.txt", "google/q0000/0.jpg 0\n", "no image of class 1; .* is it whole"),
        ("info/train_filelist_google.txt", "a.jpg 70\n", "no image of class 0"),
        ("info/val_filelist.txt", "", "no image of class 0"),
    ],
)
def test_broken_lists_are_named(file: str, content: str, words: str, webvision: Path) -> None:
    (webvision / file).write_text(content)
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")) as caught:
        load("webvision", webvision)
    assert file in str(caught.value)


def test_missing_files_are_named(webvision: Path, tmp_path: Path) -> None:
    for name, words in [
        ("webvision", "no 'webvision_mini_train.txt' and no 'info/train_filelist_google.txt'"),
        ("ilsvrc12", "class folders 0 to 49"),
        ("clothing1m", "noisy_train_key_list.txt"),
    ]:
        with pytest.raises(FileNotFoundError, match=words):
            load(name, webvision / "google")
        with pytest.raises(NotADirectoryError, match="is a file"):
            load(name, webvision / "info/val_filelist.txt")
    (webvision / "val_images_256").rename(webvision / "val")
    with pytest.raises(FileNotFoundError, match=r"val_filelist\.txt' .* like .*val_images_256/val000000\.jpg' or "):
        load("webvision", webvision)
    (webvision / "info/val_filelist.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"WebVision .* no 'info/val_filelist\.txt'"):
        load("webvision", webvision)


@pytest.mark.parametrize("clothing", ["published"], indirect=True)
def test_broken_key_lists_are_named(clothing: Path) -> None:
    (clothing / "clean_val_key_list.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"clean_val_key_list\.txt"):
        load("clothing1m", clothing)
    write(clothing / "clean_val_key_list.txt", ["images/clean/0_val.jpg", "images/clean/99.jpg"])
    with pytest.raises(ValueError, match=r"line 2: 'images/clean/99\.jpg' has no label in 'clean_label_kv\.txt'"):
        load("clothing1m", clothing)
    write(clothing / "clean_label_kv.txt", ["images/clean/0_val.jpg 14"])
    with pytest.raises(ValueError, match=r"clean_label_kv\.txt', line 1: .*14.* \(0 to 13\)"):
        load("clothing1m", clothing)


def test_a_million_images_take_the_memory_of_their_names(tmp_path: Path) -> None:
    """Worker processes share them: what they are sent has no Python object a name."""
    n = 200_000
    names = [f"images/{i % 10}/{i % 100}/{i:010d},{i}.jpg" for i in range(n)]
    for part, rows in (("noisy_train", n), ("clean_val", 14), ("clean_test", 14)):
        write(tmp_path / f"{part}.txt", [f"{name} {i % 14}" for i, name in enumerate(names[:rows])])
    draw(tmp_path / names[0])
    data = load("clothing1m", tmp_path)
    assert len(data.train) == n
    assert isinstance(data.train.read, ImageFiles)
    sent = len(pickle.dumps(data.train.read))
    assert sent < sum(map(len, names)) + 8 * n + 1000
    assert data.train.read.path(n - 1) == str(tmp_path / names[-1])


def test_images_are_streamed(webvision: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading reads the lists alone: images may be many times the memory."""
    opened: list[object] = []
    real = Image.open
    monkeypatch.setattr(Image, "open", lambda file, **options: opened.append(file) or real(file, **options))
    data = load("webvision", webvision)
    assert not opened
    assert data.train.inputs is None
    assert data.train.read is not None
    assert data.train.read(0).dtype == torch.uint8
    assert len(opened) == 1
