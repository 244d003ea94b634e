"""Noise that depends on the example: what looks like another class is taken for it.

Both generators project an example ``x`` of class ``y`` with weights of its class, ``a = x W_y`` (``W_y``: features x
classes, standard normal), and a wrong label is ``j != y`` with probability ``softmax(a without y)_j``. They differ in
who gets a wrong label.

Labels must not hang on the machine, but the last bits of a matrix product do (order of summation, threads, fused
instructions). Inputs and weights are therefore rounded to multiples of powers of two, coarse enough that every product
and every partial sum is exact in float64, whatever the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.noise.drawing import NORMAL_STEP, Draw, Labels, apportion, rounded
from unswayed.noise.spec import NoiseSpec

Array = NDArray[np.float64]
# A weight is less than 8 in steps of 2^-16, which takes 19 bits, a sum of d products log2(d) more; float64 has 53.
_BITS_LEFT = 53 - math.frexp(8 / NORMAL_STEP)[1] + 1
_SPREAD = 0.1
_BLOCK = 2**19
_RATES, _TARGETS, _WEIGHTS = 1, 2, 3


def flip_by_instance(spec: NoiseSpec, labels: Labels, num_classes: int, features: Any, seed: int) -> Labels:
    """Return labels flipped as the spec of an ``instance`` noise says."""
    draw, rate = Draw(seed), spec.values["rate"]
    exact, pdn = spec.values["sampling"] == "exact", spec.values["kind"] == "pdn"
    if pdn:
        rates = _rates(rate, labels, exact, Draw(seed, _RATES))
    if not exact:
        wrong = draw.uniform(len(labels)) < (rates if pdn else rate)
    else:
        members = [np.flatnonzero(labels == y) for y in range(num_classes)]
        members = [own[draw.order(len(own))] for own in members]
        wanted = np.array([rates[own].sum() if pdn else len(own) * rate for own in members])
        counts = apportion(wanted, rounded(math.fsum(wanted)), draw)
        wrong = np.zeros(len(labels), dtype=bool)
        for own, count, u in zip(members, counts.tolist(), draw.uniform(num_classes).tolist()):
            wrong[own[_systematic(rates[own], count, u)] if pdn else own[:count]] = True
    inputs = _Inputs(features, len(labels), standardised=spec.values["scaling"] == "standardised")
    u = Draw(seed, _TARGETS).uniform(len(labels))
    noisy = labels.copy()
    for y in range(num_classes):
        rows = np.flatnonzero(wrong & (labels == y))
        if len(rows):
            weights = Draw(seed, _WEIGHTS, y).normal(inputs.width, num_classes)
            for block in inputs.blocks(rows):
                noisy[block] = _pick(inputs[block] @ weights, y, u[block])
    return noisy


def _rates(mean: float, labels: Labels, exact: bool, draw: Draw) -> Array:
    """Return each example's probability of a wrong label: normal around ``mean``, cut off at 0 and 1.

    Drawn on their own, or in each class the evenly spaced quantiles in random order.
    """
    if not exact:
        return _cut_normal(mean, draw.uniform(len(labels)))
    rates, of_size = np.empty(len(labels)), {}
    for y in np.unique(labels):
        members = np.flatnonzero(labels == y)
        size = len(members)
        if size not in of_size:
            of_size[size] = _cut_normal(mean, (np.arange(size) + 0.5) / size)
        rates[members] = of_size[size][draw.order(size)]
    return rates


def _cut_normal(mean: float, u: Array) -> Array:
    """Return the quantiles ``u``, as multiples of 2^-24, so that their sums are exact."""
    normal = NormalDist(mean, _SPREAD)
    low, high = normal.cdf(0), normal.cdf(1)
    found = list(map(normal.inv_cdf, (low + u * (high - low)).clip(1e-300, 1 - 2.0**-53).tolist()))
    return np.rint(np.clip(found, 0, 1) * 2.0**24) * 2.0**-24


def _systematic(rates: Array, count: int, u: float) -> NDArray[np.bool_]:
    """Choose ``count`` examples, each with its own rate; their number is the sum of the rates, rounded down or up.

    The rates are laid end to end, and who holds one of the points ``start, start + 1, ...`` is chosen.
    """
    total = float(rates.sum())
    rest = total - math.floor(total)
    # A start below the rest meets one point more than a start above it.
    start = rest * u if count > math.floor(total) else rest + (1 - rest) * u
    return np.diff(np.ceil(np.cumsum(rates) - start), prepend=0) > 0


def _pick(scores: Array, true: int, u: Array) -> Labels:
    """Return for each row a class other than the true one, drawn from the softmax of the others' scores."""
    scores[:, true] = -np.inf
    sums = np.cumsum(np.exp(scores - scores.max(1, keepdims=True)), axis=1)
    return np.asarray((sums <= u[:, None] * sums[:, -1:]).sum(1), dtype=np.int64)


