"""When a loss ignores label noise: the symmetric and the asymmetric condition, and how far each is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from unswayed.losses.base import Loss, Sum
from unswayed.losses.catalogue import DOMINANT, IN_THE_LIMIT
from unswayed.losses.evidence import Evidence
from unswayed.losses.expression import loss as build
from unswayed.losses.registry import info
from unswayed.noise.matrix import Matrix
from unswayed.noise.spec import NoiseSpec
from unswayed.theory.profile import Array, Curve, Profile, profile

# Thresholds such as 0.2 / (0.8 / 9) carry rounding, and "v <= 2.25" must hold for v = 2.25.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Parts:
    """A loss as the theory sees it: a part that is a function ``l(u)``, and terms of the whole row that are not.

    >>> from unswayed import theory
    >>> theory.split("nce + 10*vce(a=4)").others
    ((1.0, nce),)
    """

    name: str
    curve: Profile | None
    others: tuple[tuple[float, Loss], ...]


def is_symmetric(loss: Loss) -> bool:
    """Whether a loss is known to sum to a constant over the labels, whatever the prediction.

    >>> is_symmetric(build("nce")), is_symmetric(build("ce"))
    (True, False)
    """
    return hasattr(loss, "name") and info(loss.name).symmetric


def split(loss: Loss | str | Curve) -> Parts:
    """Split a loss into its pointwise part and the rest; a spec or a function ``l(u)`` will do too."""
    loss = build(loss) if isinstance(loss, str) else loss
    if not isinstance(loss, Loss):
        curve = profile(loss)
        return Parts(curve.name, curve, ())
    terms = loss._terms()
    pointwise = [(c, term) for c, term in terms if term.is_pointwise]
    others = tuple((c, term) for c, term in terms if not term.is_pointwise)
    if not pointwise:
        return Parts(str(loss), None, others)
    whole = pointwise[0][1] if len(pointwise) == 1 and pointwise[0][0] == 1 else Sum(pointwise)
    return Parts(str(loss), profile(whole), others)


@dataclass(frozen=True)
class SymmetryGap:
    """How far ``sum_k L(u, k)`` ranges over the simplex; 0 for a symmetric loss.

    ``gap`` is in the loss's own units, ``normalised`` in units of its least slope, ``bound`` the paper's ``v - 1`` for
    the latter (Lemma 1). ``exact`` is false where ``gap`` was only searched for, and so is a lower bound; for a loss
    that depends on more than the prediction, such as a memory, it is infinite, as nothing is known.

    >>> from unswayed import theory
    >>> theory.symmetry_gap("vce(a=4)", 10)
    SymmetryGap(gap=0.0237..., normalised=0.1189..., bound=0.25, exact=True)
    """

    gap: float
    normalised: float | None
    bound: float | None
    exact: bool


def symmetry_gap(loss: Loss | str | Curve, num_classes: int) -> SymmetryGap:
    """Return the range of ``sum_k L(u, k)`` over all predictions ``u`` of ``K`` classes.

    For a convex ``l`` it is ``(K-1) l(0) + l(1) - K l(1/K)``, one-hot minus uniform; for a concave one the opposite.
    """
    _check_classes(num_classes)
    parts = split(loss)
    curve = parts.curve
    if not all(c >= 0 and is_symmetric(term) for c, term in parts.others):
        whole = build(loss) if isinstance(loss, (str, Loss)) else Sum(parts.others)
        return SymmetryGap(math.inf if whole.wants else _searched_gap(whole, num_classes), None, None, False)
    if curve is None:
        return SymmetryGap(0.0, None, None, True)
    exact = curve.shape != "mixed"
    if curve.shape == "linear":
        gap = 0.0
    elif math.isinf(curve.at_0):
        gap = math.inf
    elif exact:
        gap = abs((num_classes - 1) * curve.at_0 + curve.at_1 - num_classes * curve.value(1 / num_classes))
    else:
        gap = _range_of_sums(curve, num_classes)
    normalised = gap / curve.least if curve.least > 0 else math.inf
    return SymmetryGap(gap, normalised, curve.ratio - 1, exact)


def _searched_gap(loss: Loss, num_classes: int) -> float:
    """Return the range of the sum over labels among random predictions, from uniform to all but one-hot."""
    generator = torch.Generator().manual_seed(0)
    tries = max(4_000_000 // max(num_classes, 1000), 16)
    scale = torch.logspace(-2, 3, tries, dtype=torch.float64).unsqueeze(1)
    noise = torch.randn(tries, num_classes, generator=generator, dtype=torch.float64)
    logits = torch.cat([torch.zeros(1, num_classes, dtype=torch.float64), noise * scale])
    with torch.no_grad():
        sums = loss.expected(Evidence(logits, torch.ones_like(logits), total=loss.needs_sum))
    return float(sums.max() - sums.min())


def _range_of_sums(curve: Profile, num_classes: int, steps: int = 1200) -> float:
    """Return the range of ``sum_k l(u_k)`` for a curve that bends both ways, by dynamic programming over a grid."""
    grid = np.linspace(0, 1, steps + 1)
    grid[0] = 1e-300
    single: Array = curve.curve(grid)[0]

    def join(left: Array, right: Array, best: Callable[..., Any]) -> Array:
        return np.array([best(left[: i + 1] + right[i::-1]) for i in range(steps + 1)])

    ends = []
    for best in (np.max, np.min):
        # Binary powers of the operation "split u among so many classes".
        total: Array | None = None
        power, count = single, num_classes
        while count:
            if count & 1:
                total = power if total is None else join(total, power, best)
            count >>= 1
            power = join(power, power, best) if count else power
        assert total is not None
        ends.append(float(total[-1]))
    return ends[0] - ends[1]


@dataclass(frozen=True)
class Asymmetry:
    """Whether minimising ``sum_k w_k L(u, k)`` leads to the label with the largest weight, and why.

    ``threshold`` is ``w_t / max w_i``; ``sharp`` tells that the condition is necessary too, so that ``holds=False``
    means the loss is really drawn away; ``because`` is one sentence, ``caveats`` are what it leaves open.

    >>> from unswayed import theory
    >>> bool(theory.is_asymmetric("vce(a=1)", [5, 2, 2]))
    True
    """

    holds: bool
    because: str
    threshold: float
    ratio: float | None
    sharp: bool
    caveats: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.holds


LIMIT_CAVEAT = (
    "{terms} {verb} discontinuous at one-hot predictions, so that 'symmetric + asymmetric = asymmetric' is a "
    "statement about the limit"
)


def is_asymmetric(loss: Loss | str | Curve, weights: Sequence[float]) -> Asymmetry:
    """Check the asymmetric condition (Theorem 3) for label weights ``w``, one of which must be the largest.

    ``weights[k]`` is how often an example is labelled ``k``. For a strictly convex ``l(u)``, ``v <= w_t / max w_i`` is
    necessary as well as sufficient. Losses of the whole row are judged by what the registry knows of them.

    >>> is_asymmetric("vce(a=0.4)", [0.6, 0.4, 0]).because
    'v = 3.5 exceeds the threshold 1.5, and vce(a=0.4) is strictly convex, so that the condition is necessary too'
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or len(w) < 2 or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"weights={list(weights)!r} are not allowed; give 2 or more finite numbers >= 0")
    return _judge(split(loss), w)


