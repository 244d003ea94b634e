"""What the figures of a page show, as plain values for its drawing code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from unswayed.report.figures import scaled
from unswayed.report.runs import Group, Summary
from unswayed.report.tables import certificates

Chart = dict[str, Any]
_CURVES = (
    ("test_accuracy", "Test accuracy", "On right labels, which the training never saw."),
    (
        "memorised", "Wrong labels memorised",
        "Share of the wrong training labels that the network predicts, counted while it trains.",
    ),
)  # fmt: skip
# Where slopes are computed: closely on the left, where they may shoot up.
_U = np.unique(np.concatenate([np.geomspace(1e-3, 0.05, 40).round(5), np.linspace(0.05, 1, 96).round(5)]))


def charts(group: Group) -> list[Chart]:
    """Return the figures of a group; one of which nothing is known is left out.

    >>> from unswayed.report.runs import Run, grouped
    >>> last = {"epoch": 1, "test_accuracy": 0.5}
    >>> run = Run({"experiment": {"data": "digits", "noise": "clean", "loss": "ce"}, "last": last}, [last])
    >>> [chart["title"] for chart in charts(grouped([run])[0])]
    ['Test accuracy', "Slope |l'(u)| of each loss"]
    """
    curves = [_curve(group, name, title, about) for name, title, about in _CURVES]
    return [chart for chart in (*curves, _slopes(group), _matrix(group), _reliability(group)) if chart is not None]


def _curve(group: Group, name: str, title: str, about: str) -> Chart | None:
    series: list[Chart] = []
    for i, setting in enumerate(group.settings):
        points = setting.curve(name)
        if any(points):
            spread = [None if p is None or p.std is None else round(100 * p.std, 2) for p in points]
            series.append({
                "loss": i,
                "y": [None if p is None else round(100 * p.mean, 2) for p in points],
                "std": spread if any(spread) else None,
            })  # fmt: skip
    if not series:
        return None
    bands = " The band is one standard deviation over seeds." if any(line["std"] for line in series) else ""
    last = max(len(line["y"]) for line in series)
    return {
        "kind": "lines", "title": title, "about": about + bands, "unit": "%", "series": series,
        "x": {"label": "epoch", "name": "epoch", "values": list(range(1, last + 1))}, "y": {"label": "%"},
    }  # fmt: skip


def _slopes(group: Group) -> Chart | None:
    series: list[Chart] = []
    parts, without = [], []
    for i, setting in enumerate(group.settings):
        try:
            part, slopes = _slope(setting.loss)
        except ValueError:
            continue  # a loss of one's own, of which only a name is known
        if slopes is None:
            without.append(setting.loss)
            continue
        if part:
            parts.append(f"{part} of {setting.loss}")
        series.append({"loss": i, "y": slopes})
    if not series:
        return None
    proofs = [proof for proof in certificates(group) if proof is not None]
    threshold = proofs[0].threshold if proofs else math.inf
    drawn = [v for line in series for v in line["y"] if v is not None]
    about = "How strongly an example pulls, by the probability u of its label; in units of the least slope."
    if parts:
        about += f" Of sums, the terms that are functions of u: {', '.join(parts)}."
    if without:
        about += f" No function of u: {', '.join(without)}."
    chart: Chart = {
        "kind": "lines", "title": "Slope |l'(u)| of each loss", "about": about, "unit": "", "series": series,
        "x": {"label": "probability u of the label", "name": "u =", "values": _U.tolist(), "low": 0},
        "y": {
            "label": "|l'(u)|, log scale", "log": True, "low": min(1.0, max(0.1, min(drawn))) * 0.9,
            "high": max(20.0, 2 * threshold if threshold < 500 else 0.0),
        },
    }  # fmt: skip
    if 1 < threshold < 500:
        chart["rule"] = {"at": threshold, "label": f"v certified up to {threshold:.3g}"}
    return chart


@cache
def _slope(loss: str) -> tuple[str, list[float | None] | None]:
    """Return the part of a sum that has a slope, if it is not the whole, and its slopes at ``_U``, if it has any."""
    from unswayed.theory import split

    found = split(loss)
    if found.curve is None:
        return "", None
    slopes = [float(f"{v:.4g}") if v > 0 else None for v in scaled(found.curve, _U)[1]]
    return found.curve.name if found.others else "", slopes


def _matrix(group: Group) -> Chart | None:
    drawn = [draw["matrix"] for draw in group.draws if draw.get("matrix")]
    if not drawn or any(len(matrix) != len(group.classes) for matrix in drawn):
        return None
    # A class without examples has a row of None.
    shares = np.array(drawn, dtype=np.float64)
    seen = np.where(np.isnan(shares), 0, shares).mean(0) * 100
    rates = [draw["rate"] for draw in group.draws if draw.get("rate") is not None]
    wrong = f"{100 * Summary(tuple(rates)).mean:.2f} % of the labels are wrong. " if rates else ""
    several = f", mean of {len(drawn)} draws" if len(drawn) > 1 else ""
    return {
        "kind": "heat", "title": "The noise as it was drawn",
        "about": f"{wrong}A row a true class, a column the label it was given, in percent of the row{several}.",
        "names": list(group.classes), "rows": [[round(v, 2) for v in row] for row in seen.tolist()],
    }  # fmt: skip


def _reliability(group: Group) -> Chart | None:
    series: list[Chart] = []
    for i, setting in enumerate(group.settings):
        tables = [run.record["calibration"]["bins"] for run in setting.runs if run.record.get("calibration")]
        ece = setting.summary("last", "test_ece")
        if tables and ece is not None:
            series.append({"loss": i, "ece": str(ece), "bins": [_pooled(bins) for bins in zip(*tables, strict=True)]})
    if not series:
        return None
    return {
        "kind": "reliability", "title": "Reliability after the last epoch", "series": series,
        "about": "Test accuracy among examples of which the network is equally sure: on the dotted line it is right as "
        "often as it says, and the pale part is what it lacks. Grey: shares of the examples. Seeds are pooled; ECE is "
        "mean ± standard deviation of theirs.",
    }  # fmt: skip


def _pooled(bins: Sequence[Sequence[float]]) -> list[float]:
    """Return number, mean confidence and accuracy (in percent) of several runs' examples in one bin."""
    n = sum(size for size, _, _ in bins)
    mean = [sum(size * values[i] for size, *values in bins) / max(n, 1) for i in range(2)]
    return [n, *(round(100 * value, 2) for value in mean)]