class _Inputs:
    """Rows of features as float64 with few bits, read in blocks, so that they never stand in memory all at once."""

    def __init__(self, features: Any, n: int, *, standardised: bool) -> None:
        values = np.asarray(features.detach().cpu() if hasattr(features, "detach") else features)
        if values.ndim < 2 or len(values) != n or values.dtype.kind not in "uif" or not values.size:
            raise ValueError(
                f"features: {n} rows of numbers (or images) are needed, one for each label, not {values.dtype} of "
                f"shape {values.shape}"
            )
        self.values = values
        # A table has channels of one pixel.
        self.channels, self.pixels = values.shape[1], math.prod(values.shape[2:])
        self.width = self.channels * self.pixels
        self.bits = min(18, _BITS_LEFT - math.ceil(math.log2(self.width)))
        self._block = np.empty((max(1, _BLOCK // self.width), self.channels, self.pixels))
        self.mean, self.std = np.zeros((self.channels, 1)), np.ones((self.channels, 1))
        # Bytes are whole numbers of eight bits as they are.
        self.step = None if values.dtype == np.uint8 else self._step(*self._range())
        if standardised:
            self._standardise()

    def blocks(self, rows: Labels) -> Iterator[Labels]:
        size = len(self._block)
        return (rows[start : start + size] for start in range(0, len(rows), size))

    def __getitem__(self, rows: Labels) -> Array:
        """Return at most one block of rows, which the next call writes over."""
        # Memory that is used again is much faster than memory that is new.
        block = self._block[: len(rows)]
        np.copyto(block, self._read(rows))
        if self.step is not None:
            block -= self.mean
            block *= 1 / (self.std * self.step)
            np.rint(block, out=block)
            block *= self.step
        return block.reshape(len(rows), -1)

    def _read(self, rows: Any) -> NDArray[Any]:
        # The rows alone are brought into this shape: of images with channels last, that is a copy.
        found: NDArray[Any] = self.values[rows]
        return found.reshape(len(found), self.channels, self.pixels)

    def _range(self) -> tuple[Array, Array]:
        """Return the least and the largest value of each channel."""
        parts = map(self._read, self.blocks(np.arange(len(self.values))))
        each = [(part.min((0, 2)), part.max((0, 2))) for part in parts]
        low = np.min([a for a, _ in each], axis=0).astype(np.float64)[:, None]
        high = np.max([b for _, b in each], axis=0).astype(np.float64)[:, None]
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError("features: there are values that are not finite (nan or infinity)")
        return low, high

    def _step(self, low: Array, high: Array) -> Array:
        """Return the power of two whose multiples, of ``bits`` bits, reach as far as the values."""
        reach = float(max(-low.min(), high.max()))
        return np.array(2.0 ** (math.frexp(reach)[1] - self.bits))

    def _standardise(self) -> None:
        """Give each channel mean 0 and standard deviation 1, from sums that are exact."""
        low, high = (np.zeros((1, 1)), np.full((1, 1), 255.0)) if self.step is None else self._range()
        bits = 8 if self.step is None else self.bits
        # Each channel is measured from its least value in steps of its own, as columns of a table may be far from 0 and
        # differ by orders of magnitude.
        unit = np.ones_like(low) if self.step is None else 2.0 ** (np.frexp(high - low)[1] - bits)
        size = max(1, min(2 ** (53 - 2 * bits) // self.pixels, len(self._block)))
        first, high_half, low_half = np.zeros((3, len(self.mean)), dtype=np.int64)
        for start in range(0, len(self.values), size):
            block = self._read(slice(start, start + size)).astype(np.float64)
            if self.step is not None:
                block = np.rint((block - low) / unit)
            first += block.sum((0, 2)).astype(np.int64)
            # Squares of one block fit into 53 bits; those of all of them may need more than 63.
            squares = np.einsum("ncp,ncp->c", block, block).astype(np.int64)
            high_half, low_half = high_half + (squares >> 32), low_half + (squares & (2**32 - 1))
        sums = [(int(a), (int(b) << 32) + int(c)) for a, b, c in zip(first, high_half, low_half)]
        n = len(self.values) * self.pixels
        self.mean = low + np.array([one / n for one, _ in sums])[:, None] * unit
        variance = np.array([(n * two - one * one) / (n * n) for one, two in sums])[:, None]
        self.std = np.where(variance > 0, np.sqrt(variance) * unit, 1)
        self.step = self._step((low - self.mean) / self.std, (high - self.mean) / self.std)
