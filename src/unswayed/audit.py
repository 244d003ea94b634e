"""Which labels to distrust, ranked, with what they should probably be.

>>> import numpy as np
>>> from unswayed import audit
>>> rng = np.random.default_rng(0)
>>> true = rng.integers(3, size=3000)
>>> given = np.where(rng.random(3000) < 0.2, (true + 1) % 3, true)
>>> score = 4 * (np.eye(3)[true] + 0.4 * rng.standard_normal((3000, 3)))
>>> found = audit.suspects(given, np.exp(score) / np.exp(score).sum(1, keepdims=True))
>>> first = found.order[:100]
>>> float((given != true)[first].mean()) > 0.95, float((found.proposed == true)[first].mean()) > 0.95
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unswayed.noise.joint import Corrected
from unswayed.noise.ranking import Bools, Floats, Ints, ranked
from unswayed.spec import did_you_mean

SCORES = {
    "self-confidence": "the probability of the given label",
    "normalised margin": "half of 1 + the probability of the given label - the largest probability of another class",
    "log margin": "the probability of the given label, as a share of it and that of the likeliest other class",
}
_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Suspects:
    """Labels by how much they are to be distrusted.

    ``quality`` is the score of each label, from 0 (distrust it) to 1, as cleanlab's label quality; ``order`` are all
    examples, the most suspicious first; ``proposed`` is the likeliest class but the given one, and ``chance`` how
    likely each label is to be wrong, both by the model of the corrected estimate (``docs/estimate.md``); ``number`` is
    how many labels are wrong by that estimate.
    """

    labels: Ints
    score: str
    quality: Floats
    order: Ints
    proposed: Ints
    chance: Floats
    number: int

    def expected_precision(self, number: int | None = None) -> float:
        """Return which share of the first ``number`` suspects should really be wrong; by default of :attr:`number`."""
        number = self.number if number is None else number
        if not 0 <= number <= len(self.order):
            raise ValueError(f"number={number} is not allowed; it is 0 to {len(self.order)}, as there are labels")
        return float(self.chance[self.order[:number]].mean()) if number else 1.0

    @property
    def mask(self) -> Bools:
        """Which labels are among the first :attr:`number`: cleanlab's ``find_label_issues``, as it gives it."""
        mask = np.zeros(len(self.order), np.bool_)
        mask[self.order[: self.number]] = True
        return mask

    def by_class(self) -> list[dict[str, Any]]:
        """Return for each given label how many have it, how many of them are suspects, and what most of those are
        likely to be; the worst first."""
        chosen, k = self.mask, int(max(self.labels.max(), self.proposed.max())) + 1
        rows = []
        for label in np.unique(self.labels).tolist():
            mine = self.labels == label
            proposed = np.bincount(self.proposed[mine & chosen], minlength=k)
            rows.append(
                {"label": label, "examples": int(mine.sum()), "suspects": int((mine & chosen).sum()),
                 "mostly": int(proposed.argmax()) if proposed.any() else None}
            )  # fmt: skip
        return sorted(rows, key=lambda row: -row["suspects"] / row["examples"])

    def records(self, number: int | None = None) -> list[dict[str, Any]]:
        """Return the first ``number`` suspects as rows; by default :attr:`number`."""
        first = self.order[: self.number if number is None else number]
        return [
            {"row": int(i), "label": int(self.labels[i]), "proposed": int(self.proposed[i]),
             "quality": float(self.quality[i]), "chance": float(self.chance[i])}
            for i in first
        ]  # fmt: skip


def check_score(score: str) -> None:
    """Raise a ``ValueError`` if there is no such score."""
    if score not in SCORES:
        raise ValueError(f"unknown score {score!r}{did_you_mean(str(score), SCORES)}; known: {', '.join(SCORES)}")


def suspects(labels: Any, probabilities: Any, score: str = "self-confidence") -> Suspects:
    """Rank labels by how suspicious they are.

    Args:
        labels: the given labels, 0 to ``K - 1``.
        probabilities: ``(N, K)``, out of sample, best from a robust loss: see :func:`unswayed.training.out_of_sample`.
        score: ``"self-confidence"``, ``"normalised margin"`` (both as cleanlab has them) or ``"log margin"``. Ties
            are broken by the chance that the label is wrong, then by the order of the examples.
    """
    check_score(score)
    seen = ranked(probabilities, labels)
    p = probabilities.detach().cpu().numpy() if hasattr(probabilities, "detach") else np.asarray(probabilities)
    n, given = len(seen), seen.labels
    own, other = np.empty(n), np.empty(n)
    size = max(1, _CELLS // seen.num_classes)
    for at in range(0, n, size):
        part = p[at : at + size].astype(np.float64)
        rows = np.arange(len(part))
        own[at : at + size] = part[rows, given[at : at + size]]
        part[rows, given[at : at + size]] = -1
        other[at : at + size] = part.max(1)
    if score == "self-confidence":
        quality = own
    elif score == "normalised margin":
        quality = (own - other + 1) / 2
    else:
        quality = own / np.maximum(own + other, 1e-300)
    quality = np.clip(quality, 0, 1)
    chance, proposed = Corrected(seen).doubts()
    order = np.lexsort((-chance, quality))
    return Suspects(given, score, quality, order, proposed, chance, round(float(chance.sum())))
