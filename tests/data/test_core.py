"""What a data set must be, the facts about the known ones, and the one call that reads them."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unswayed.data import BadImage, Data, Split, load
from unswayed.data.known import KNOWN, circle, known
from unswayed.data.loading import NAMES

LABELS = np.array([0, 1, 1])
IMAGES = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)


def split(**changes: Any) -> Split:
    return Split(**({"labels": LABELS, "inputs": IMAGES} | changes))


def data(**changes: Any) -> Data:
    usual = {
        "name": "own", "train": split(), "tests": {"test": split()}, "num_classes": 2, "in_shape": (1, 2, 2),
        "classes": ("a", "b"),
    }  # fmt: skip
    return Data(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": LABELS.astype(np.int32)}, "not int32 of shape (3,)"),
        ({"labels": LABELS[:, None]}, "not int64 of shape (3, 1)"),
        ({"inputs": None}, "either inputs (in memory) or read (from disk)"),
        ({"read": lambda row: IMAGES[row]}, "either inputs (in memory) or read (from disk)"),
        ({"inputs": IMAGES[:2]}, "there are 3 labels, but 2 of inputs"),
        ({"inputs": IMAGES.double()}, "not torch.float64"),
        ({"inputs": IMAGES[:, 0]}, "uint8 images (N, C, H, W) or float32 (N, ...), not torch.uint8 of shape (3, 2, 2)"),
        ({"inputs": torch.zeros(3)}, "not torch.float32 of shape (3,)"),
        ({"index": np.arange(2)}, "there are 3 labels, but 2 of index"),
        ({"human": {"worst": np.arange(4)}}, "there are 3 labels, but 4 of human 'worst'"),
        ({"on_bad_image": "ignore"}, "on_bad_image='ignore' is not allowed; it is 'error' or 'skip'"),
    ],
)
def test_a_split_is_whole(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        split(**changes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"classes": ("a",)}, "own: 2 classes, but 1 names of classes"),
        ({"train": split(labels=np.array([0, 1, 2]))}, "own, train split: label 2 is not allowed; labels are 0 to 1"),
        ({"tests": {"val": split(labels=np.array([0, -1, 0]))}}, "own, val split: label -1 is not allowed"),
        ({"train": split(labels=LABELS[:0], inputs=IMAGES[:0])}, "own, train split: there are no examples"),
        ({"in_shape": (3, 2, 2)}, "examples have shape (1, 2, 2), where (3, 2, 2) is expected"),
        ({"train": split(inputs=None, read=lambda row: IMAGES[row], size=9)}, "shape (1, 9, 9), where (1, 2, 2)"),
    ],
)
def test_a_data_set_fits_together(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        data(**changes)
    assert says in str(caught.value)


def test_a_data_set_may_have_no_test_set() -> None:
    alone = data(tests={})
    assert len(alone.train) == 3
    with pytest.raises(ValueError, match="own has no test set"):
        _ = alone.test


def test_the_first_test_set_is_the_test_set() -> None:
    tests = {"test": split(), "val": split(labels=LABELS[:2], inputs=IMAGES[:2])}
    assert len(data(tests=tests).test) == 3


def test_bad_images_survive_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(BadImage(Path("a.png"), "broken")))
    assert (error.path, error.reason) == ("a.png", "broken")
    assert str(error) == "'a.png' cannot be read as an image: broken"


@pytest.mark.parametrize("entry", KNOWN.values(), ids=lambda entry: entry.name)
def test_facts_fit_together(entry: Any) -> None:
    assert len(entry.mean) == len(entry.std) in (0, entry.in_shape[0])
    assert len(entry.classes) in (0, entry.num_classes)
    assert len(set(entry.classes)) == len(entry.classes)
    assert len(entry.flips) in (0, entry.num_classes)
    assert set(entry.flips) <= set(range(entry.num_classes))


def test_who_is_taken_for_whom() -> None:
    names = known("cifar10").classes
    moved = {names[i]: names[j] for i, j in enumerate(known("cifar10").flips) if i != j}
    assert moved == {"truck": "automobile", "bird": "airplane", "cat": "dog", "dog": "cat", "deer": "horse"}
    for name in ("mnist", "fashion_mnist", "digits"):
        flips = known(name).flips
        assert {i: j for i, j in enumerate(flips) if i != j} == {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}


def test_superclasses_of_cifar100() -> None:
    facts = known("cifar100")
    assert Counter(facts.superclasses) == dict.fromkeys(range(20), 5)
    group = {name: facts.superclasses[i] for i, name in enumerate(facts.classes)}
    assert len({group[name] for name in ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree")}) == 1
    assert len({group[name] for name in ("baby", "boy", "girl", "man", "woman")}) == 1
    assert group["bed"] != group["bee"]
    for label, flipped in enumerate(facts.flips):
        assert flipped != label
        assert facts.superclasses[flipped] == facts.superclasses[label]
    assert sorted(facts.flips) == list(range(100))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_a_circle_goes_through_each_group_once(groups: list[int]) -> None:
    to = circle(tuple(groups))
    for start, group in enumerate(groups):
        seen, at = set(), start
        while at not in seen:
            seen.add(at)
            at = to[at]
        assert at == start
        assert seen == {i for i, other in enumerate(groups) if other == group}


def test_the_digits_are_scikit_learns() -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_digits

    found = load("digits")
    pixels, labels = load_digits(return_X_y=True)
    assert found.train.inputs is not None
    assert found.test.inputs is not None
    assert found.train.index is not None
    assert found.test.index is not None
    place = np.argsort(np.concatenate([found.train.index, found.test.index]))
    images = torch.cat([found.train.inputs, found.test.inputs])[place]
    assert np.array_equal(np.rint(images.flatten(1).numpy() / (255 / 16)), pixels)
    assert np.array_equal(np.concatenate([found.train.labels, found.test.labels])[place], labels)
    assert int(images.max()) == 255
    shares = np.bincount(found.test.labels) / np.bincount(labels)
    assert np.abs(shares - 0.2).max() < 0.01


@pytest.mark.parametrize(
    ("name", "root", "options", "error", "says"),
    [
        ("cifar", None, {}, ValueError, "unknown data set 'cifar'; did you mean 'cifar10'?"),
        ("cifar10", None, {}, ValueError, "on the command line cifar10=FOLDER"),
        ("cifar10", "no-such-folder", {}, FileNotFoundError, "cifar10: there is no 'no-such-folder'"),
        ("digits", ".", {}, ValueError, "need no folder; leave '.' out"),
        ("digits", None, {"label": "y"}, ValueError, "label='y' is for 'features'"),
        ("digits", None, {"on_bad_image": "x"}, ValueError, "on_bad_image='x' is not allowed"),
    ],
)
def test_mistakes_in_the_call(name: str, root: Any, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        load(name, root, **options)
    assert says in str(caught.value)


def test_every_name_has_its_reader() -> None:
    assert set(KNOWN) | {"folder", "features"} == set(NAMES)
    for name in NAMES:
        if name != "digits":
            with pytest.raises((FileNotFoundError, ValueError), match=r"expected|holds|missing|no '"):
                load(name, Path(__file__).parent)
