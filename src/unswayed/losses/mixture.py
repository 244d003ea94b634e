"""Two normal distributions that together are the distribution of some numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[float, float]


def fit(values: Array, *, rounds: int = 10, tolerance: float = 1e-3, floor: float = 1e-3) -> tuple[Pair, Pair]:
    """Return means and standard deviations of a mixture of two normal distributions, the one of the lower mean first.

    Expectation-maximisation from the best split of the numbers in two, for at most ``rounds``, or until the mean
    log-likelihood gains less than ``tolerance``; ``floor`` is added to the variances.

    >>> (low, high), _ = fit(np.array([0.0, 0.1, 0.2, 2.9, 3.0, 3.1]))
    >>> round(low, 3), round(high, 3)
    (0.1, 3.0)
    """
    upper = (values > _best_split(values)).astype(np.float64)
    size, means, variances = _moments(values, np.stack([1 - upper, upper]), floor)
    before = -np.inf
    for _ in range(rounds):
        off = (values - means[:, None]) ** 2 / variances[:, None]
        joint = np.log(size / len(values) / np.sqrt(2 * np.pi * variances))[:, None] - 0.5 * off
        total = np.logaddexp(joint[0], joint[1])
        size, means, variances = _moments(values, np.exp(joint - total), floor)
        now = float(total.mean())
        if abs(now - before) < tolerance:
            break
        before = now
    low, high = np.argsort(means, kind="stable")
    deviations = np.sqrt(variances)
    return (float(means[low]), float(means[high])), (float(deviations[low]), float(deviations[high]))


def _moments(values: Array, share: Array, floor: float) -> tuple[Array, Array, Array]:
    size = share.sum(1) + 10 * np.finfo(np.float64).eps
    means = share @ values / size
    return size, means, (share * (values - means[:, None]) ** 2).sum(1) / size + floor


def _best_split(values: Array) -> float:
    """Return the largest number of the lower part, where the squares about the means of two parts sum to the least."""
    ordered = np.sort(values)
    count = np.arange(1, len(ordered))
    below = np.cumsum(ordered)[:-1]
    between = below**2 / count + (ordered.sum() - below) ** 2 / (len(ordered) - count)
    return float(ordered[int(between.argmax())])
