"""A user's own arrays and data sets, taken as they are or refused in the user's words."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from unswayed.data import Data, Loader, augmentation, wrap

X = torch.arange(24.0).view(6, 4)
Y = [0, 1, 2, 0, 1, 2]


class Own(Dataset):  # type: ignore[type-arg]
    """Examples that count how often they were read."""

    def __init__(self, examples: list[Any], targets: Any = None) -> None:
        self.examples, self.reads = examples, 0
        if targets is not None:
            self.targets = targets

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: int) -> Any:
        self.reads += 1
        return self.examples[row]


def pairs(n: int = 6) -> list[Any]:
    return [(X[row], Y[row]) for row in range(n)]


def batch(data: Data, **options: Any) -> torch.Tensor:
    return next(Loader(data.train, 6, shuffle=False, **options).epoch(0))[0]


@pytest.mark.parametrize(
    "x", [X, X.numpy(), X.double(), X.half(), X.bfloat16(), X.int(), X.tolist(), X.numpy().astype(">f8"), X.byte()]
)
@pytest.mark.parametrize("y", [Y, np.array(Y), torch.tensor(Y), np.array(Y, dtype=np.uint8), np.array(Y) + 0.0])
def test_arrays_of_every_kind(x: Any, y: Any) -> None:
    data = wrap((x, y), (x, y))
    assert data.train.inputs is not None
    assert data.train.inputs.dtype == torch.float32
    assert torch.equal(data.train.inputs, X)
    assert data.train.labels.tolist() == Y
    assert (data.num_classes, data.classes, data.in_shape, data.name) == (3, ("0", "1", "2"), (4,), "own")
    assert torch.equal(batch(data), X)
    assert len(data.test) == 6


def test_images_in_memory_stay_uint8_and_are_scaled_in_batches() -> None:
    x = torch.arange(6 * 3 * 4 * 5).view(6, 3, 4, 5).to(torch.uint8)
    data = wrap((x, Y))
    assert data.in_shape == (3, 4, 5)
    assert data.train.inputs is not None
    assert data.train.inputs.dtype == torch.uint8
    assert torch.equal(batch(data), x.float() / 255)
    assert batch(data, augment=augmentation("crop(1) + flip")).shape == x.shape
    assert wrap((x[:, 0], Y)).in_shape == (1, 4, 5)


def test_labels_that_are_text_or_any_numbers() -> None:
    data = wrap((X, ["b", "a", "c"] * 2), (X[:2], ["c", "a"]))
    assert data.classes == ("a", "b", "c")
    assert data.train.labels.tolist() == [1, 0, 2] * 2
    assert data.test.labels.tolist() == [2, 0]
    data = wrap((X, [10, -3, 10, -3, 7, 7]))
    assert data.classes == ("-3", "7", "10")
    assert data.train.labels.tolist() == [2, 0, 2, 0, 1, 1]
    assert wrap((X, np.array(Y) > 0)).classes == ("0", "1")
    assert wrap((X, np.array(["x", "y"] * 3, dtype=object))).classes == ("x", "y")


def test_classes_can_be_said() -> None:
    assert wrap((X, Y), num_classes=5).classes == ("0", "1", "2", "3", "4")
    data = wrap((X, Y), classes=["cat", "dog", "eel", "fox"])
    assert (data.num_classes, data.classes[3], data.train.labels.tolist()) == (4, "fox", Y)
    assert wrap((X, ["b", "a"] * 3), classes=["b", "a"]).train.labels.tolist() == [0, 1] * 3


def test_a_data_set_is_read_when_it_is_needed() -> None:
    own = Own(pairs())
    data = wrap(own, Own(pairs(3)))
    assert data.train.inputs is None
    assert data.train.labels.tolist() == Y
    assert data.in_shape == (4,)
    before = own.reads
    assert torch.equal(batch(data), X)
    assert own.reads == before + 6
    assert torch.equal(batch(data, workers=2), X)


def test_a_list_of_labels_spares_reading_and_is_not_trusted_blindly() -> None:
    many = [(X[row % 6], row % 3) for row in range(600)]
    own = Own(many, targets=[label for _, label in many])
    assert wrap(own).train.labels.tolist() == own.targets
    assert own.reads < 40
    moved = Own(many, targets=[0] * 600)
    assert wrap(moved).train.labels.tolist() == own.targets
    assert moved.reads >= 600
    transformed = Own([(x, 2 - y) for x, y in many], targets=own.targets)
    transformed.target_transform = lambda y: 2 - y
    assert wrap(transformed).train.labels.tolist() == [2 - y for y in own.targets]
    part = Subset(Own(many, targets=own.targets), list(range(100, 400)))
    assert wrap(part).train.labels.tolist() == own.targets[100:400]
    assert part.dataset.reads < 40


def test_what_torch_calls_a_tensor_data_set_lies_in_memory() -> None:
    data = wrap(TensorDataset(X, torch.tensor(Y)))
    assert data.train.inputs is not None
    assert torch.equal(data.train.inputs, X)


def test_images_of_a_data_set() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(6 * 4 * 5 * 3, dtype=np.uint8).reshape(6, 4, 5, 3)
    expected = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    kinds = {
        "Pillow": [image.fromarray(each) for each in pixels],
        "tensors": list(expected),
        "floats": list(expected.float() / 255),
    }
    for kind, images in kinds.items():
        data = wrap(Own([(x, y, "more") for x, y in zip(images, Y)]))
        assert data.in_shape == (3, 4, 5), kind
        assert torch.allclose(batch(data), expected.float() / 255), kind
    grey = wrap(Own([(x[0], torch.tensor(y)) for x, y in zip(expected, Y)]))
    assert grey.in_shape == (1, 4, 5)


class Noisy(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 6

    def __getitem__(self, row: int) -> Any:
        own = [random.random(), np.random.rand(), float(torch.rand(()))]  # noqa: NPY002
        return torch.tensor([row, *own]), row % 2


def test_what_a_data_set_draws_can_be_repeated() -> None:
    data = wrap(Noisy())
    loader = Loader(data.train, 2, seed=3)
    torch.manual_seed(0)
    state = torch.get_rng_state()

    def epoch(loader: Loader, number: int, start: int = 0) -> torch.Tensor:
        return torch.cat([x for x, _ in loader.epoch(number, start)])

    first = epoch(loader, 1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    random.seed(99)
    assert torch.equal(epoch(loader, 1), first)
    assert torch.equal(epoch(loader, 1, start=2), first[4:])
    assert torch.equal(epoch(Loader(data.train, 2, seed=3, workers=2), 1), first)
    shares = [Loader(data.train, 2, seed=3, rank=rank, world=2) for rank in (0, 1)]
    assert torch.equal(torch.stack([epoch(each, 1) for each in shares], 1).flatten(0, 1), first)
    assert len(set(first[:, 1:].flatten().tolist())) == 18
    other, again = epoch(loader, 2), first[first[:, 0].argsort()]
    assert not torch.equal(other[other[:, 0].argsort()][:, 1:], again[:, 1:])


@given(st.lists(st.integers(-5, 5), min_size=4, max_size=30).filter(lambda y: 1 < len(set(y)) < len(y)))
def test_classes_name_the_labels(y: list[int]) -> None:
    data = wrap((np.zeros((len(y), 2)), y))
    assert [int(data.classes[label]) for label in data.train.labels] == y
    assert [int(name) for name in data.classes] == sorted(set(y))


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter(pairs())


NAN = X.clone()
NAN[2, 1] = float("nan")


@pytest.mark.parametrize(
    ("train", "options", "error", "says"),
    [
        ((X, Y, Y), {}, ValueError, "given as (X, y), not as a tuple of 3"),
        ((X, Y[:5]), {}, ValueError, "there are 5 labels, but 6 of inputs"),
        ((X[:, 0], Y), {}, ValueError, "train has shape (6,), where a row of numbers"),
        ((X, torch.eye(3)[Y]), {}, ValueError, "y.argmax(1)"),
        ((X, [0, 1, 0.5, 0, 1, 1]), {}, ValueError, "train, row 2: the label 0.5 is not allowed"),
        ((X, [0, 1, float("nan"), 0, 1, 1]), {}, ValueError, "train, row 2: the label nan"),
        ((X, [0, 1, float("inf"), 0, 1, 1]), {}, ValueError, "train, row 2: the label inf"),
        ((X, [0, 1, "a", 0, 1, 1]), {}, ValueError, "train, row 2: the label 'a' is of another kind than the first"),
        ((X, [1] * 6), {}, ValueError, "all labels are '1'; a classifier needs two classes"),
        ((X, list(range(6))), {}, ValueError, "each example has a label of its own"),
        ((X, Y), {"num_classes": 2}, ValueError, "train, row 2: the label 2 is not allowed; the classes are 0, 1"),
        ((X, ["a", "b"] * 3), {"num_classes": 3}, ValueError, "num_classes=3, but train has 2 different labels"),
        ((X, ["cat", "dgo"] * 3), {"classes": ["cat", "dog"]}, ValueError, "'dgo' is not allowed; did you mean 'dog'?"),
        ((X, Y), {"classes": ["a", "b", "a"]}, ValueError, "the class name 'a' stands twice"),
        ((X, Y), {"classes": ["a", "b"], "num_classes": 3}, ValueError, "there are 2 names of classes"),
        ((NAN, Y), {}, ValueError, "train, row 2, column 1: nan is not allowed"),
        ((X.double() * 1e300, Y), {}, ValueError, "train, row 0, column 1: 1e+300 is not allowed; float32"),
        ((np.zeros((6, 8, 9, 3), np.uint8), Y), {}, ValueError, "have their channels last"),
        ((np.array([["a"]] * 6), Y), {}, ValueError, "train holds text, where numbers are expected"),
        (([[1, 2], [3]], [0, 1]), {}, ValueError, "rows differ in length"),
        ((X.to_sparse(), Y), {}, ValueError, "a dense array"),
        (Stream(), {}, TypeError, "train is a Stream, where (X, y) or a data set with"),
        (DataLoader(Own(pairs())), {}, TypeError, "train=loader.dataset"),
        (7, {}, TypeError, "train is a int"),
        (Own([]), {}, ValueError, "train has no examples"),
        (Own([{"x": 1}]), {}, ValueError, "train[0] is a dict, where (x, label) is expected"),
        (Own([(X[0], torch.eye(3)[0])]), {}, ValueError, "train[0] has a label of shape (3,)"),
        (Own([("text", 0), ("text", 1), ("text", 1)]), {}, ValueError, "train[0] is a str, where a tensor"),
        (Own([(1.5, 0), (2.5, 1), (2.5, 1)]), {}, ValueError, "train[0] is a single number"),
    ],
)
def test_mistakes_are_told(train: Any, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        wrap(train, **options)
    assert says in str(caught.value)


def test_a_test_set_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"examples of test have shape \(3,\), those of train \(4,\)"):
        wrap((X, Y), (X[:, :3], Y))
    with pytest.raises(ValueError, match="test, row 1: the label 5 is not allowed; the classes are 0, 1, 2"):
        wrap((X, Y), (X, [0, 5, 1, 1, 1, 1]))
    with pytest.raises(ValueError, match="test has labels like 'a', where labels like 0 are expected"):
        wrap((X, Y), (X, ["a"] * 6))
    with pytest.raises(ValueError, match="own has no test set"):
        _ = wrap((X, Y)).test


def test_examples_of_different_shapes_are_named_when_they_are_read() -> None:
    data = wrap(Own([*pairs(5), (torch.zeros(3), 0)]))
    with pytest.raises(ValueError, match=r"train\[5\] is torch.float32 of shape \(3,\), where .* of \(4,\)"):
        batch(data)
