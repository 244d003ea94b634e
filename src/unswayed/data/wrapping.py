"""A user's own examples as a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from unswayed.data.arrays import Classes, Place, as_inputs, as_labels, check_channels
from unswayed.data.core import Data, Split
from unswayed.data.images import from_pillow

_PROBES = 16  # examples that are read to see whether a data set's list of labels is what it gives


def wrap(
    train: Any,
    test: Any = None,
    *,
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    name: str = "own",
) -> Data:
    """Take a user's own examples as a data set.

    Args:
        train: ``(X, y)``, two arrays or tensors, which stay in memory; or a map-style torch ``Dataset`` whose examples
            are ``(x, label)``, which are read when they are needed, also by worker processes. The labels of a
            ``Dataset`` are taken from its ``targets`` or ``labels`` where it has them; else it is read once.
        test: the same for testing; ``None``: there is no test set.
        num_classes: labels are 0 to ``num_classes - 1``. Unless this or ``classes`` is given, the classes are the
            labels that occur in ``train``, whole numbers or text, in their order.
        classes: names of the classes.
        name: what it is called in results.

    Images are uint8 ``(C, H, W)`` (grey ones also ``(H, W)``) or Pillow's; everything else becomes float32. A
    ``Dataset`` may draw random numbers (Python's, NumPy's, torch's): they are seeded for each example and epoch.

    >>> data = wrap((torch.randn(6, 4), ["a", "b", "a", "c", "b", "c"]))
    >>> data.classes, data.in_shape, data.train.labels.tolist()
    (('a', 'b', 'c'), (4,), [0, 1, 0, 2, 1, 2])
    """
    given = {"train": train} | ({} if test is None else {"test": test})
    labels = {part: _labels(source, part) for part, source in given.items()}
    found = Classes.of(labels["train"], "train", num_classes, classes)
    splits = {part: _split(source, found.number(labels[part], Place(part)), part) for part, source in given.items()}
    shapes = {part: shape for part, (_, shape) in splits.items()}
    if shapes.get("test", shapes["train"]) != shapes["train"]:
        raise ValueError(f"examples of test have shape {shapes['test']}, those of train {shapes['train']}")
    return Data(
        name, splits["train"][0], {"test": splits["test"][0]} if "test" in splits else {}, len(found.names),
        shapes["train"], found.names,
        layout=", ".join(f"{len(split):,} {part} examples of a {type(given[part]).__name__}"
                         for part, (split, _) in splits.items()),
    )  # fmt: skip


def _arrays(source: Any) -> tuple[Any, Any] | None:
    """Return X and y of what lies in memory; ``None`` for a data set that is to be read."""
    if isinstance(source, TensorDataset) and len(source.tensors) == 2:
        return source.tensors[0], source.tensors[1]
    if isinstance(source, tuple):
        if len(source) != 2:
            raise ValueError(f"arrays are given as (X, y), not as a tuple of {len(source)}")
        return source[0], source[1]
    return None


def _labels(source: Any, part: str) -> NDArray[Any]:
    place = Place(part)
    arrays = _arrays(source)
    if arrays is not None:
        return as_labels(arrays[1], place)
    if isinstance(source, DataLoader):
        raise TypeError(f"{part} is a DataLoader; give its data set, {part}=loader.dataset: batches are made here")
    if isinstance(source, IterableDataset) or not (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        raise TypeError(
            f"{part} is a {type(source).__name__}, where (X, y) or a data set with __getitem__ and __len__ is expected"
        )
    if not len(source):
        raise ValueError(f"{part} has no examples")
    listed = _listed(source)
    if listed is not None:
        probes = np.unique(np.linspace(0, len(source) - 1, _PROBES).astype(int)).tolist()
        if all(np.array_equal(listed[row], _label(source, row, part)) for row in probes):
            return as_labels(listed, place)
    return as_labels([_label(source, row, part) for row in range(len(source))], place)


def _listed(source: Any) -> Any:
    """Return the labels that a data set lists, if they can be told without reading it."""
    if isinstance(source, Subset):
        whole = _listed(source.dataset)
        return None if whole is None else whole[np.asarray(source.indices)]
    if getattr(source, "target_transform", None) is not None:
        return None
    for name in ("targets", "labels"):
        values = getattr(source, name, None)
        if isinstance(values, (list, tuple, np.ndarray, Tensor)) and len(values) == len(source):
            listed = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
            if listed.ndim == 1:
                return listed
    return None


def _pair(source: Any, row: int, part: str) -> tuple[Any, Any]:
    example = source[row]
    if not isinstance(example, (tuple, list)) or len(example) < 2:
        raise ValueError(f"{part}[{row}] is a {type(example).__name__}, where (x, label) is expected")
    return example[0], example[1]


def _label(source: Any, row: int, part: str) -> Any:
    label = _pair(source, row, part)[1]
    if isinstance(label, (Tensor, np.ndarray, np.generic)):
        if label.size != 1 if not isinstance(label, Tensor) else label.numel() != 1:
            raise ValueError(f"{part}[{row}] has a label of shape {tuple(label.shape)}, where one label is expected")
        label = label.item()
    return label


def _split(source: Any, labels: NDArray[np.int64], part: str) -> tuple[Split, tuple[int, ...]]:
    arrays = _arrays(source)
    if arrays is not None:
        inputs = as_inputs(arrays[0], Place(part))
        return Split(labels, inputs), tuple(inputs.shape[1:])
    read = _Examples(source, part)
    return Split(labels, read=read, random=True), read.shape


class _Examples:
    """Reads one example of a data set."""

    def __init__(self, source: Any, part: str) -> None:
        self.source, self.part = source, part
        first = self._read(0)
        check_channels(first.shape, part)
        self.shape, self.dtype = tuple(first.shape), first.dtype

    def __call__(self, row: int) -> Tensor:
        x = self._read(row)
        if tuple(x.shape) != self.shape or x.dtype != self.dtype:
            raise ValueError(
                f"{self.part}[{row}] is {x.dtype} of shape {tuple(x.shape)}, where {self.dtype} of {self.shape} is "
                "expected, as in the first example"
            )
        return x

    def _read(self, row: int) -> Tensor:
        x = _pair(self.source, row, self.part)[0]
        if hasattr(x, "getbands"):
            return from_pillow(x)
        try:
            x = x.detach() if isinstance(x, Tensor) else torch.from_numpy(np.array(x))
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(
                f"{self.part}[{row}] is a {type(x).__name__}, where a tensor, an array, numbers or a Pillow image is "
                "expected"
            ) from None
        if not x.dim():
            raise ValueError(f"{self.part}[{row}] is a single number, where a vector or an image is expected")
        if x.dtype == torch.uint8 and x.dim() in (2, 3):
            return x if x.dim() == 3 else x[None]
        return x.float()
