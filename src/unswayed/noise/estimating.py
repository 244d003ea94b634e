"""How wrong given labels are, from what a classifier makes of them."""

# The module is not called estimate.py: its function stands under that name in the package, and a module would hide it.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unswayed.noise.joint import CUTS, AnchorPoints, ConfidentJoint, Corrected, Joint
from unswayed.noise.kinds import NoiseKind, kind_of
from unswayed.noise.matrix import Matrix
from unswayed.noise.ranking import Floats, ranked
from unswayed.noise.separating import Separation
from unswayed.spec import Param

_SEED = Param("seed", 0, "of the bootstrap and of the folds", kind="integer", low=0, high=2**32 - 1)
_RESAMPLES = Param("resamples", 100, "of the bootstrap", kind="integer", low=20)
_LEVEL = Param("level", 0.95, "of the intervals", low=0.5, high=1, open_high=True)
# With more errors than this among the half it is surest of, a classifier is no witness against labels.
_ERRORS = 0.1
# Bins of 50 examples with margins of their own; with fewer nothing can be fitted.
_LEAST_BINS = 10
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class MethodEstimate:
    """One way to estimate: the rate of wrong labels, and how often each class is labelled as each other one.

    ``low`` and ``high`` bound the rate; ``entries_low`` and ``entries_high`` bound the entries of ``joint``, as shares
    of their true class.
    """

    rate: float
    low: float
    high: float
    joint: Joint
    entries_low: Floats
    entries_high: Floats

    @property
    def matrix(self) -> Matrix:
        """The transition matrix, dense; the row of a class that nothing seems to belong to is nan."""
        return self.joint.matrix

    @property
    def matrix_interval(self) -> tuple[Matrix, Matrix]:
        """The bounds of the matrix, dense; what was never seen is 0 in both."""
        bounds = []
        for values in (self.entries_low, self.entries_high):
            dense = np.where(np.isnan(self.matrix), np.nan, 0.0)
            dense[self.joint.true, self.joint.label] = values
            bounds.append(dense)
        return bounds[0], bounds[1]


