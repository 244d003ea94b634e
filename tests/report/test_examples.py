"""The sheet of examples, by the pixels and points that are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from unswayed.data import BadImage, Data, Split, wrap
from unswayed.report import plot_examples


def drawn(data: Data, path: Path) -> Figure:
    """Draw, and catch the figure on its way to the file."""
    caught: list[Figure] = []
    with mock.patch.object(Figure, "savefig", lambda self, *_, **__: caught.append(self)):
        plot_examples(data, path / "a.png")
    return caught[0]


def images(labels: Any, side: int = 16) -> tuple[torch.Tensor, Any]:
    """Images of one colour each, which tells the row."""
    return torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None].expand(-1, 3, side, side), labels


def cells(figure: Figure, side: int) -> list[list[int]]:
    step = side + max(1, side // 16)
    pixels = [np.asarray(axes.images[0].get_array())[:, :, 0] for axes in figure.axes]
    return [row for each in pixels for row in each[side // 2 :: step, side // 2 :: step].tolist()]


def test_the_first_images_of_each_class(tmp_path: Path) -> None:
    labels = np.array([0, 1] * 12 + [2, 2])
    figure = drawn(wrap(images(labels), classes=["a", "b", "c"]), tmp_path)
    assert cells(figure, 16) == [list(range(0, 20, 2)), list(range(1, 21, 2)), [24, 25] + [255] * 8]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_many_classes_stand_in_columns(tmp_path: Path) -> None:
    figure = drawn(wrap(images(np.arange(120) % 60)), tmp_path)
    assert [len(axes.get_yticks()) for axes in figure.axes] == [25, 25, 10]
    assert [row[:2] for row in cells(figure, 16)][:60] == [[n, n + 60] for n in range(60)]


def test_streamed_images_are_scaled_and_broken_ones_left_out(tmp_path: Path) -> None:
    def read(row: int) -> torch.Tensor:
        if row == 2:
            raise BadImage("2.png", "broken")
        return torch.full((1, 200, 300), row, dtype=torch.uint8)

    split = Split(np.array([0, 1, 0, 1, 0, 0]), read=read, size=150)
    figure = drawn(Data("own", split, {}, 2, (1, 150, 150), ("a", "b")), tmp_path)
    assert [row[:4] for row in cells(figure, 96)] == [[0, 4, 5, 255], [1, 3, 255, 255]]


@pytest.mark.parametrize("num_classes", [3, 25])
def test_features_lie_on_their_principal_axes(num_classes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(400) % num_classes
    x = rng.normal(size=(400, 5)) * [1, 9, 1, 4, 1]
    figure = drawn(wrap((x, labels)), tmp_path)
    (axes,) = figure.axes
    points = np.concatenate([np.asarray(each.get_offsets()) for each in axes.collections])
    assert points.shape == (400, 2)
    assert points.std(0) == pytest.approx([x[:, 1].std(), x[:, 3].std()], rel=0.05)
    assert "of the variance" in axes.get_xlabel()
    if num_classes == 3:
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0", "1", "2"]


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no picture of it"):
        plot_examples(wrap((np.arange(6)[:, None], [0, 1] * 3)), tmp_path / "a.png")
    with pytest.raises(ValueError, match="there is no folder"):
        plot_examples(wrap((np.zeros((6, 2)), [0, 1] * 3)), tmp_path / "none" / "a.png")
