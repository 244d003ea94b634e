"""What noise looks like: symmetric, by class, or by instance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unswayed.noise.ranking import Ints, Ranked
from unswayed.noise.separating import Separation

# Of each predicted class, the share of surest examples that is looked at: there the classifier itself hardly errs.
_SUREST = 0.25
# From so many standard deviations on, a difference is no accident; below these sizes it is none that matters.
_SURE, _SPREAD, _LIFT = 5.0, 0.1, 1.5
# Fewer wrong labels than these, in number or as a share, may be the classifier's own errors.
_FEWEST, _RAREST = 30, 0.005


@dataclass(frozen=True)
class NoiseKind:
    """What noise looks like, and why.

    ``name`` is ``"symmetric"``, ``"class-dependent"``, ``"instance-dependent"``, or ``"unknown"`` where the surest
    examples have too few wrong labels. ``spread`` is 0 if every class has the same share of wrong labels and they go
    to all others alike (the chi-square of that, above what chance gives, by the number of wrong labels), and about
    ``K - 2`` where each class has one it is taken for; ``lift`` is how much more often wrong labels are the second
    guess for that very example than their classes alone make it.
    """

    name: str
    reasons: tuple[str, ...]
    spread: float
    lift: float


def kind_of(seen: Ranked, found: Separation) -> NoiseKind:
    """Return what the noise looks like."""
    k, guess, label = seen.num_classes, seen.guesses[:, 0], seen.labels
    order = np.lexsort((-seen.margin, guess))
    sizes = np.bincount(guess, minlength=k)
    starts = np.cumsum(sizes) - sizes
    rows = order[np.arange(len(order)) - starts[guess[order]] < np.ceil(_SUREST * sizes)[guess[order]]]
    surest = np.bincount(guess[rows], minlength=k)
    wrong = rows[guess[rows] != label[rows]]
    n = len(wrong)
    reasons = []
    if not found.constant:
        more = "more" if found.low > found.high else "less"
        reasons.append(
            f"labels are {more} often wrong where the classifier is unsure ({100 * found.low:.0f} %) than where it is "
            f"sure ({100 * found.high:.0f} %)"
        )
    if n < max(_FEWEST, _RAREST * len(rows)) or found.high < _RAREST:
        few = f"of the {len(rows):,} surest examples {n} look wrongly labelled, too few to tell where wrong labels go"
        return NoiseKind("instance-dependent" if reasons else "unknown", (*reasons, few), 0.0, 1.0)
    spread, spread_z = _spread(guess[wrong] * k + label[wrong], surest, n, k)
    lift, lift_z = _lift(guess[wrong], label[wrong], seen.guesses[wrong, 1], k)
    if lift_z > _SURE and lift > _LIFT:
        reasons.append(
            f"wrong labels are the classifier's second guess for that example {lift:.1f} times as often as their "
            f"classes alone explain"
        )
    if reasons:
        return NoiseKind("instance-dependent", tuple(reasons), spread, lift)
    same = f"labels are as often wrong where the classifier is unsure as where it is sure ({100 * found.high:.0f} %)"
    if spread_z > _SURE and spread > _SPREAD:
        return NoiseKind(
            "class-dependent",
            (same, "some classes are mislabelled more often than others, or as certain others"),
            spread,
            lift,
        )
    return NoiseKind("symmetric", (same, "all classes are mislabelled alike, as any other class"), spread, lift)


def _spread(pairs: Ints, surest: Ints, n: int, k: int) -> tuple[float, float]:
    """Return chi-square above chance, by the number of wrong labels, and in standard deviations."""
    found, counts = np.unique(pairs, return_counts=True)
    share = surest / surest.sum() / max(k - 1, 1)
    cells = int((surest > 0).sum()) * (k - 1)
    square = float((counts**2 / (n * share[found // k])).sum() - n)
    # The variance of Pearson's statistic for a multinomial with many small expectations.
    inverse = float(((k - 1) / share[surest > 0]).sum())
    variance = 2 * (cells - 1) + (inverse - cells**2 - 2 * cells + 2) / n
    return (square - (cells - 1)) / n, (square - (cells - 1)) / float(np.sqrt(max(variance, 1e-12)))


def _lift(guess: Ints, label: Ints, second: Ints, k: int) -> tuple[float, float]:
    """Return how much more often a label is the second guess than the other wrong labels of the class make it."""
    pairs, counts = np.unique(guess * k + label, return_counts=True)
    of_class = np.bincount(guess, minlength=k)[guess]
    wanted = guess * k + second
    place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    there = np.where(pairs[place] == wanted, counts[place], 0)
    hit = label == second
    # Each example is left out of the counts that it is compared with.
    chance = np.divide(there - hit, of_class - 1, out=np.zeros(len(guess)), where=of_class > 1)
    expected, hits = float(chance.sum()), float(hit[of_class > 1].sum())
    spread = float(np.sqrt((chance * (1 - chance)).sum()))
    return (hits / expected if expected > 0 else 1.0), (hits - expected) / max(spread, 1e-12)
