"""What a data set is, once it has been read: one or more splits of examples with labels, in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.known import Known

ON_BAD_IMAGE = ("error", "skip")


class BadImage(ValueError):
    """An image file that cannot be read; what :attr:`Split.read` raises.

    >>> print(BadImage("train/cat/1.png", "the file is truncated"))
    'train/cat/1.png' cannot be read as an image: the file is truncated
    """

    def __init__(self, path: object, reason: object) -> None:
        # Both stand in args, so that the error survives the way back from a worker process.
        super().__init__(str(path), str(reason))
        self.path, self.reason = str(path), str(reason)

    def __str__(self) -> str:
        return f"{self.path!r} cannot be read as an image: {self.reason}"


@dataclass(frozen=True, eq=False)
class Split:
    """Examples and their labels.

    Args:
        labels: class of each example, int64.
        inputs: all examples, in memory or memory-mapped: uint8 images ``(N, C, H, W)`` or float32 of any shape.
        read: instead of ``inputs``, what reads one example: a uint8 image ``(C, H, W)`` of its own size, or float32. It
            is sent to worker processes, so it must be picklable, and raises :class:`BadImage` if the image is broken.
        size: side that images from ``read`` are brought to where nothing else is asked for: the shorter side is
            scaled to 8/7 of it, and the middle is cut out (256 and 224); ``None``: they all have one size already.
        random: whether ``read`` draws random numbers (Python's, NumPy's or torch's), which are then seeded each time.
        index: place of each example in the published order; ``None`` where that order is lost.
        human: other labels that came with the data, by name.
        on_bad_image: whether an image that cannot be read ends the run (``"error"``) or is left out (``"skip"``).

    >>> len(Split(np.array([0, 1]), torch.zeros(2, 3, 8, 8, dtype=torch.uint8)))
    2
    """

    labels: NDArray[np.int64]
    inputs: Tensor | None = None
    read: Callable[[int], Tensor] | None = None
    size: int | None = None
    random: bool = False
    index: NDArray[np.int64] | None = None
    human: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    on_bad_image: str = "error"

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.labels.ndim != 1 or self.labels.dtype != np.int64:
            raise ValueError(f"labels are one int64 an example, not {self.labels.dtype} of shape {self.labels.shape}")
        if (self.inputs is None) == (self.read is None):
            raise ValueError("a split has either inputs (in memory) or read (from disk)")
        if self.inputs is not None:
            image = self.inputs.dtype == torch.uint8 and self.inputs.dim() == 4
            if not image and (self.inputs.dtype != torch.float32 or self.inputs.dim() < 2):
                shape = tuple(self.inputs.shape)
                allowed = "uint8 images (N, C, H, W) or float32 (N, ...)"
                raise ValueError(f"inputs are {allowed}, not {self.inputs.dtype} of shape {shape}")
        sizes = {"inputs": self.inputs, "index": self.index} | {f"human {k!r}": v for k, v in self.human.items()}
        for name, values in sizes.items():
            if values is not None and len(values) != n:
                raise ValueError(f"there are {n} labels, but {len(values)} of {name}")
        if self.on_bad_image not in ON_BAD_IMAGE:
            raise ValueError(f"on_bad_image={self.on_bad_image!r} is not allowed; it is 'error' or 'skip'")
        object.__setattr__(self, "human", dict(self.human))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Data:
    """A data set: what to train on, what to test on, and what is known of it.

    ``tests`` holds the test sets by name; the first is called ``test``. ``in_shape`` is the shape of one example as a
    network sees it; ``known`` are published facts where the data set has them; ``layout`` says what was recognised.

    >>> from unswayed.data import load
    >>> data = load("digits")
    >>> data.name, len(data.train), len(data.test), data.in_shape
    ('digits', 1437, 360, (1, 8, 8))
    """

    name: str
    train: Split
    tests: Mapping[str, Split]
    num_classes: int
    in_shape: tuple[int, ...]
    classes: tuple[str, ...]
    known: Known | None = None
    layout: str = ""

    def __post_init__(self) -> None:
        if len(self.classes) != self.num_classes:
            raise ValueError(f"{self.name}: {self.num_classes} classes, but {len(self.classes)} names of classes")
        for name, split in {"train": self.train, **self.tests}.items():
            where = f"{self.name}, {name} split"
            if not len(split):
                # Such a set has images to test on, and none to train on.
                if name == "train" and self.known is not None and not self.known.train_size:
                    continue
                raise ValueError(f"{where}: there are no examples")
            low, high = int(split.labels.min()), int(split.labels.max())
            if low < 0 or high >= self.num_classes:
                wrong = low if low < 0 else high
                raise ValueError(f"{where}: label {wrong} is not allowed; labels are 0 to {self.num_classes - 1}")
            shape = self.in_shape if split.inputs is None else tuple(split.inputs.shape[1:])
            if split.size is not None:
                shape = (shape[0], split.size, split.size)
            if shape != self.in_shape:
                raise ValueError(f"{where}: examples have shape {shape}, where {self.in_shape} is expected")
        object.__setattr__(self, "tests", dict(self.tests))

    @property
    def test(self) -> Split:
        """The test set (the first, if there are several)."""
        if not self.tests:
            raise ValueError(f"{self.name} has no test set")
        return next(iter(self.tests.values()))
