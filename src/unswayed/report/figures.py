"""Figures for papers and pages, drawn with matplotlib (``pip install 'unswayed[plot]'``)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unswayed.losses.base import Loss
from unswayed.noise.matrix import Matrix
from unswayed.theory import Profile, profile
from unswayed.theory.profile import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
# Okabe and Ito's colours, which colour-blind readers tell apart; dashes carry the rest.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))


def new_figure(path: Path, size: tuple[float, float]) -> Figure:
    """Return an empty figure (inches) that ``path`` can be written with."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{str(path)!r}: a figure is written as {', '.join(FORMATS)}; name such a file")
    if not path.parent.is_dir():
        raise ValueError(f"{str(path)!r}: there is no folder {str(path.parent)!r}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'unswayed[plot]'") from None
    return Figure(figsize=size, layout="constrained")


def plot_losses(
    losses: Sequence[Loss | str | Curve], path: str | Path, *, normalise: bool = False, threshold: float | None = None
) -> Path:
    """Draw ``|l'(u)|`` and ``l(u)`` of several losses over the probability ``u`` of the given class, and save it.

    Args:
        losses: losses, specs, or functions ``l(u)``.
        path: a ``.png``, ``.pdf`` or ``.svg`` file.
        normalise: scale each loss so that its least slope is 1 and ``l(1) = 0`` (where the slope vanishes: so that its
            slope at ``u = 1/2`` is 1). Then the left end of a slope curve is the variation ratio.
        threshold: the largest slope, on that scale, that some noise allows: a horizontal line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_losses(["ce", "vce(a=4)"], f"{folder}/slopes.svg").name
    'slopes.svg'
    """
    path = Path(path)
    if not losses:
        raise ValueError("there is no loss to draw; name one or more, like vce(a=4)")
    curves = [profile(loss) for loss in losses]
    figure = new_figure(path, (10.5, 4.4))
    slopes, values = figure.subplots(1, 2)
    u = np.unique(np.concatenate([np.logspace(-4, -2, 60), np.linspace(0.01, 1, 400)]))
    drawn = [scaled(curve, u) if normalise else _raw(curve, u) for curve in curves]
    for i, (curve, (value, slope)) in enumerate(zip(curves, drawn)):
        ratio = "∞" if math.isinf(curve.ratio) else f"{curve.ratio:.3g}"
        style = {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": DASHES[(i // len(COLOURS) + i) % len(DASHES)],
            "lw": 2,
        }
        slopes.plot(u, slope, label=f"{curve.name}   v = {ratio}", **style)
        values.plot(u, value, **style)
    scale = ", scaled to least slope 1" if normalise else ""
    _finish(slopes, f"slope |l'(u)|{scale}", u, [slope for _, slope in drawn], cut=0.25, floor=True)
    shifted = ", scaled alike, l(1) = 0" if normalise else ""
    _finish(values, f"loss l(u){shifted}", u, [value for value, _ in drawn], cut=0.05, floor=False)
    if threshold is not None and math.isfinite(threshold):
        slopes.axhline(threshold, color="0.35", lw=1, ls=":")
        slopes.annotate(
            f"certified below {threshold:.3g}", (1, threshold), ha="right", va="bottom", fontsize=9, color="0.25"
        )
        slopes.set_ylim(top=max(slopes.get_ylim()[1], 1.15 * threshold))
    _legend(figure, slopes)
    figure.savefig(path, dpi=160)
    return path


def plot_transition(matrix: Matrix, path: str | Path, *, classes: Sequence[str] | None = None, title: str = "") -> Path:
    """Draw a transition matrix as a heat map, true classes down and labels across, and save it.

    Args:
        matrix: ``T[i][j]``, the share of true class ``i`` that is labelled ``j``; the row of an absent class is nan.
        path: a ``.png``, ``.pdf`` or ``.svg`` file.
        classes: names of the classes.
        title: stands above.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_transition(np.array([[0.9, 0.1], [0, 1]]), f"{folder}/T.svg", classes=["cat", "dog"]).name
    'T.svg'
    """
    path, size = Path(path), len(matrix)
    side = min(max(4.6, 0.42 * size + 2), 15)
    figure = new_figure(path, (side + 0.9, side))
    from matplotlib.colors import PowerNorm

    axes = figure.subplots()
    # Shares of single wrong classes are small beside those of the right ones; the root tells them from nothing.
    norm = PowerNorm(0.5, 0, 1)
    colours = axes.imshow(np.ma.masked_invalid(matrix), cmap="viridis", norm=norm, interpolation="nearest")
    axes.set_facecolor("0.8")
    if size <= 20:
        for i, j in np.argwhere(matrix > 0):
            share = 100 * matrix[i, j]
            ink = "black" if norm(matrix[i, j]) > 0.6 else "white"
            axes.text(j, i, f"{share:.1f}" if share < 99.95 else "100", ha="center", va="center", color=ink, fontsize=8)
    shown = range(0, size, 1 if classes is not None or size <= 30 else 5)
    names = [str(i) if classes is None else classes[i] for i in shown]
    font = 9 if size <= 30 else 8 if classes is None else 6.5
    axes.set_xticks(shown, names, rotation=0 if classes is None else 90, fontsize=font)
    axes.set_yticks(shown, names, fontsize=font)
    axes.set_xlabel("labelled as")
    axes.set_ylabel("true class")
    axes.set_title(textwrap.fill(title, int(11 * side)), loc="left", fontsize=10)
    bar = figure.colorbar(colours, ax=axes, shrink=0.8, label="share of the true class, in percent")
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
    bar.set_ticks(ticks, labels=[f"{100 * tick:g}" for tick in ticks])
    figure.savefig(path, dpi=160)
    return path


def _raw(curve: Profile, u: Any) -> tuple[Any, Any]:
    value, signed = curve.curve(u)
    return value, np.abs(signed)


def scaled(curve: Profile, u: Any) -> tuple[Any, Any]:
    """Return ``l(u)`` and ``|l'(u)|`` in units of the least slope, or of the slope at 1/2 where the least is 0.

    >>> from unswayed.theory import profile
    >>> scaled(profile("vce(a=1)"), [0.5, 1])[1]
    array([1.3333..., 1.        ])
    """
    value, slope = _raw(curve, u)
    unit = curve.least if curve.least > 0 else float(np.interp(0.5, u, slope))
    return (value - curve.at_1) / unit, slope / unit


def _finish(axes: Axes, title: str, u: Any, lines: list[Any], *, cut: float, floor: bool) -> None:
    """Label the axes, and let what shoots up leave them, left of ``u = cut``, so that the rest can be read."""
    axes.set_xlabel("probability u of the given class")
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlim(0, 1)
    low = 0.0 if floor else min(float(np.min(line)) for line in lines)
    tops = [(float(np.max(line)), float(np.interp(cut, u, line))) for line in lines]
    high = max(top if top - low <= 2 * (inner - low) + 1e-12 else inner for top, inner in tops)
    room = 0.04 * (high - low) or 0.5
    axes.set_ylim(low if floor else low - room, high + room)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False, handlelength=3.2
    )
