"""What a loss guarantees under given noise: excess-risk bounds (Theorems 1 and 2) and the certificate."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unswayed.losses.base import Loss
from unswayed.noise.matrix import Matrix, transition_matrix
from unswayed.noise.spec import NoiseSpec
from unswayed.theory.conditions import (
    Parts,
    SymmetryGap,
    Tolerated,
    _judge,
    split,
    symmetry_gap,
    thresholds,
    tolerated,
)
from unswayed.theory.profile import Array, Curve

Noise = str | NoiseSpec | Matrix | Sequence[Sequence[float]]


@dataclass(frozen=True)
class ExcessRisk:
    """An upper bound on the clean risk that the noisy minimiser loses against the clean one.

    ``normalised`` is in units of the loss whose least slope is 1, as in the paper, ``raw`` in the loss's own units;
    ``tight`` and ``tight_raw`` use the exact symmetry gap instead of ``v - 1``. ``theorem`` is 1 (symmetric noise)
    or 2.

    >>> from unswayed import theory
    >>> theory.excess_risk_bound("vce(a=4)", "symmetric(0.8)", 10).normalised
    0.2000...
    """

    theorem: int
    factor: float
    normalised: float
    raw: float
    tight: float
    tight_raw: float


def excess_risk_bound(
    loss: Loss | str | Curve, noise: Noise, num_classes: int | None = None, *, prior: Sequence[float] | None = None
) -> ExcessRisk | None:
    """Return the bound of Theorem 1 for symmetric noise, ``eta/((1-eta)K-1) (v-1)``, else of Theorem 2.

    Theorem 2: ``(1 + c/a)(v-1)`` with ``c`` the mean of ``1 - eta_y`` (over classes with ``prior``, equal by default)
    and ``a`` the least of ``1 - eta_y - eta_yk``; it takes the clean minimiser to be one-hot. ``inf`` where labels are
    wrong too often for either; ``None`` for a loss to which they do not apply.

    >>> excess_risk_bound("mae", "asymmetric(0.4)", 10).raw
    0.0
    """
    matrix, _ = _resolve(noise, num_classes)
    return _bound(split(loss), symmetry_gap(loss, len(matrix)), matrix, prior)


def _resolve(noise: Noise, num_classes: int | None) -> tuple[Matrix, str]:
    if isinstance(noise, (str, NoiseSpec)):
        parsed = NoiseSpec.parse(noise)
        return parsed.transition(num_classes), str(parsed)
    matrix = transition_matrix(noise, "noise")
    if num_classes not in (None, len(matrix)):
        raise ValueError(f"the noise matrix has {len(matrix)} classes, but {num_classes} were asked for")
    return matrix, f"a {len(matrix)} x {len(matrix)} matrix"


def _bound(parts: Parts, gap: SymmetryGap, matrix: Matrix, prior: Sequence[float] | None) -> ExcessRisk | None:
    symmetric_rest = gap.exact and (gap.bound is not None or parts.curve is None)
    if not symmetric_rest:
        return None
    factor, theorem = _factor(matrix, prior)
    if theorem == 2 and parts.curve is None:
        return None
    unit = 1.0 if parts.curve is None else parts.curve.least
    ratio = 1.0 if parts.curve is None else parts.curve.ratio
    tight = 0.0 if gap.normalised is None else gap.normalised

    def times(size: float) -> float:
        return 0.0 if size == 0 or factor == 0 else factor * size

    normalised = times(ratio - 1)
    raw = times(gap.gap) if math.isinf(ratio) else normalised * unit
    return ExcessRisk(theorem, factor, normalised, raw, times(tight), times(gap.gap))


def _factor(matrix: Matrix, prior: Sequence[float] | None) -> tuple[float, int]:
    """Return what multiplies ``v - 1``, and the theorem it comes from."""
    classes = len(matrix)
    right = np.diag(matrix)
    wrong = matrix[~np.eye(classes, dtype=bool)]
    if np.ptp(right) < 1e-12 and np.ptp(wrong) < 1e-12:
        rate = float(1 - right[0])
        rest = (1 - rate) * classes - 1
        return (rate / rest if rest > 1e-12 else math.inf), 1
    weights = np.full(classes, 1 / classes) if prior is None else np.asarray(prior, dtype=np.float64)
    if weights.shape != (classes,) or (weights < 0).any() or not math.isclose(weights.sum(), 1, abs_tol=1e-6):
        raise ValueError(f"prior={prior!r} is not allowed; give {classes} numbers >= 0 that sum to 1")
    least = float(np.where(np.eye(classes, dtype=bool), np.inf, right[:, None] - matrix).min())
    return (1 + float(weights @ right) / least if least > 1e-12 else math.inf), 2


@dataclass(frozen=True)
class Certificate:
    """Whether a loss is proved to ignore some noise, why, and by what margin.

    ``ratio`` is the variation ratio of the part that is a function ``l(u)`` (``None`` if there is none), ``threshold``
    the largest ratio that the noise allows, ``margin`` their difference (positive: room left), ``bound`` the
    excess-risk bound in the paper's units. ``str()`` gives one paragraph, :meth:`as_dict` plain values, :meth:`json`
    JSON, in which infinity is the string ``"inf"``.

    >>> from unswayed import theory
    >>> print(theory.certify("vce(a=1)", "symmetric(0.8)", 10))
    vce(a=1) is certified against symmetric(0.8) with 10 classes: ...
    """

    loss: str
    noise: str
    num_classes: int
    holds: bool
    why: str
    ratio: float | None
    threshold: float
    margin: float | None
    bound: float | None
    excess_risk: ExcessRisk | None
    gap: SymmetryGap
    tolerated: Tolerated
    sharp: bool
    worst_class: int
    caveats: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "is certified" if self.holds else "is NOT certified"
        text = f"{self.loss} {verdict} against {self.noise} with {self.num_classes} classes: {self.why}."
        if self.holds:
            text += " A model that can fit the clean labels minimises the noisy risk by doing so."
        elif self.bound is not None and math.isfinite(self.bound):
            text += (
                f" What is left is a bound: the noise costs at most {self.bound:.4g} of clean risk "
                f"(in units of the least slope; Theorem {self.excess_risk.theorem if self.excess_risk else ''})."
            )
        elif self.excess_risk is not None and math.isfinite(self.excess_risk.tight_raw):
            text += (
                f" What is left is a bound: the noise costs at most {self.excess_risk.tight_raw:.4g} of clean risk "
                f"(in the loss's own units; from the exact symmetry gap)."
            )
        else:
            text += " Nor is there a bound on what the noise costs."
        if self.tolerated == Tolerated(0.0, 0.0):
            text += " It is certified against no rate of noise."
        else:
            sym, asym = (f"{100 * rate:.4g} %" for rate in (self.tolerated.symmetric, self.tolerated.asymmetric))
            text += f" It is certified up to {sym} symmetric noise, and up to {asym} of one class flipped to another."
        for caveat in self.caveats:
            text += f" Note: {caveat}."
        return text

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)

    def json(self, **options: Any) -> str:
        """Return all fields as JSON.

        >>> import json
        >>> from unswayed import theory
        >>> json.loads(theory.certify("ce", "symmetric(0.8)", 10).json())["ratio"]
        'inf'
        """
        return json.dumps(json_ready(self.as_dict()), **options)


def json_ready(value: Any) -> Any:
    """Replace what JSON cannot write: infinities become strings that ``float()`` reads back, NaN becomes null."""
    if isinstance(value, dict):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def certify(loss: Loss | str | Curve, noise: Noise, num_classes: int | None = None) -> Certificate:
    """Say whether ``loss`` is proved to ignore ``noise`` (Theorem 3, for each true class), and what is left if not.

    Args:
        loss: a loss, its spec, or a function ``l(u)`` of the given class's probability.
        noise: ``"symmetric(0.8)"``, ``"asymmetric(0.4)"``, ``"matrix(T.csv)"`` or a row-stochastic matrix.
        num_classes: ``K``, where the noise does not tell.

    >>> certify("nce + vce(a=0.4)", "asymmetric(0.4)", 100).holds
    False
    """
    matrix, name = _resolve(noise, num_classes)
    parts = split(loss)
    limits: Array = thresholds(matrix)
    worst = int(limits.argmin())
    threshold = float(limits[worst])
    verdicts = [_judge(parts, row) for row in _distinct(matrix)]
    failed = [verdict for verdict in verdicts if not verdict.holds]
    # The first row that fails explains most; if none does, the one with the least room.
    verdict = min(failed or verdicts, key=lambda v: v.threshold)
    holds, why = not failed, verdict.because
    if threshold <= 1:
        holds = False
        why = f"some wrong label of class {worst} is as likely as the right one, and no loss can see through that"
    gap = symmetry_gap(loss, len(matrix))
    risk = _bound(parts, gap, matrix, None)
    ratio = None if parts.curve is None else parts.curve.ratio
    caveats = verdict.caveats
    if caveats and risk is not None and risk.theorem == 2:
        caveats += ("the bound of Theorem 2 is proved for the part that is a function of u only",)
    margin = None if ratio is None or (math.isinf(ratio) and math.isinf(threshold)) else threshold - ratio
    return Certificate(
        loss=parts.name,
        noise=name,
        num_classes=len(matrix),
        holds=holds,
        why=why,
        ratio=ratio,
        threshold=threshold,
        margin=margin,
        bound=None if risk is None else risk.normalised,
        excess_risk=risk,
        gap=gap,
        tolerated=tolerated(loss, len(matrix)),
        sharp=verdict.sharp,
        worst_class=worst,
        caveats=caveats,
    )


def _distinct(matrix: Matrix) -> Array:
    """Return the rows that differ as label weights; for named noise with many classes there is one."""
    return np.unique(np.sort(matrix, axis=1), axis=0)
