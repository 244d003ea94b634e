"""Numbers and labels of a user's own, in the form that splits have: what tables and :func:`wrap` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.spec import did_you_mean

HELD_OUT = 0.2  # share of a table without a test part that becomes one


@dataclass(frozen=True)
class Place:
    """How errors call a row of something.

    >>> Place("'a.csv'", "line", 2)(0)
    "'a.csv', line 2"
    """

    name: str
    unit: str = "row"
    first: int = 0

    def __call__(self, row: int) -> str:
        return f"{self.name}, {self.unit} {row + self.first}"


def as_inputs(values: Any, place: Place, columns: Sequence[str] = ()) -> Tensor:
    """Return numbers as inputs of a split: uint8 images as they are, everything else as float32.

    Errors call columns by their names, if those are given.

    >>> as_inputs([[1, 2], [3, 4]], Place("X"))
    tensor([[1., 2.],
            [3., 4.]])
    >>> as_inputs(np.zeros((5, 28, 28), np.uint8), Place("X")).shape     # grey images
    torch.Size([5, 1, 28, 28])
    """
    x = values.detach() if isinstance(values, Tensor) else _array(values, place)
    if x.layout != torch.strided or x.is_complex():
        raise ValueError(f"{place.name} is {x.layout} of {x.dtype}, where a dense array of real numbers is expected")
    if x.dim() < 2 or not x.numel():
        raise ValueError(
            f"{place.name} has shape {tuple(x.shape)}, where a row of numbers an example is expected: (N, d), or "
            "images (N, C, H, W)"
        )
    if x.dtype == torch.uint8 and x.dim() == 3:
        x = x[:, None]
    check_channels(x.shape[1:], place.name)
    if x.dtype == torch.uint8 and x.dim() == 4:
        return x
    small = x.to(torch.float32)
    if not bool(small.isfinite().all()):
        row, *column = (int(i) for i in (~small.isfinite()).nonzero()[0])
        value = x[(row, *column)].item()
        where = repr(columns[column[0]]) if columns else ", ".join(map(str, column))
        why = "float32 holds it not" if np.isfinite(value) else "all numbers are to be finite"
        raise ValueError(f"{place(row)}, column {where}: {value} is not allowed; {why}")
    return small


def check_channels(shape: Sequence[int], name: str) -> None:
    """Raise an error if the shape of one image has its channels last."""
    if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
        raise ValueError(
            f"{name}: images of shape {tuple(shape)} have their channels last; (C, H, W) is expected: "
            "X.transpose(0, 3, 1, 2) of all, or x.transpose(2, 0, 1) of one"
        )


def _array(values: Any, place: Place) -> Tensor:
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{place.name} is no array: its rows differ in length") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{place.name} holds {_kind(array)}, where numbers are expected")
    # Torch takes native byte order, and few unsigned types.
    wanted = np.uint8 if array.dtype == np.uint8 else np.float64 if array.dtype.itemsize >= 4 else np.float32
    if array.dtype == np.float32:
        wanted = np.float32
    array = np.ascontiguousarray(array, dtype=wanted)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _kind(array: NDArray[Any]) -> str:
    return "text" if array.dtype.kind in "SUT" else "Python objects" if array.dtype.kind == "O" else str(array.dtype)


def as_labels(values: Any, place: Place) -> NDArray[Any]:
    """Return labels as a vector of int64 or of text.

    >>> as_labels([1.0, 0.0], Place("y")), as_labels(["cat", "dog"], Place("y"))
    (array([1, 0]), array(['cat', 'dog'], dtype='<U3'))
    """
    # NumPy would write the numbers of a mixed list as text.
    mixed = isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values)
    values = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    array: NDArray[Any] = np.asarray(values, object if mixed else None)
    if array.dtype.kind in "OT" and array.ndim == 1:
        kinds = {"text" if isinstance(value, str) else "numbers" for value in array}
        if len(kinds) > 1:
            odd = next(row for row, value in enumerate(array) if isinstance(value, str) != isinstance(array[0], str))
            raise ValueError(
                f"{place(odd)}: the label {array[odd]!r} is of another kind than the first one, {array[0]!r}; labels "
                "are either whole numbers or text"
            )
        array = np.array(array.tolist())
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = "; give one-hot rows as y.argmax(1)" if array.ndim == 2 else ""
        raise ValueError(f"{place.name} has shape {array.shape}, where one label an example is expected{hint}")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{place.name} holds {_kind(array)}, where labels (whole numbers or text) are expected")
    if array.dtype.kind == "f" and (wrong := np.flatnonzero(~(np.floor(array) == array) | (abs(array) > 2**53))).size:
        raise ValueError(
            f"{place(int(wrong[0]))}: the label {array[wrong[0]]} is not allowed; labels are classes: whole numbers, "
            "or text"
        )
    return array.astype(np.int64)


@dataclass(frozen=True)
class Classes:
    """The classes of a data set: their names, and the label that each has in its files.

    >>> classes = Classes.of(np.array(["dog", "cat", "dog"]), "y")
    >>> classes.names, classes.number(np.array(["dog"]), Place("y")).tolist()
    (('cat', 'dog'), [1])
    """

    names: tuple[str, ...]
    labels: NDArray[Any]  # in the order of the names

    @classmethod
    def of(
        cls, train: NDArray[Any], what: str, num_classes: int | None = None, names: Sequence[str] | None = None
    ) -> Classes:
        """Return the classes of training labels.

        Labels are 0 to K - 1 if ``num_classes`` or ``names`` says so; else the classes are the labels that occur, in
        their order.
        """
        if names is not None:
            names = tuple(map(str, names))
            if num_classes is not None and num_classes != len(names):
                raise ValueError(f"num_classes={num_classes}, but there are {len(names)} names of classes")
            if len(set(names)) != len(names):
                double = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the class name {double!r} stands twice")
            num_classes = len(names)
        present = np.unique(train)
        text = present.dtype.kind == "U"
        if num_classes is None:
            if len(present) == len(train) > 2:
                raise ValueError(f"{what}: each example has a label of its own, so that there is nothing to learn")
            found = cls(tuple(map(str, present.tolist())), present)
        elif text:
            if names is None and len(present) != num_classes:
                raise ValueError(f"num_classes={num_classes}, but {what} has {len(present)} different labels")
            found = cls(names or tuple(present.tolist()), np.array(names or present))
        else:
            found = cls(names or tuple(map(str, range(num_classes))), np.arange(num_classes))
        if len(found.names) < 2:
            raise ValueError(
                f"{what}: all labels are {found.names[0]!r}; a classifier needs two classes or more"
                if found.names
                else f"{what}: there are no labels"
            )
        return found

    def number(self, labels: NDArray[Any], place: Place) -> NDArray[np.int64]:
        """Return the class of each label, from 0."""
        if (labels.dtype.kind == "U") != (self.labels.dtype.kind == "U"):
            raise ValueError(
                f"{place.name} has labels like {labels[0].item()!r}, where labels like {self.labels[0].item()!r} are "
                "expected"
            )
        order = np.argsort(self.labels)
        where = np.minimum(np.searchsorted(self.labels, labels, sorter=order), len(order) - 1)
        numbers = order[where]
        if (wrong := np.flatnonzero(self.labels[numbers] != labels)).size:
            row, value = int(wrong[0]), labels[wrong[0]].item()
            known = [str(label) for label in self.labels.tolist()]
            raise ValueError(
                f"{place(row)}: the label {value!r} is not allowed{did_you_mean(str(value), known)}; the classes are "
                + (", ".join(known) if len(known) <= 12 else f"{known[0]}, {known[1]}, ... {known[-1]}")
            )
        return numbers.astype(np.int64)


def held_out(labels: NDArray[np.int64], what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to train on and rows to test on: a fifth of each class, the same ones each time.

    A class of one example is to train on; of each other class, one example is tested on at least.

    >>> train, test = held_out(np.repeat([0, 1], [10, 5]), "y")
    >>> len(train), np.bincount(np.repeat([0, 1], [10, 5])[test]).tolist()
    (12, [2, 1])
    """
    rng = np.random.default_rng(0)
    chosen = []
    for label in range(int(labels.max()) + 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[: max(round(HELD_OUT * len(rows)), 1) if len(rows) > 1 else 0])
    test = np.sort(np.concatenate(chosen))
    if not len(test):
        raise ValueError(f"{what}: no class has two examples, so that none can be held out to test on")
    return np.setdiff1d(np.arange(len(labels)), test), test
