"""The slope figure, by what is drawn in it."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from unswayed.report.figures import plot_losses


def drawn(tmp_path: Path, *specs: str, **options: object) -> Figure:
    """Draw, and catch the figure on its way to the file."""
    caught: list[Figure] = []
    real = Figure.savefig

    def keep(self: Figure, *args: object, **more: object) -> None:
        caught.append(self)
        real(self, *args, **more)

    with mock.patch.object(Figure, "savefig", keep):
        plot_losses(specs, tmp_path / "a.svg", **options)  # type: ignore[arg-type]
    return caught[0]


def test_lines_are_the_slopes_and_the_values(tmp_path: Path) -> None:
    slopes, values = drawn(tmp_path, "vce(a=4)", "vel(a=2)").axes
    u, slope = slopes.lines[0].get_data()
    assert np.allclose(slope, 1 / (u + 4))
    assert np.allclose(values.lines[0].get_ydata(), -np.log(u + 4))
    assert np.allclose(values.lines[1].get_ydata(), 2.0**-u)


def test_normalised_slopes_start_at_the_ratio_and_end_at_1(tmp_path: Path) -> None:
    slopes, values = drawn(tmp_path, "vce(a=0.5)", "vsl(a=0.5)", "agce(a=1, q=2)", normalise=True).axes
    for line, v in zip(slopes.lines, (3, 3.61413, 2), strict=True):
        assert np.isclose(line.get_ydata().max(), v, rtol=2e-3)
        assert np.isclose(line.get_ydata().min(), 1, rtol=2e-3)
    assert all(np.isclose(line.get_ydata()[-1], 0) for line in values.lines)


def test_what_shoots_up_does_not_flatten_the_rest(tmp_path: Path) -> None:
    slopes, values = drawn(tmp_path, "ce", "vce(a=1)").axes
    assert slopes.get_ylim()[1] < 6
    assert values.get_ylim()[1] < 5


def test_threshold_is_drawn_and_stays_in_sight(tmp_path: Path) -> None:
    figure = drawn(tmp_path, "vce(a=4)", normalise=True, threshold=36.0)
    assert figure.axes[0].get_ylim()[1] > 36
    assert any("36" in text.get_text() for text in figure.axes[0].texts)


def test_legend_names_each_loss_with_its_ratio(tmp_path: Path) -> None:
    (legend,) = drawn(tmp_path, "ce", "vce(a=4)").legends
    assert [text.get_text() for text in legend.get_texts()] == ["ce   v = ∞", "vce(a=4)   v = 1.25"]


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no loss to draw"):
        plot_losses([], tmp_path / "a.png")