def _judge(parts: Parts, w: Array) -> Asymmetry:
    ordered = np.sort(w)[::-1]
    first, second = float(ordered[0]), float(ordered[1])
    threshold = math.inf if second == 0 else first / second
    ratio = None if parts.curve is None else parts.curve.ratio
    if first <= second * (1 + _ROUNDING):
        return Asymmetry(
            False, "no label outweighs all others, so that no loss can tell which is true", 1.0, ratio, True
        )
    if second == 0:
        return Asymmetry(True, "there is no noise", threshold, ratio, True)
    others = _judge_others(parts, w)
    curve = parts.curve
    if curve is None or not others.holds:
        return replace(others, threshold=threshold, ratio=ratio)
    ratio, caveats = curve.ratio, others.caveats
    numbers = f"v = {ratio:.4g} {{}} the threshold {threshold:.4g}"
    if curve.shape in ("linear", "concave"):
        because = f"{curve.name} is {curve.shape}, which is enough whenever the true label dominates"
        return Asymmetry(True, because, threshold, ratio, False, caveats)
    # A convex loss with a straight piece has other minimisers too where the two are equal.
    strictly = curve.shape == "strictly convex"
    margin = 1 + _ROUNDING if strictly else 1 - _ROUNDING
    if ratio <= threshold * margin:
        return Asymmetry(True, numbers.format("is within"), threshold, ratio, strictly and not parts.others, caveats)
    sharp = curve.shape in ("strictly convex", "convex") and not parts.others
    because = numbers.format("exceeds")
    if not strictly and ratio <= threshold * (1 + _ROUNDING):
        because = (
            f"{numbers.format('equals')}, and {curve.name} has a straight piece, so that it has other minimisers too"
        )
    elif sharp:
        because += f", and {curve.name} is {curve.shape}, so that the condition is necessary too"
    return Asymmetry(False, because, threshold, ratio, sharp, caveats)


