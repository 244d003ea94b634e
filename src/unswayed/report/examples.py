"""A sheet of examples of a data set: images of each class, or features on their first two axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.augment import center_crop
from unswayed.data.core import BadImage, Data, Split
from unswayed.report.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_IMAGES = 10  # of each class
_ROWS = 25  # classes below each other
_LARGEST = 96  # side of an image on the sheet, in pixels
_TRIES = 3  # unreadable images of a class that are passed over, for each image that is shown
_POINTS = 3000
_LEGEND = 20  # classes that colours can tell apart


def plot_examples(data: Data, path: str | Path) -> Path:
    """Draw what a data set holds, and save it: the first images of each class, or features on their principal axes.

    ``path`` is a ``.png``, ``.pdf`` or ``.svg`` file. Examples are of the training part, where there is one.

    >>> import tempfile
    >>> from unswayed.data import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_examples(load("digits"), f"{folder}/digits.png").name
    'digits.png'
    """
    split = data.train if len(data.train) else data.test
    if len(data.in_shape) == 3 and data.in_shape[0] in (1, 3):
        return _sheet(data, split, Path(path))
    if data.in_shape == (1,):
        raise ValueError(f"{data.name} has one number an example; there is no picture of it")
    return _axes(data, split, Path(path))


def _sheet(data: Data, split: Split, path: Path) -> Path:
    side = min(max(data.in_shape[1:]), _LARGEST)
    step = side + max(1, side // 16)
    blocks = [range(first, min(first + _ROWS, data.num_classes)) for first in range(0, data.num_classes, _ROWS)]
    rows = min(_ROWS, data.num_classes)
    names = max(map(len, data.classes))
    cell = max(0.32, side / 160)
    width = len(blocks) * (_IMAGES * cell + 0.085 * names + 0.2)
    figure = new_figure(path, (width, rows * cell + 0.5))
    figure.suptitle(f"{data.name}: the first {_IMAGES} of each class", x=0.02, ha="left", fontsize=10)
    grid: Any = figure.subplots(1, len(blocks), squeeze=False)
    for axes, block in zip(grid[0], blocks):
        pixels = np.full((rows * step, _IMAGES * step, 3), 255, dtype=np.uint8)
        for row, label in enumerate(block):
            for column, image in enumerate(_first(split, label, side)):
                top, left = row * step, column * step
                pixels[top : top + side, left : left + side] = image
        axes.imshow(pixels, interpolation="nearest")
        axes.set_xticks([])
        middles = [row * step + side / 2 for row in range(len(block))]
        axes.set_yticks(middles, [data.classes[label] for label in block], fontsize=8)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    figure.savefig(path, dpi=160)
    return path


def _first(split: Split, label: int, side: int) -> list[NDArray[np.uint8]]:
    """Return the first images of a class that can be read, as RGB squares."""
    found: list[NDArray[np.uint8]] = []
    for row in np.flatnonzero(split.labels == label)[: _TRIES * _IMAGES].tolist():
        try:
            image = split.inputs[row] if split.inputs is not None else split.read(row) if split.read else None
        except BadImage:
            continue
        assert image is not None
        found.append(_square(image, side))
        if len(found) == _IMAGES:
            break
    return found


def _square(image: Tensor, side: int) -> NDArray[np.uint8]:
    if image.dtype != torch.uint8:
        low, high = image.min(), image.max()
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).round().to(torch.uint8)
    image = image if image.shape[1:] == (side, side) else center_crop(image, side)
    return image.expand(3, -1, -1).permute(1, 2, 0).numpy()


def _axes(data: Data, split: Split, path: Path) -> Path:
    rows = np.unique(np.linspace(0, len(split) - 1, _POINTS).astype(int))
    if split.inputs is not None:
        x = split.inputs[torch.from_numpy(rows)].flatten(1).double()
    else:
        assert split.read is not None
        x = torch.stack([split.read(row) for row in rows.tolist()]).flatten(1).double()
    x = x - x.mean(0)
    _, sizes, axes_of = torch.linalg.svd(x, full_matrices=False)
    points, shares = x @ axes_of[:2].T, sizes.square() / sizes.square().sum().clamp_min(1e-12)
    # The sign of an axis means nothing: the same one each time.
    points = points * axes_of[:2].sum(1).sign()
    figure = new_figure(path, (8.0, 5.6))
    axes = figure.subplots()
    labels = split.labels[rows]
    if data.num_classes <= _LEGEND:
        _by_class(axes, points.numpy(), labels, data.classes)
    else:
        axes.scatter(points[:, 0], points[:, 1], c=labels, cmap="nipy_spectral", s=5, lw=0)
    axes.set_xlabel(f"first principal axis ({float(shares[0]):.0%} of the variance)")
    axes.set_ylabel(f"second principal axis ({float(shares[1]) if len(shares) > 1 else 0:.0%})")
    axes.set_title(f"{data.name}: {len(rows):,} of {len(split):,} examples, a colour a class", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160)
    return path


def _by_class(axes: Axes, points: NDArray[np.float64], labels: NDArray[np.int64], names: tuple[str, ...]) -> None:
    from matplotlib import colormaps

    colours = colormaps["tab10" if len(names) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    for label, name in enumerate(names):
        here = points[labels == label]
        axes.scatter(here[:, 0], here[:, 1], s=7, lw=0, color=colours[label], label=name)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, markerscale=2.5, fontsize=9)
