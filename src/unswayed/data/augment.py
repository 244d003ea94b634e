"""Augmentation of whole batches: a spec like ``crop(4) + flip``, drawn per example and applied on any device."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.spec import REQUIRED, Param, Reader, read_named, write_named

_GRAMMAR = "an augmentation is none, or steps joined by +, like crop(4) + flip"


@dataclass(frozen=True)
class Draw:
    """What random numbers may hang on: the batch (all processes together), the epoch, the seed, and a generator."""

    index: Tensor
    epoch: int
    seed: int
    generator: torch.Generator

    def uniform(self, count: int) -> Tensor:
        """Return ``count`` numbers in [0, 1) for each example."""
        return torch.rand(len(self.index), count, generator=self.generator)


class Step:
    """One step of an augmentation. What it draws has a row an example, on the CPU, so that all devices draw the same.

    Steps see batches ``(N, H, W, C)``: uint8, or float (0 to 1 once it was uint8).
    """

    params: ClassVar[tuple[Param, ...]] = ()

    def __init__(self, **values: Any) -> None:
        self.values = values

    def draw(self, given: Draw) -> Tensor:
        """Return the random numbers of each example."""
        return given.uniform(1)

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        """Return the batch, changed."""
        raise NotImplementedError


class Crop(Step):
    """Cut out the size of the image, at a random place of the image with a black frame of ``pad`` pixels."""

    params = (Param("pad", REQUIRED, "width of the frame, in pixels", kind="integer", low=1),)

    def draw(self, given: Draw) -> Tensor:
        """Return the two offsets."""
        offsets: Tensor = (given.uniform(2) * (2 * self.values["pad"] + 1)).long()
        return offsets

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        n, height, width, channels = x.shape
        pad = self.values["pad"]
        framed = F.pad(x, (0, 0, pad, pad, pad, pad))
        # A row of the result is one piece of memory, wherever it begins.
        row, length = (width + 2 * pad) * channels, width * channels
        pieces = framed.view(-1).as_strided((max(framed.numel() - length + 1, 0), length), (1, 1))
        down, right = drawn.to(x.device).unbind(1)
        first = (torch.arange(n, device=x.device) * (height + 2 * pad) + down)[:, None]
        start = (first + torch.arange(height, device=x.device)) * row + (right * channels)[:, None]
        return pieces.index_select(0, start.flatten()).view(n, height, width, channels)


class Flip(Step):
    """Mirror left and right, each image with probability 1/2."""

    def draw(self, given: Draw) -> Tensor:
        """Return whether."""
        drawn: Tensor = given.uniform(1) < 0.5
        return drawn

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        return torch.where(drawn.to(x.device)[:, :, None, None], x.flip(2), x)


class AlternatingFlip(Flip):
    """Mirror a random half of the images in even epochs, and the other half in odd ones."""

    def draw(self, given: Draw) -> Tensor:
        """Return whether: a hash of seed and example, turned over in odd epochs."""
        z = given.index.numpy().astype(np.uint64)[:, None] + np.uint64(given.seed & (2**63 - 1))
        # The finaliser of the splitmix64 generator.
        z = (z + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return torch.from_numpy((z >> np.uint64(63)) == np.uint64(given.epoch % 2))


class Rotate(Step):
    """Turn about the middle by up to ``degrees`` either way; each pixel is the nearest one, corners become black."""

    params = (Param("degrees", REQUIRED, "largest angle", low=0, high=180),)

    def draw(self, given: Draw) -> Tensor:
        """Return the angle."""
        return (given.uniform(1) * 2 - 1) * math.radians(self.values["degrees"])

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        n, height, width, channels = x.shape
        angle = drawn.to(x.device)[:, :, None]
        cos, sin = angle.cos(), angle.sin()
        across = (torch.arange(width, device=x.device) - (width - 1) / 2)[None, None, :]
        down = (torch.arange(height, device=x.device) - (height - 1) / 2)[None, :, None]
        column = (cos * across - sin * down + width / 2).floor_()
        row = (sin * across + cos * down + height / 2).floor_()
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        place = (row * width + column).masked_fill_(~inside, 0).long().view(n, height * width, 1)
        turned = x.reshape(n, height * width, channels).gather(1, place.expand(-1, -1, channels)).view(x.shape)
        return turned.masked_fill_(~inside[..., None], 0)


class Cutout(Step):
    """Blank a square at a random place (cut off at the border) with the mean colour, after all other steps."""

    params = (Param("size", REQUIRED, "side of the square, in pixels", kind="integer", low=1),)

    def draw(self, given: Draw) -> Tensor:
        """Return the middle of the square, as a share of height and width."""
        return given.uniform(2)

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        size = self.values["size"]

        def within(length: int, middle: Tensor) -> Tensor:
            first = (middle * length).long()[:, None] - size // 2
            behind: Tensor = torch.arange(length, device=x.device) - first
            return (behind >= 0).logical_and(behind < size)

        down, across = drawn.to(x.device).unbind(1)
        square = within(x.shape[1], down)[:, :, None] & within(x.shape[2], across)[:, None, :]
        return x.masked_fill(square[..., None], 0)


class ColorJitter(Step):
    """Change brightness, contrast, saturation (by factors from 1 - x to 1 + x) and hue (by up to x of the circle).

    Each image has its own factors; the order of the four is random too, one for the batch.
    """

    params = (
        Param("brightness", 0.0, "largest change of the factor", low=0),
        Param("contrast", 0.0, "largest change of the factor", low=0),
        Param("saturation", 0.0, "largest change of the factor", low=0),
        Param("hue", 0.0, "largest change, as a share of the circle", low=0, high=0.5),
    )
    _ORDERS = tuple(itertools.permutations(range(4)))

    def draw(self, given: Draw) -> Tensor:
        """Return the four amounts, and the number of the order."""
        spread = torch.tensor([self.values[param.name] for param in self.params])
        low = torch.cat([(1 - spread[:3]).clamp_min(0), -spread[3:]])
        high = torch.cat([1 + spread[:3], spread[3:]])
        order = torch.randint(len(self._ORDERS), (1, 1), generator=given.generator)
        amounts = low + given.uniform(4) * (high - low)
        return torch.cat([amounts, order.expand(len(amounts), 1)], 1)

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        if x.shape[-1] not in (1, 3):
            raise ValueError(f"color_jitter is for images with 1 or 3 channels, not {x.shape[-1]}")
        if not len(x):
            return x
        x = x.float() / 255 if x.dtype == torch.uint8 else x
        amounts = drawn.to(x.device)[:, :4, None, None, None]
        names = [param.name for param in self.params]
        for which in self._ORDERS[int(drawn[0, 4])]:
            amount = amounts[:, which]
            if not self.values[names[which]]:
                continue
            if which == 0:
                x = (x * amount).clamp_(0, 1)
            elif which == 1:
                x = _blend(x, _grey(x).mean((1, 2), keepdim=True), amount)
            elif x.shape[-1] == 3:
                x = _blend(x, _grey(x), amount) if which == 2 else _shift_hue(x, amount)
        return x


def _grey(x: Tensor) -> Tensor:
    if x.shape[-1] == 1:
        return x
    return (x * x.new_tensor([0.299, 0.587, 0.114])).sum(-1, keepdim=True)


def _blend(x: Tensor, other: Tensor, amount: Tensor) -> Tensor:
    return torch.lerp(other, x, amount).clamp_(0, 1)


def _shift_hue(x: Tensor, amount: Tensor) -> Tensor:
    most, where = x.max(-1, keepdim=True)
    spread = most - x.amin(-1, keepdim=True)
    red, green, blue = x[..., :1], x[..., 1:2], x[..., 2:]
    sector = torch.where(where == 0, green - blue, torch.where(where == 1, blue - red, red - green))
    hue = (sector / spread.clamp_min(1e-12) + 2 * where) / 6 + amount
    at = (x.new_tensor([5.0, 3.0, 1.0]) + hue * 6) % 6
    return most - spread * torch.minimum(at, 4 - at).clamp_(0, 1)


class Frame(Step):
    """A step that cuts an image of its own size to the common one; it is done where the image is read."""

    def frame(self, image: Tensor, drawn: Tensor) -> Tensor:
        """Return the uint8 image ``(C, H, W)`` in the common size."""
        raise NotImplementedError


_SIZE = Param("size", REQUIRED, "side of the result, in pixels", kind="integer", low=1)


class ResizedCrop(Frame):
    """Scale a random part to ``size``: 8 to 100 % of the area, sides as 3:4 to 4:3 (RandomResizedCrop)."""

    params = (_SIZE,)
    _TRIES = 10

    def draw(self, given: Draw) -> Tensor:
        """Return area and shape for each try, and the place of the part."""
        return given.uniform(2 * self._TRIES + 2)

    def frame(self, image: Tensor, drawn: Tensor) -> Tensor:
        """Return the first part that fits, or the middle."""
        height, width = image.shape[1:]
        tries, (down, across) = drawn[:-2].view(-1, 2).tolist(), drawn[-2:].tolist()
        for area, shape in tries:
            wanted = height * width * (0.08 + area * 0.92)
            ratio = math.exp((2 * shape - 1) * math.log(4 / 3))
            w, h = round(math.sqrt(wanted * ratio)), round(math.sqrt(wanted / ratio))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
            down = across = 0.5
        top, left = int(down * (height - h + 1)), int(across * (width - w + 1))
        size = self.values["size"]
        return _resize(image[:, top : top + h, left : left + w], size, size)


class RandomCrop(Frame):
    """Scale to a square of ``resize``, and cut out ``size`` at a random place."""

    params = (_SIZE, Param("resize", 256, "side of the square, in pixels", kind="integer", low=1))

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if values["size"] > values["resize"]:
            raise ValueError(f"random_crop: size={values['size']} is more than resize={values['resize']}")

    def draw(self, given: Draw) -> Tensor:
        """Return the place."""
        return given.uniform(2)

    def frame(self, image: Tensor, drawn: Tensor) -> Tensor:
        """Return the part."""
        size, whole = self.values["size"], self.values["resize"]
        top, left = (int(place * (whole - size + 1)) for place in drawn.tolist())
        return _resize(image, whole, whole)[:, top : top + size, left : left + size]


def center_crop(image: Tensor, size: int) -> Tensor:
    """Scale the shorter side of a uint8 image ``(C, H, W)`` to 8/7 of ``size``, and cut ``size`` out of the middle.

    An image that has this size already is left alone.

    >>> center_crop(torch.zeros(3, 500, 400, dtype=torch.uint8), 224).shape
    torch.Size([3, 224, 224])
    """
    height, width = image.shape[1:]
    if height == width == size:
        return image
    scale = max(size, round(size * 8 / 7)) / min(height, width)
    image = _resize(image, max(size, round(height * scale)), max(size, round(width * scale)))
    top, left = ((side - size) // 2 for side in image.shape[1:])
    return image[:, top : top + size, left : left + size]


def _resize(image: Tensor, height: int, width: int) -> Tensor:
    if image.shape[1:] == (height, width):
        return image
    return F.interpolate(image[None], (height, width), mode="bilinear", antialias=True)[0]


STEPS: Mapping[str, type[Step]] = {
    "crop": Crop,
    "flip": Flip,
    "alternating_flip": AlternatingFlip,
    "rotate": Rotate,
    "color_jitter": ColorJitter,
    "cutout": Cutout,
    "resized_crop": ResizedCrop,
    "random_crop": RandomCrop,
}


class Augmentation:
    """Steps, and the normalisation after them; :func:`augmentation` makes it from a spec."""

    def __init__(
        self,
        steps: Sequence[tuple[str, Step]],
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        if (mean is None) != (std is None) or (mean is not None and std is not None and len(mean) != len(std)):
            raise ValueError(f"mean={mean} and std={std} belong together, one of each a channel")
        if std is not None and not all(0 < value < math.inf for value in std):
            raise ValueError(f"std={std} is not allowed; std > 0")
        self._names = [(name, step.values) for name, step in steps]
        self.mean = None if mean is None else tuple(mean)
        self.std = None if std is None else tuple(std)
        only = [step for _, step in steps]
        first = only[0] if only else None
        self.frame = first if isinstance(first, Frame) else None
        if self.frame is not None:
            del only[0]
        if any(isinstance(step, Frame) for step in only):
            raise ValueError("resized_crop and random_crop give images their size: write one of them, and first")
        self._steps = [step for step in only if not isinstance(step, Cutout)]
        self._last = [step for step in only if isinstance(step, Cutout)]

    def __str__(self) -> str:
        return " + ".join(write_named(name, values) for name, values in self._names) or "none"

    def __repr__(self) -> str:
        return f"augmentation({str(self)!r}, mean={self.mean}, std={self.std})"

    @property
    def steps(self) -> list[Step]:
        """The steps that change batches, in the order in which they are done."""
        return [*self._steps, *self._last]

    def draw(self, given: Draw) -> list[Tensor]:
        """Return the random numbers of each step in :attr:`steps`; each has a row an example."""
        return [step.draw(given) for step in self.steps]

    def __call__(self, x: Tensor, drawn: Sequence[Tensor] = ()) -> Tensor:
        """Return the batch ``(N, C, H, W)``, changed and normalised: float32, channels last."""
        batch = x.permute(0, 2, 3, 1).contiguous()
        count = len(self._steps)
        for step, numbers in zip(self._steps, drawn[:count], strict=True):
            batch = step(batch, numbers)
        batch = self._normalise(batch)
        for step, numbers in zip(self._last, drawn[count:], strict=True):
            batch = step(batch, numbers)
        return batch.permute(0, 3, 1, 2)

    def _normalise(self, batch: Tensor) -> Tensor:
        _, _, width, channels = batch.shape
        whole = 255.0 if batch.dtype == torch.uint8 else 1.0
        if self.mean is None or self.std is None:
            return batch.float() / whole if whole != 1 else batch.float()
        if len(self.mean) != channels:
            raise ValueError(f"mean and std are of {len(self.mean)} channels, but the images have {channels}")
        std = torch.tensor(self.std, dtype=torch.float64)
        scale, shift = 1 / (whole * std), -torch.tensor(self.mean, dtype=torch.float64) / std
        # Whole rows of pixels at a time: vectors of 3 are slow.
        scale, shift = (values.float().to(batch.device).repeat(width) for values in (scale, shift))
        return batch.float().view(-1, width * channels).mul(scale).add_(shift).view(batch.shape)


def augmentation(spec: str, *, mean: Sequence[float] | None = None, std: Sequence[float] | None = None) -> Augmentation:
    """Read an augmentation.

    Args:
        spec: ``none``, or steps joined by ``+``, done in that order: ``crop(pad)``, ``flip``, ``alternating_flip``,
            ``rotate(degrees)``, ``color_jitter(brightness, contrast, saturation, hue)``, ``cutout(size)``; for images
            of different sizes, which are read from disk, first ``resized_crop(size)`` or ``random_crop(size, resize)``.
        mean, std: of each channel, for images with values from 0 to 1; ``None``: they are left at 0 to 1.

    >>> str(augmentation("Crop(4)+flip"))
    'crop(4) + flip'
    """
    reader = Reader(spec, _GRAMMAR)

    def flat(node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [*flat(left), *flat(right)]
        return [node]

    nodes = flat(reader.tree)
    steps: list[tuple[str, Step]] = []
    known: dict[str, Sequence[Param]] = {"none": ()} | {name: step.params for name, step in STEPS.items()}
    for node in nodes:
        name, values = read_named(reader, node, "augmentation", known)
        if name != "none":
            try:
                steps.append((name, STEPS[name](**values)))
            except ValueError as error:
                raise reader.fail(node, str(error)) from None
        elif len(nodes) > 1:
            raise reader.fail(node, "none stands alone", _GRAMMAR)
    return Augmentation(steps, mean, std)