@dataclass(frozen=True, eq=False)
class NoiseEstimate:
    """How wrong labels seem to be.

    ``rate``, ``low``, ``high`` and ``matrix`` are those of the ``corrected`` method; ``methods`` has all three
    (``corrected``, ``confident joint``, ``anchor points``). Where the classifier is too weak a witness, ``warning``
    says why, and ``low`` and ``high`` span all three; without ``enough`` examples they are 0 and 1. ``kind`` is what
    the noise looks like, ``errors`` the share of examples that the classifier itself seems to get wrong.
    """

    examples: int
    num_classes: int
    level: float
    resamples: int
    methods: dict[str, MethodEstimate]
    kind: NoiseKind
    separation: Separation
    errors: float
    warning: str | None
    enough: bool

    @property
    def rate(self) -> float:
        """The share of wrong labels."""
        return self.methods["corrected"].rate

    @property
    def low(self) -> float:
        """The lower bound of the rate."""
        if not self.enough:
            return 0.0
        mine = self.methods["corrected"].low
        return mine if self.warning is None else min(m.low for m in self.methods.values())

    @property
    def high(self) -> float:
        """The upper bound of the rate."""
        if not self.enough:
            return 1.0
        mine = self.methods["corrected"].high
        return mine if self.warning is None else max(m.high for m in self.methods.values())

    @property
    def matrix(self) -> Matrix:
        """The transition matrix: ``T[i][j]`` is how often true class ``i`` is labelled ``j``."""
        return self.methods["corrected"].matrix

    def record(self) -> dict[str, Any]:
        """Return the estimate as plain values; the matrices as lists of their entries ``[i, j, share, low, high]``."""
        methods = {}
        for name, m in self.methods.items():
            cells = (m.joint.true, m.joint.label, m.joint.transitions, m.entries_low, m.entries_high)
            kept = m.joint.share > 0
            entries = [list(row) for row in zip(*(np.asarray(part)[kept].tolist() for part in cells))]
            methods[name] = {"rate": m.rate, "low": m.low, "high": m.high, "transitions": entries}
        return {
            "examples": self.examples,
            "num_classes": self.num_classes,
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "resamples": self.resamples,
            "kind": {"name": self.kind.name, "reasons": list(self.kind.reasons), "spread": self.kind.spread,
                     "lift": self.kind.lift},
            "classifier_errors": self.errors,
            "warning": self.warning,
            "methods": methods,
        }  # fmt: skip

    def sentences(self, classes: Sequence[str] | None = None) -> str:
        """Return the estimate in words."""
        names = [str(i) for i in range(self.num_classes)] if classes is None else list(classes)
        between = f"{100 * self.low:.1f} to {100 * self.high:.1f} %"
        lines = [
            f"How many of the {self.examples:,} labels are wrong can hardly be told: {between}."
            if self.warning is not None
            else f"About {100 * self.rate:.1f} % of the {self.examples:,} labels seem wrong "
            f"({100 * self.level:g} % interval {between}).",
            f"The noise looks {self.kind.name}: {'; '.join(self.kind.reasons)}."
            if self.kind.name != "unknown"
            else f"What kind of noise it is cannot be told: {'; '.join(self.kind.reasons)}.",
        ]
        joint = self.methods["corrected"].joint
        off = np.flatnonzero(joint.true != joint.label)
        worst = off[np.argsort(-joint.share[off], kind="stable")[:3]]
        told = [
            f"{names[joint.true[c]]} as {names[joint.label[c]]} ({100 * joint.transitions[c]:.1f} % of its examples)"
            for c in worst
            if joint.share[c] * self.examples >= 1
        ]
        if told:
            lines.append(f"Most often mistaken: {', '.join(told)}.")
        lines.append(f"The classifier itself seems to be wrong on {100 * self.errors:.1f} % of the examples.")
        if self.warning is not None:
            lines.append(f"Caution: {self.warning}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.sentences()


def estimate(
    labels: Any,
    probabilities: Any = None,
    *,
    features: Any = None,
    num_classes: int | None = None,
    resamples: int = 100,
    level: float = 0.95,
    seed: int = 0,
) -> NoiseEstimate:
    """Estimate how many labels are wrong, and which classes are taken for which.

    Args:
        labels: the given labels, 0 to ``K - 1``.
        probabilities: ``(N, K)``, of each example from a classifier that was not trained on it
            (:func:`unswayed.training.out_of_sample` makes them); best from a robust loss, like ``vce(a=1)``.
        features: instead of probabilities, a row for each example, from which they are made by cross-validation with
            a small network and a robust loss.
        num_classes: with features, the number of classes; by default the largest label tells.
        resamples: of the bootstrap, over examples; the classifier is not trained anew.
        level: of the intervals.
        seed: same inputs and seed, same result.

    Three methods (``docs/estimate.md`` has their assumptions): ``corrected`` tells wrong labels from the classifier's
    own errors; ``confident joint`` and ``anchor points`` are the classics.

    >>> rng = np.random.default_rng(0)
    >>> true = rng.integers(3, size=6000)
    >>> given = np.where(rng.random(6000) < 0.2, (true + rng.integers(1, 3, 6000)) % 3, true)
    >>> score = 4 * (np.eye(3)[true] + 0.5 * rng.standard_normal((6000, 3)))
    >>> found = estimate(given, np.exp(score) / np.exp(score).sum(1, keepdims=True))
    >>> found.low < 0.2 < found.high, found.kind.name
    (True, 'symmetric')
    """
    seed, resamples = _SEED.check("estimate", seed), _RESAMPLES.check("estimate", resamples)
    level = _LEVEL.check("estimate", level)
    if (probabilities is None) == (features is None):
        raise ValueError("estimate needs either probabilities= (out of sample) or features=, from which it makes them")
    if probabilities is None:
        probabilities = _from_features(features, labels, num_classes, seed)
    seen = ranked(probabilities, labels)
    n, rng = len(seen), np.random.default_rng(seed)
    corrected = Corrected(seen)
    counts: dict[str, ConfidentJoint | AnchorPoints | Corrected] = {
        "corrected": corrected,
        "confident joint": ConfidentJoint(seen),
        "anchor points": AnchorPoints(seen),
    }
    ones = np.ones(n)
    joints = {name: count.joint(ones) for name, count in counts.items()}
    found, table = corrected.fit(ones)
    rates: dict[str, list[float]] = {name: [] for name in counts}
    entries = {name: np.empty((resamples, len(joint.share)), np.float32) for name, joint in joints.items()}
    for b in range(resamples):
        weights = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        cut = rng.uniform(*CUTS)
        for name, count in counts.items():
            joint = count.joint(weights, cut)
            rates[name].append(joint.rate)
            entries[name][b] = joint.transitions
    ends = [(1 - level) / 2, (1 + level) / 2]
    methods = {}
    for name, joint in joints.items():
        low, high = np.quantile(rates[name], ends).tolist()
        methods[name] = MethodEstimate(joint.rate, low, high, joint, *_bounds(entries.pop(name), ends))
    truth = found.truth(table.margin, seen.num_classes)[:, 0]
    sizes = table.counts.sum(1)
    sure = np.where(table.rank > 0.5, sizes, 0)
    errors_of_sure = 1 - float((truth * sure).sum() / max(sure.sum(), 1))
    return NoiseEstimate(
        n, seen.num_classes, level, resamples, methods, kind_of(seen, found), found,
        1 - float((truth * sizes).sum() / sizes.sum()),
        _warning(found, errors_of_sure, seen.num_classes, len(sizes)), len(sizes) >= _LEAST_BINS,
    )  # fmt: skip


def _bounds(entries: Any, ends: list[float]) -> tuple[Floats, Floats]:
    """Return the bounds of each entry; a class that is missing from a resample says nothing of its entries there."""
    size = max(1, _CELLS // len(entries))
    parts = []
    for at in range(0, entries.shape[1], size):
        part = entries[:, at : at + size]
        if np.isnan(part).any():
            part = np.where(np.isnan(part).all(0), 0, part)
            parts.append(np.nanquantile(part, ends, axis=0))
        else:
            parts.append(np.quantile(part, ends, axis=0))
    low, high = np.concatenate(parts, 1)
    return low, high


def _warning(found: Separation, errors: float, num_classes: int, bins: int) -> str | None:
    if bins < _LEAST_BINS:
        return (
            f"{50 * _LEAST_BINS} examples or more are needed, with probabilities that tell how sure the classifier is; "
            f"with these, wrong labels cannot be told from its errors"
        )
    if errors > _ERRORS:
        return (
            f"the classifier seems to be wrong on {100 * errors:.0f} % of even the half it is surest of, so that its "
            f"errors and wrong labels can hardly be told apart; the interval spans all three methods. Better features "
            f"help, or a better classifier"
        )
    if num_classes > 2 and found.at_bound:
        return (
            "the model of the classifier's errors does not fit (see docs/estimate.md), so that they and wrong labels "
            "can hardly be told apart; the interval spans all three methods"
        )
    return None


def _from_features(features: Any, labels: Any, num_classes: int | None, seed: int) -> Any:
    from unswayed.data import wrap
    from unswayed.training.folds import out_of_sample

    given = np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels)
    if num_classes is None:
        num_classes = max(2, int(given.max()) + 1) if given.size and given.dtype.kind in "iu" else 2
    data = wrap((features, given), num_classes=num_classes)
    return out_of_sample(data, seed=seed)
