"""How often true class ``i`` is labelled ``j``: three ways to count it, each for examples of any weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unswayed.noise.matrix import Matrix
from unswayed.noise.ranking import Bools, Floats, Ints, Ranked
from unswayed.noise.separating import BINS, Separation, Table, separate

# Anchor points of a class: this share of the examples predicted as it, and at least so many.
_ANCHORS, _FEWEST = 0.02, 10
# How confident is confident, as a rank: in the estimate, and the range it is drawn from in the bootstrap.
CUT, CUTS = 0.5, (0.4, 0.6)
# Rounds in which the classes' own rates are found.
_STEPS = 5


@dataclass(frozen=True, eq=False)
class Joint:
    """Shares of all examples by true class and label, those that occur: ``share`` of true ``true`` labelled ``label``.

    >>> joint = Joint(2, np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0.3, 0.2, 0.5]))
    >>> joint.rate, joint.matrix.tolist()
    (0.2, [[0.6, 0.4], [0.0, 1.0]])
    """

    num_classes: int
    true: Ints
    label: Ints
    share: Floats

    @property
    def rate(self) -> float:
        """The share of wrong labels."""
        return float(self.share[self.true != self.label].sum())

    @property
    def classes(self) -> Floats:
        """The share of each true class."""
        sums: Floats = np.bincount(self.true, self.share, self.num_classes).astype(np.float64)
        return sums

    @property
    def transitions(self) -> Floats:
        """For each entry, the share of its true class: the entries of the transition matrix that are not 0."""
        sizes = self.classes[self.true]
        shares: Floats = np.divide(self.share, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
        return shares

    @property
    def matrix(self) -> Matrix:
        """The transition matrix, dense; the row of a class without examples is nan."""
        matrix = np.zeros((self.num_classes, self.num_classes))
        matrix[self.classes <= 0] = np.nan
        matrix[self.true, self.label] = self.transitions
        return matrix


class Cells:
    """Pairs of classes that occur, and the sum of what falls on each."""

    def __init__(self, true: Ints, label: Ints, num_classes: int) -> None:
        keys, self.place = np.unique(true * num_classes + label, return_inverse=True)
        self.own = true == label
        self.true, self.label, self.num_classes = keys // num_classes, keys % num_classes, num_classes

    def joint(self, weights: Floats) -> Joint:
        """Return the joint of what was counted, scaled to shares."""
        share = np.bincount(self.place, weights, len(self.true))
        return Joint(self.num_classes, self.true, self.label, share / max(share.sum(), 1e-300))


class ConfidentJoint:
    """Northcutt et al. (2021): an example counts for the class ``i`` that it belongs to with at least the mean
    probability which examples labelled ``i`` have for ``i``; of several, the likeliest. The counts of each label are
    scaled to all examples that have it."""

    def __init__(self, seen: Ranked) -> None:
        self._counted = seen.counted >= 0
        self._labels = seen.labels
        k = seen.num_classes
        # The diagonal takes the labels of which nothing is counted.
        self._cells = Cells(
            np.concatenate([seen.counted[self._counted], np.arange(k)]),
            np.concatenate([seen.labels[self._counted], np.arange(k)]), k,
        )  # fmt: skip

    def joint(self, weights: Floats, cut: float = CUT) -> Joint:
        """Count; there is no cut here."""
        k = self._cells.num_classes
        given = np.bincount(self._labels, weights, k)
        mine = weights[self._counted]
        counted = np.bincount(self._labels[self._counted], mine, k)
        scale = np.divide(given, counted, out=np.zeros(k), where=counted > 0)
        uncounted = np.where(counted > 0, 0, given)
        return self._cells.joint(np.concatenate([mine * scale[self._labels[self._counted]], uncounted]))


class AnchorPoints:
    """Patrini et al. (2017): examples that a classifier is surest of show what their class is labelled. Here the given
    labels of the surest 2 % of each predicted class (10 at least) are counted, as the probabilities of a robust
    classifier are not those of the given labels."""

    def __init__(self, seen: Ranked) -> None:
        guess = seen.guesses[:, 0]
        order = np.lexsort((-seen.top, -seen.margin, guess))
        self._sizes = np.bincount(guess, minlength=seen.num_classes)
        many = np.minimum(np.maximum(np.ceil(_ANCHORS * self._sizes), _FEWEST), self._sizes).astype(np.int64)
        starts = np.cumsum(self._sizes) - self._sizes
        self._rows = order[np.arange(len(order)) - starts[guess[order]] < many[guess[order]]]
        self._guess = guess
        self._cells = Cells(guess[self._rows], seen.labels[self._rows], seen.num_classes)

    def joint(self, weights: Floats, cut: float = CUT) -> Joint:
        """Count; there is no cut here."""
        k, at = self._cells.num_classes, self._guess[self._rows]
        sizes, anchors = np.bincount(self._guess, weights, k), np.bincount(at, weights[self._rows], k)
        scale = np.divide(sizes, anchors, out=np.zeros(k), where=anchors > 0)
        return self._cells.joint(weights[self._rows] * scale[at])


class Corrected:
    """The classifier's own errors are told from wrong labels by :mod:`unswayed.noise.separating`; each example then
    counts for each class that may be the true one by its chance."""

    def __init__(self, seen: Ranked) -> None:
        k, labels = seen.num_classes, seen.labels
        first, second = seen.guesses[:, 0], seen.guesses[:, 1]
        self._kind = np.where(labels == first, 0, np.where(labels == second, 1, 2))
        spread = seen.margin.std()
        self._margin = seen.margin / (spread or 1.0)
        bins = max(1, min(BINS, len(labels) // 50))
        edges = np.quantile(self._margin, np.arange(1, bins) / bins)
        # Equal margins share a bin, and a bin that is left empty says nothing.
        _, self._bin = np.unique(np.searchsorted(edges, self._margin, side="right"), return_inverse=True)
        self._bins, self._k = int(self._bin.max()) + 1, k
        # The likeliest class that is neither guess nor label, for examples whose truth and label both are others.
        true = [first, second]
        if k > 2:
            third = seen.guesses[:, 2]
            rest = np.where(labels == third, seen.guesses[:, min(3, k - 1)], third)
            true += [np.where(self._kind == 2, labels, third), rest]
        self._cells = Cells(np.concatenate(true), np.tile(labels, len(true)), k)
        self._true = np.stack(true, 1)
        self._start: Separation | None = None

    def table(self, weights: Floats) -> Table:
        """Return what the model is fitted to."""
        counts = np.bincount(self._bin * 3 + self._kind, weights, 3 * self._bins).astype(np.float64).reshape(-1, 3)
        margin = np.bincount(self._bin, self._margin * weights, self._bins) / np.maximum(counts.sum(1), 1e-300)
        return Table.of(counts, margin, self._k)

    def fit(self, weights: Floats, cut: float = CUT) -> tuple[Separation, Table]:
        """Fit the model; the next fit starts from the first."""
        table = self.table(weights)
        found = separate(table, cut, self._start)
        self._start = self._start or found
        return found, table

    def joint(self, weights: Floats, cut: float = CUT) -> Joint:
        """Count."""
        return self._counted(weights, cut)[0]

    def doubts(self) -> tuple[Floats, Ints]:
        """Return the chance of each label to be wrong, and the likeliest class but the label's."""
        _, parts, own = self._counted(np.ones(len(self._kind)), CUT)
        likeliest = np.where(own, -1, parts).argmax(1)
        return 1 - np.where(own, parts, 0).sum(1), self._true[np.arange(len(parts)), likeliest]

    def _counted(self, weights: Floats, cut: float) -> tuple[Joint, Floats, Bools]:
        """Return the joint, and for each example the chances of its candidates and which of them its label is."""
        found, table = self.fit(weights, cut)
        k = self._k
        r = found.noise(table.rank)[self._bin][:, None]
        truth, kind = found.truth(self._margin, k), self._kind
        # Chances of the candidates, and of their labels if those are wrong.
        chance, going = truth, found.wrong(k)[:, kind].T
        if k > 2:
            # Of the others, which are one place of the model, the label's own class and the rest are told apart.
            neither, alone = (kind == 2)[:, None], truth[:, 2:] / (k - 2)
            chance = np.hstack(
                [truth[:, :2], np.where(neither, alone, truth[:, 2:]), np.where(neither, alone * (k - 3), 0)]
            )
            going = np.hstack([going, going[:, 2:]])
            going[kind == 2] /= k - 2
        else:
            chance, going = chance[:, :2], going[:, :2]
        own = self._cells.own.reshape(-1, len(r)).T
        factor = np.ones(self._k)
        for step in range(_STEPS + 1):
            each = np.minimum(r * factor[self._true], 0.99) if step else r
            parts = chance * np.where(own, 1 - each, each * going)
            parts *= (weights / np.maximum(parts.sum(1), 1e-300))[:, None]
            joint = self._cells.joint(parts.T.ravel())
            off = joint.true != joint.label
            if step == _STEPS:
                break
            # Classes differ in how often they are mislabelled, and as what: what was counted says it.
            wrong = np.bincount(joint.true[off], joint.share[off], k)
            factor = (wrong + 1e-9) / (joint.classes + 1e-9)
            factor /= max(float(joint.share[off].sum()), 1e-300)
            to = joint.share / np.maximum(wrong[joint.true], 1e-300)
            going = to[self._cells.place].reshape(-1, len(r)).T
        # The rate is that of the model; where it goes is what was counted.
        rate = float((found.noise(table.rank) * table.counts.sum(1)).sum() / table.counts.sum())
        apart, kept = joint.share[off].sum(), joint.share[~off].sum()
        more, less = rate / max(apart, 1e-300), (1 - rate) / max(kept, 1e-300)
        parts = parts * np.where(own, less, more)
        parts /= np.maximum(parts.sum(1, keepdims=True), 1e-300)
        return Joint(k, joint.true, joint.label, joint.share * np.where(off, more, less)), parts, own