def _judge_others(parts: Parts, w: Array) -> Asymmetry:
    """Judge the terms that are no function of ``u`` alone."""
    rest = np.sort(w)[:-1]
    equal = bool(rest.max() - rest.min() <= _ROUNDING * w.max())
    limits: list[str] = []
    for c, term in parts.others:
        entry = info(term.name) if hasattr(term, "name") else None
        if c < 0 or entry is None:
            return Asymmetry(False, f"nothing is known about {c:g}*{term}", math.nan, None, False)
        if entry.name == "amse":
            needed = float(w.sum() / (w.max() - rest.max()))
            if float(term.params["a"]) < needed * (1 - _ROUNDING):
                because = f"{term} needs a >= sum(w) / (w_t - max w_i) = {needed:.4g}"
                return Asymmetry(False, because, math.nan, None, len(parts.others) == 1 and parts.curve is None)
        elif entry.symmetric and entry.asymmetric == IN_THE_LIMIT:
            limits.append(entry.name)
            if parts.curve is None and len(parts.others) == 1 and not equal:
                because = f"{term} is symmetric, which is enough only where all wrong labels are equally likely"
                return Asymmetry(False, because, math.nan, None, False)
        elif entry.symmetric and not equal and entry.asymmetric != DOMINANT:
            because = f"{term} is symmetric, which is enough only where all wrong labels are equally likely"
            return Asymmetry(False, because, math.nan, None, False)
        elif not entry.symmetric:
            because = f"{term} is no function of the given class's probability alone, and no condition is known for it"
            return Asymmetry(False, because, math.nan, None, False)
    names = ", ".join(str(term) for _, term in parts.others)
    because = f"{names} leads to the label with the largest weight"
    caveat = LIMIT_CAVEAT.format(terms=" and ".join(limits), verb="is" if len(limits) == 1 else "are")
    return Asymmetry(True, because, math.nan, None, False, (caveat,) if limits else ())


@dataclass(frozen=True)
class Tolerated:
    """The largest noise rates for which a loss is certified: symmetric, and asymmetric (to one other class).

    >>> from unswayed import theory
    >>> theory.tolerated("vce(a=1)", 10)
    Tolerated(symmetric=0.818..., asymmetric=0.333...)
    """

    symmetric: float
    asymmetric: float


def tolerated(loss: Loss | str | Curve, num_classes: int) -> Tolerated:
    """Return the largest certified rates: ``(K-1)/(K-1+v)`` and ``1/(1+v)`` for a strictly convex ``l(u)``."""
    _check_classes(num_classes)
    parts = split(loss)

    def largest(kind: str, end: float) -> float:
        low, high = 0.0, end
        for _ in range(60):
            rate = (low + high) / 2
            certified = all(
                _judge(parts, row) for row in NoiseSpec.parse(f"{kind}({rate})").transition(num_classes)[:1]
            )
            low, high = (rate, high) if certified else (low, rate)
        # A rate that no rounding can tell from the end of the range, or from no noise, is told as such.
        return end if end - low < 1e-12 else 0.0 if low < 1e-8 else low

    return Tolerated(largest("symmetric", 1 - 1 / num_classes), largest("asymmetric", 0.5))


def thresholds(matrix: Matrix) -> Array:
    """Return ``T_yy / max_k T_yk`` for each class: what the variation ratio must not exceed.

    >>> thresholds(np.array([[0.8, 0.2], [0.0, 1.0]]))
    array([ 4., inf])
    """
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix).max(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wrong > 0, np.diag(matrix) / wrong, np.inf)


def _check_classes(num_classes: int) -> None:
    if isinstance(num_classes, bool) or int(num_classes) != num_classes or num_classes < 2:
        raise ValueError(f"num_classes={num_classes!r} is not allowed; it is a whole number of 2 or more")
