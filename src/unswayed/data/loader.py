"""Batches: in an order, and with an augmentation, that hang on seed, epoch and step alone."""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.augment import Augmentation, Draw, Frame, center_crop
from unswayed.data.core import BadImage, Split

# One stream of random numbers for each purpose.
_ORDER, _STEP, _READ = 1, 2, 3
_ODD = 0x9E3779B97F4A7C15  # spreads the rows over all seeds


def _generator(*parts: int) -> torch.Generator:
    seed = np.random.SeedSequence(parts).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(seed >> np.uint64(1)))


class Loader:
    """Gives the examples of a split in batches, as a network wants them.

    Args:
        split: the examples.
        batch_size: examples a step, all processes together; the last batch of an epoch may be smaller.
        rows: the rows of the split to use; by default all.
        seed: of order and augmentation.
        augment: what is done with images; :func:`unswayed.data.augmentation` makes one. By default they are only
            brought to 0 to 1. Inputs that are no images stay as they are.
        shuffle: whether each epoch has a random order of its own.
        device: where the batches are wanted; inputs in memory are moved there once.
        rank, world: this process and how many there are. They share each batch, which is the same for any number.
        workers: processes that read images from disk; 0: this one does.
        views: how many augmentations of each example a batch holds, one whole batch of them after another.

    >>> from unswayed.data import load
    >>> loader = Loader(load("digits").train, 128)
    >>> x, index = next(loader.epoch(0))
    >>> len(loader), x.shape, x.dtype, index.shape
    (12, torch.Size([128, 1, 8, 8]), torch.float32, torch.Size([128]))
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        *,
        rows: NDArray[np.int64] | None = None,
        seed: int = 0,
        augment: Augmentation | None = None,
        shuffle: bool = True,
        device: str | torch.device = "cpu",
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
        views: int = 1,
    ) -> None:
        limits = (("batch_size", batch_size, 1), ("seed", seed, 0), ("workers", workers, 0), ("views", views, 1))
        for name, value, low in limits:
            if value < low:
                raise ValueError(f"{name}={value} is not allowed; {name} >= {low}")
        if not 0 <= rank < world:
            raise ValueError(f"rank={rank} is not allowed; 0 <= rank < world={world}")
        self.split, self.batch_size, self.seed, self.shuffle = split, batch_size, seed, shuffle
        self.rank, self.world, self.workers, self.views = rank, world, workers, views
        self.device = torch.device(device)
        self.rows = torch.arange(len(split)) if rows is None else torch.from_numpy(np.array(rows, dtype=np.int64))
        if self.rows.dim() != 1 or not len(self.rows):
            raise ValueError("there are no rows to give")
        if int(self.rows.min()) < 0 or int(self.rows.max()) >= len(split):
            raise ValueError(f"rows are 0 to {len(split) - 1}, not {int(self.rows.min())} to {int(self.rows.max())}")
        self.augment = Augmentation([]) if augment is None else augment
        self._told: set[str] = set()
        self._nothing: Tensor | None = None
        self._pixels = None
        if split.inputs is not None:
            if split.inputs.dim() != 4 and self.augment.steps:
                raise ValueError(f"augment='{self.augment}' is for images; these inputs have shape {self._shape}")
            if self.augment.frame is not None:
                raise ValueError(
                    f"augment='{self.augment}' cuts images of different sizes; these have one size, {self._shape}"
                )
            inputs = split.inputs.to(self.device)
            # Rows that are one piece of memory are gathered fast, whichever way the channels lie.
            self._last = inputs.dim() == 4 and inputs.permute(0, 2, 3, 1).is_contiguous()
            self._pixels = inputs.permute(0, 2, 3, 1) if self._last else inputs

    @property
    def _shape(self) -> tuple[int, ...]:
        return () if self.split.inputs is None else tuple(self.split.inputs.shape[1:])

    @property
    def size(self) -> int:
        """Examples in an epoch."""
        return len(self.rows)

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        return -(-self.size // self.batch_size)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the batches of an epoch from step ``start`` on: inputs, and the rows of the split they are.

        With several processes it is this one's share, which may be empty in the last step.
        """
        if epoch < 0 or not 0 <= start <= len(self):
            raise ValueError(f"epoch={epoch}, start={start} is not allowed; epoch >= 0, 0 <= start <= {len(self)}")
        order = self.rows
        if self.shuffle:
            order = order[torch.randperm(self.size, generator=_generator(_ORDER, self.seed, epoch))]
        batches = [order[step * self.batch_size :][: self.batch_size] for step in range(start, len(self))]
        if self._pixels is None:
            yield from self._streamed(epoch, start, batches)
            return
        # One copy to the device an epoch; a copy a step would wait for the steps before.
        here = order.to(self.device)
        for step, index in enumerate(batches, start):
            mine = here[step * self.batch_size :][: self.batch_size][self.rank :: self.world]
            views = []
            for view in range(self.views):
                x = self._pixels.index_select(0, mine)
                drawn = self._draw(epoch, step, index, view)[1]
                views.append(self._augmented(x.permute(0, 3, 1, 2) if self._last else x, drawn))
            yield _joined(views), mine

    def _draw(self, epoch: int, step: int, index: Tensor, view: int) -> tuple[Tensor | None, list[Tensor]]:
        """Draw for the whole batch, and return this process's share: of the frame, and of the steps."""
        if self.augment.frame is None and not self.augment.steps:
            return None, []
        parts = (_STEP, self.seed, epoch, step, view) if view else (_STEP, self.seed, epoch, step)
        given = Draw(index, epoch, self.seed, _generator(*parts))
        frame = None if self.augment.frame is None else self.augment.frame.draw(given)[self.rank :: self.world]
        return frame, [numbers[self.rank :: self.world] for numbers in self.augment.draw(given)]

    def _augmented(self, x: Tensor, drawn: list[Tensor]) -> Tensor:
        if x.dim() == 4:
            return self.augment(x, drawn)
        if drawn:
            raise ValueError(f"augment='{self.augment}' is for images; these inputs have shape {tuple(x.shape[1:])}")
        return x.float()

    def _streamed(self, epoch: int, start: int, batches: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        assert self.split.read is not None
        images = _Images(self.split.read, self.augment.frame, self.split.size)
        seeds = _generator(_READ, self.seed, epoch)
        base = seeds.initial_seed() if self.split.random else None
        waiting: deque[tuple[Tensor, list[list[Tensor]]]] = deque()

        def asked() -> Iterator[list[_Asked]]:
            # Made as they are needed: what a million images draw would fill the memory.
            for step, index in enumerate(batches, start):
                views = [self._draw(epoch, step, index, view) for view in range(self.views)]
                mine = index[self.rank :: self.world]
                waiting.append((mine, [drawn for _, drawn in views]))
                yield [
                    (row, None if base is None else base + view, None if frame is None else frame[place])
                    for view, (frame, _) in enumerate(views)
                    for place, row in enumerate(mine.tolist())
                ]

        reader: torch.utils.data.DataLoader[Any] = torch.utils.data.DataLoader(
            images,  # type: ignore[arg-type]
            batch_sampler=asked(),
            generator=seeds,
            num_workers=self.workers,
            collate_fn=_collate,
            pin_memory=self.device.type == "cuda",
        )
        for x, places, bad in reader:
            for problem in bad:
                self._tell(problem)
            mine, views = waiting.popleft()
            read = torch.zeros(self.views * len(mine), dtype=torch.bool)
            read[places] = True
            # An example that one of its views could not be read of is left out.
            whole = read.view(self.views, len(mine)).all(0)
            x = self._empty(images) if x is None else x.to(self.device, non_blocking=True)
            if len(places) > self.views * int(whole.sum()):
                x = x[whole.repeat(self.views)[read].to(x.device)]
            parts = x.unflatten(0, (self.views, int(whole.sum())))
            augmented = [self._augmented(part, [each[whole] for each in drawn]) for part, drawn in zip(parts, views)]
            yield _joined(augmented), mine[whole].to(self.device)

    def _empty(self, images: _Images) -> Tensor:
        """Return a batch of no examples, of the shape that others have."""
        if self._nothing is None:
            frame, anything = self.augment.frame, Draw(self.rows[:1], 0, 0, torch.Generator())
            numbers = None if frame is None else frame.draw(anything)[0]
            found = (images[(row, None, numbers)] for row in self.rows.tolist())
            example = next((image for image in found if isinstance(image, Tensor)), None)
            if example is None:
                raise ValueError("none of the images can be read")
            self._nothing = example[None][:0].to(self.device)
        return self._nothing

    def _tell(self, problem: BadImage) -> None:
        if self.split.on_bad_image == "error":
            raise problem
        if problem.path not in self._told:
            self._told.add(problem.path)
            warnings.warn(f"{problem}; it is left out", stacklevel=3)


def _joined(views: list[Tensor]) -> Tensor:
    return views[0] if len(views) == 1 else torch.cat(views)


# A row, what the random numbers of reading it hang on (if it draws any), and those that its frame has drawn.
_Asked = tuple[int, int | None, Tensor | None]


@dataclass(frozen=True)
class _Images:
    """What worker processes do: read an image, and cut it to the common size."""

    read: Callable[[int], Tensor]
    frame: Frame | None
    size: int | None

    def __getitem__(self, asked: _Asked) -> Tensor | BadImage:
        row, base, numbers = asked
        try:
            with nullcontext() if base is None else _seeded((base + row * _ODD) % 2**63):
                image = self.read(row)
        except BadImage as error:
            # Returned, as an exception that crosses to another process is not what it was.
            return error
        if image.dtype == torch.uint8 and image.dim() == 3:
            if self.frame is not None and numbers is not None:
                return self.frame.frame(image, numbers)
            if self.size is not None:
                return center_crop(image, self.size)
        return image


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed every generator that a data set may draw from, and let all go on as before afterwards."""
    own, numpys, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(own)
        np.random.set_state(numpys)  # noqa: NPY002
        torch.set_rng_state(torchs)


def _collate(items: list[Tensor | BadImage]) -> tuple[Tensor | None, list[int], list[BadImage]]:
    """Return the batch, which of the rows asked for are in it, and the images that could not be read."""
    good = [(place, item) for place, item in enumerate(items) if isinstance(item, Tensor)]
    bad = [item for item in items if isinstance(item, BadImage)]
    return torch.stack([item for _, item in good]) if good else None, [place for place, _ in good], bad
