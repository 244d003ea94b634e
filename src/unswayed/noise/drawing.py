"""Random numbers that never change, and flips of labels in exactly the wanted numbers.

The bits of NumPy's PCG64 for a seed, and the way SeedSequence spreads a seed, are fixed for good; what Generator makes
of them is not. Numbers and orders are therefore made here, from the bits, with operations that give the same on every
machine: shifts, products with a power of two, the sorting of numbers that all differ. Nothing runs in threads.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unswayed.noise.matrix import Matrix

Labels = NDArray[np.int64]
# Normal numbers are multiples of this, and less than 8.
NORMAL_STEP = 2.0**-16


class Draw:
    """A stream of random numbers for a seed, and a place in the family of its streams.

    >>> Draw(0).uniform(2), Draw(0).order(4)
    (array([0.94293755, 0.31633715]), array([3, 1, 2, 0]))
    """

    def __init__(self, seed: int, *place: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0, *place)))

    def uniform(self, n: int) -> NDArray[np.float64]:
        """Return ``n`` numbers, evenly spread over [0, 1), of 52 bits, so that ``u * c < c`` also when rounded."""
        return np.asarray((self._bits.random_raw(n) >> 12) * 2.0**-52, dtype=np.float64)

    def order(self, n: int) -> NDArray[np.int64]:
        """Return 0 to ``n - 1`` in random order."""
        # Each number is sorted by random bits, and stands itself in the last ones.
        bits = np.uint64(n.bit_length())
        keys = (self._bits.random_raw(n) >> bits << bits) | np.arange(n, dtype=np.uint64)
        return np.asarray(np.sort(keys) & ((np.uint64(1) << bits) - np.uint64(1)), dtype=np.int64)

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Return standard normal numbers, rounded: each is one of 65,536 quantiles, all of which are equally likely."""
        n = math.prod(shape)
        sixteens = self._bits.random_raw(-(-n // 4)).astype("<u8").view("<u2")
        return np.take(_quantiles(), sixteens[:n]).reshape(shape)


@cache
def _quantiles() -> NDArray[np.float64]:
    half = map(NormalDist().inv_cdf, ((np.arange(2**15) + 0.5) / 2**16).tolist())
    lower = np.rint(np.fromiter(half, dtype=np.float64) / NORMAL_STEP) * NORMAL_STEP
    return np.concatenate([lower, -lower[::-1]])


def apportion(wanted: NDArray[np.float64], total: int, draw: Draw) -> Labels:
    """Round numbers down or up so that they sum to ``total``, those with the largest remainders up; ties by lot.

    >>> apportion(np.array([1.7, 0.2, 2.1]), 4, Draw(0))
    array([2, 0, 2])
    """
    counts = np.floor(wanted)
    # Remainders that differ by rounding alone are a tie on every machine. What is not wanted at all comes last.
    keys = (draw.order(len(wanted)), wanted == 0, -np.round(wanted - counts, 9))
    counts[np.lexsort(keys)[: total - int(counts.sum())]] += 1
    return counts.astype(np.int64)


def rounded(value: float) -> int:
    """Return the nearest whole number, the upper of two; 2.4999999999 is meant to be 2.5.

    >>> rounded(2.5), rounded(2.4)
    (3, 2)
    """
    return math.floor(round(value, 6) + 0.5)


def flip_exactly(labels: Labels, matrix: Matrix, draw: Draw) -> Labels:
    """Return labels of which exactly the wanted number is flipped.

    ``n_i T_ij`` labels of class ``i`` are to become ``j``. Their number over all classes is rounded, that of each class
    is rounded down or up so that the sum is this, and so is each ``n_i T_ij``, each by largest remainders.

    >>> labels = np.repeat(np.arange(2), 10)
    >>> noisy = flip_exactly(labels, np.array([[0.7, 0.3], [0.0, 1.0]]), Draw(1))
    >>> int((noisy[:10] == 1).sum()), int((noisy[10:] == 0).sum())
    (3, 0)
    """
    wanted = np.bincount(labels, minlength=len(matrix))[:, None] * matrix
    np.fill_diagonal(wanted, 0)
    rows = np.array([math.fsum(row) for row in wanted])
    flips = apportion(rows, rounded(math.fsum(rows)), draw)
    noisy = labels.copy()
    for i, row in enumerate(wanted):
        members = np.flatnonzero(labels == i)
        targets = np.repeat(np.arange(len(matrix)), apportion(row, int(flips[i]), draw))
        noisy[members[draw.order(len(members))[: len(targets)]]] = targets
    return noisy


def flip_independently(labels: Labels, matrix: Matrix, draw: Draw) -> Labels:
    """Return labels each of which is drawn on its own from its row of the matrix."""
    u = draw.uniform(len(labels))
    noisy = labels.copy()
    for i, row in enumerate(matrix):
        members = np.flatnonzero(labels == i)
        last = int(np.flatnonzero(row)[-1])
        noisy[members] = np.searchsorted(np.cumsum(row), u[members], side="right").clip(max=last)
    return noisy
