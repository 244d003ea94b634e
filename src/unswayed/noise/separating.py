"""Telling wrong labels from a classifier's own errors: the model, and how it is fitted.

Examples are ranked by the margin ``m`` between the classifier's first and second guess (log-odds, in standard
deviations), ``u`` in 0..1. The true class is the first guess, the second, or another; the classifier's errors shrink
exponentially with the margin, and at margin 0 either guess is as good as the other:

    P(other) = f3 = sigmoid(-k m - t)      P(first) = f1 = (1 - f3) sigmoid(k m)      P(second) = f2 = 1 - f1 - f3

The label is wrong with probability ``r(u)``, which does not depend on whether the classifier is right, and is linear in
the rank: ``r(u) = high + (low - high) (1 - u)``. A wrong label is the other one of the two guesses with probability
``q``, which is measured where the classifier hardly errs. What is seen of an example is whether its label is the first
guess, the second, or neither; ``k``, ``t``, ``high`` and ``low`` make that most likely.

A classifier whose errors do not shrink as they should makes noise seem to hang on the margin where it does not.
Therefore ``r`` is linear only if the confident half, where errors hardly matter, asks for it (by BIC); else it is the
constant that fits that half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS = 200
# The model is not about absolute certainty, and logistic functions of more are 0 or 1.
_LARGEST = 15.0
# In all data tried on which the classifier learned, real and made up, k lay between 1.8 and 3.1. A weak prior of log k
# (mean, standard deviation) says so; it decides where there are few examples, and is nothing beside many.
_PRIOR = (float(np.log(2.5)), 0.5)
_STARTS = ((-3.0, -3.0), (-1.0, -1.0), (-1.5, 0.0))


@dataclass(frozen=True, eq=False)
class Table:
    """What is seen: by bins of the margin, how often the label is the first guess, the second, or neither."""

    counts: Floats  # (bins, 3)
    margin: Floats
    rank: Floats
    num_classes: int

    @classmethod
    def of(cls, counts: Floats, margin: Floats, num_classes: int) -> Table:
        sizes = counts.sum(1)
        return cls(counts, margin, (sizes.cumsum() - sizes / 2) / max(sizes.sum(), 1), num_classes)

    def above(self, cut: float) -> Table:
        """Return the table of the confident part alone; ranks stay."""
        part = self.rank > cut
        return Table(self.counts[part], self.margin[part], self.rank[part], self.num_classes)

    def attraction(self, cut: float) -> float:
        """The share of labels other than the first guess that are the second, in the confident part."""
        if self.num_classes == 2:
            return 1.0
        _, second, neither = self.above(cut).counts.sum(0)
        return float((second + 0.5) / (second + neither + 1))


@dataclass(frozen=True, eq=False)
class Separation:
    """A fitted model. ``gain`` is by how much (log-likelihood) noise that hangs on the margin fits the confident half
    better than constant noise; ``needed`` is what it must be for that to count."""

    k: float
    t: float
    high: float
    low: float
    q: float
    gain: float
    needed: float

    @property
    def constant(self) -> bool:
        """Whether the rate of noise is the same at every margin."""
        return self.gain <= self.needed

    @property
    def at_bound(self) -> bool:
        """Whether the model wants errors of the classifier to be possible between its two guesses only."""
        return self.t >= _LARGEST - 0.1

    def truth(self, margin: Floats, num_classes: int) -> Floats:
        """Return the chances ``(n, 3)`` that the first guess, the second, or neither is right."""
        return _truth(self.k, self.t, margin, num_classes)

    def noise(self, rank: Floats) -> Floats:
        """Return the chance of a wrong label."""
        return self.high + (self.low - self.high) * (1 - rank)

    def wrong(self, num_classes: int) -> Floats:
        """Return where wrong labels go: ``[true class][label]``, both first guess, second, neither."""
        return _wrong(self.q, num_classes)


def separate(table: Table, cut: float = 0.5, start: Separation | None = None) -> Separation:
    """Fit the model; ``cut`` is the rank from which the classifier counts as confident."""
    q, confident = table.attraction(cut), table.above(cut)
    warm = None if start is None else (np.log(start.k), start.t, _logit(start.high), _logit(start.low))
    flat, flat_fit = _fit(confident, q, warm, linear=False)
    _, linear_fit = _fit(confident, q, warm, linear=True)
    gain, needed = float(linear_fit - flat_fit), float(np.log(max(confident.counts.sum(), 2)) / 2)
    if gain > needed:
        best, _ = _fit(table, q, warm, linear=True)
    else:
        # The rate is what the confident half says; the classifier's errors are those of all examples.
        best, _ = _fit(table, q, warm, linear=False, rate=flat[2])
    k, t, high, low = best
    return Separation(float(np.exp(k)), float(t), float(_sigmoid(high)), float(_sigmoid(low)), q, gain, needed)


def _sigmoid(x: Floats | float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))


def _logit(p: float) -> float:
    return float(np.clip(np.log(max(p, 1e-9)) - np.log(max(1 - p, 1e-9)), -_LARGEST, _LARGEST))


def _truth(k: float, t: float, margin: Floats, num_classes: int) -> Floats:
    first = _sigmoid(k * margin)
    other = _sigmoid(-k * margin - t) if num_classes > 2 else np.zeros_like(first)
    return np.stack([(1 - other) * first, (1 - other) * (1 - first), other], -1)


def _wrong(q: float, num_classes: int) -> Floats:
    if num_classes == 2:
        return np.array([[0, 1.0, 0], [1, 0, 0], [0, 0, 0]])
    # The guesses attract with weight w each, all other classes together with weight 1.
    w, rest = q / (1 - q), (num_classes - 3) / (num_classes - 2)
    return np.array([[0, q, 1 - q], [q, 0, 1 - q], np.array([w, w, rest]) / (2 * w + rest)])


def _seen(x: Floats, q: float, table: Table) -> Floats:
    """Return the chances ``(bins, 3)`` of what is seen, for parameters ``(log k, t, logit high, logit low)``."""
    truth = _truth(float(np.exp(x[0])), x[1], table.margin, table.num_classes)
    high, low = _sigmoid(x[2]), _sigmoid(x[3])
    r = (high + (low - high) * (1 - table.rank))[:, None]
    return np.maximum(truth * (1 - r) + (truth * r) @ _wrong(q, table.num_classes), 1e-12)


def _fit(
    table: Table, q: float, warm: tuple[float, ...] | None, *, linear: bool, rate: float | None = None
) -> tuple[Floats, float]:
    """Return the most likely parameters and their log-likelihood; ``rate`` (a logit) fixes the constant rate."""
    # Which parameters move: the columns say how the four follow from those.
    free = [[1, 0, 0, 0]] + ([[0, 1, 0, 0]] if table.num_classes > 2 else [])
    if linear:
        free += [[0, 0, 1, 0], [0, 0, 0, 1]]
    elif rate is None:
        free += [[0, 0, 1, 1]]
    moves = np.array(free, np.float64).T
    starts = [np.array([0.0, 1.0, *pair]) for pair in _STARTS] if warm is None else [np.array(warm, np.float64)]
    found = []
    for x in starts:
        if rate is not None:
            x[2:] = rate
        elif not linear:
            x[2:] = x[2:].mean()
        found.append(_climb(x, moves, q, table))
    return max(found, key=lambda pair: pair[1])


def _climb(x: Floats, moves: Floats, q: float, table: Table) -> tuple[Floats, float]:
    """Maximise the likelihood, with the prior of k, by damped Fisher scoring."""
    n, step, damping = table.counts, 1e-4, 1e-3
    sizes = n.sum(1, keepdims=True)

    def value(at: Floats) -> tuple[Floats, float]:
        seen = _seen(at, q, table)
        return seen, float((n * np.log(seen)).sum()) - ((at[0] - _PRIOR[0]) / _PRIOR[1]) ** 2 / 2

    seen, best = value(x)
    for _ in range(200):
        slopes = [(_seen(x + step * d, q, table) - _seen(x - step * d, q, table)) / (2 * step) for d in moves.T]
        jacobian = np.stack(slopes)
        gradient = (jacobian * (n / seen)).sum((1, 2))
        information = np.einsum("aij,bij->ab", jacobian * (sizes / seen), jacobian)
        # The first parameter that moves is log k.
        gradient[0] -= (x[0] - _PRIOR[0]) / _PRIOR[1] ** 2
        information[0, 0] += 1 / _PRIOR[1] ** 2
        gained = 0.0
        while damping < 1e9:
            # A parameter that the data says nothing of stays where it is.
            damped = information + np.diag(damping * (np.diag(information) + 1e-3))
            proposal = np.clip(x + moves @ np.linalg.solve(damped, gradient), -_LARGEST, _LARGEST)
            seen_there, there = value(proposal)
            if there >= best:
                gained, x, seen, best = there - best, proposal, seen_there, there
                damping = max(damping / 10, 1e-9)
                break
            damping *= 10
        if gained < 1e-6:
            break
    return x, best
