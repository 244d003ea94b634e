"""The variation-bounded losses of the paper, and a variation-bounded version of any loss."""

from __future__ import annotations

import math
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from unswayed.losses.base import Loss, PointwiseLoss
from unswayed.losses.catalogue import vsl_ratio

# Beyond this, log(1 + exp(x)) and x are the same number in float64.
_LINEAR_FROM = 40.0


def log_of(a: float | Tensor) -> Any:
    """Return the logarithm of a parameter: a tensor where many losses are computed as one."""
    return a.log() if isinstance(a, Tensor) else math.log(a)


def log_add(log_p: Tensor, log_a: float | Tensor) -> Tensor:
    """Return ``log(p + a)`` from ``log p`` and ``log a``, with the exact gradient however small ``p`` is."""
    return log_a + F.softplus(log_p - log_a, threshold=_LINEAR_FROM)


def _checked_ratio(v: float, name: str) -> float:
    if not (isinstance(v, (int, float)) and not isinstance(v, bool) and 1 < v < math.inf):
        raise ValueError(f"{name}: v={v!r} is not allowed; a variation ratio is a finite number above 1 (1 is mae)")
    return float(v)


class VCE(PointwiseLoss):
    r"""Variation cross entropy, ``-log(u + a)``, with variation ratio ``(1 + a) / a``.

    Args:
        a: shift, ``a >= 0``; larger is more robust, ``0`` is cross entropy.

    >>> VCE(a=4)(torch.zeros(1, 10), torch.tensor([3]))         # -log(0.1 + 4)
    tensor(-1.4110)
    """

    name = "vce"
    a: float

    def __init__(self, a: float = 1.0, **options: Any) -> None:
        super().__init__(a=a, **options)

    @classmethod
    def with_ratio(cls, v: float, **options: Any) -> Self:
        """Build the loss whose variation ratio is ``v > 1``: ``a = 1 / (v - 1)``.

        >>> VCE.with_ratio(1.25)
        vce(a=4)
        """
        return cls(1 / (_checked_ratio(v, cls.name) - 1), **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``-log(u + a)``."""
        if isinstance(self.a, float) and self.a == 0:
            return -log_p
        return -log_add(log_p, log_of(self.a))


class VEL(PointwiseLoss):
    r"""Variation exponential loss, ``a^-u``, with variation ratio ``a``.

    Args:
        a: base, ``a > 1``; smaller is more robust, ``e`` is the exponential loss.

    >>> VEL(a=2)(torch.zeros(1, 2), torch.tensor([0]))          # 2^-0.5
    tensor(0.7071)
    """

    name = "vel"
    a: float

    def __init__(self, a: float = 2.0, **options: Any) -> None:
        super().__init__(a=a, **options)

    @classmethod
    def with_ratio(cls, v: float, **options: Any) -> Self:
        """Build the loss whose variation ratio is ``v > 1``: ``a = v``.

        >>> VEL.with_ratio(1.25)
        vel(a=1.25)
        """
        return cls(_checked_ratio(v, cls.name), **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``a^-u``."""
        return torch.exp(-log_of(self.a) * log_p.exp())


class VSL(PointwiseLoss):
    r"""Variation square log, ``[log(a u + 1) - log 2]^2 / a``, with ratio ``(1+a) ln 2 / (ln 2 - ln(1+a))``.

    Args:
        a: ``0 < a <= 1``; smaller is more robust, ``1`` is the square log loss, whose ratio is infinite.

    >>> VSL(a=0.5)(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.4418)
    """

    name = "vsl"
    a: float

    def __init__(self, a: float = 0.28, **options: Any) -> None:
        super().__init__(a=a, **options)

    @classmethod
    def with_ratio(cls, v: float, **options: Any) -> Self:
        """Build the loss whose variation ratio is ``v > 1``, by bisection (the ratio grows with ``a``).

        >>> VSL.with_ratio(2.0).a
        0.2823...
        """
        v = _checked_ratio(v, cls.name)
        return cls(_bisect(lambda log_a: vsl_ratio(math.exp(log_a)) - v, -700.0, 0.0, math.exp), **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``[log(a u + 1) - log 2]^2 / a``."""
        return (torch.log1p(self.a * log_p.exp()) - math.log(2)) ** 2 / self.a


def _bisect(excess: Any, low: float, high: float, result: Any = float) -> float:
    """Return where the increasing function ``excess`` crosses zero between ``low`` and ``high``."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return float(result((low + high) / 2))


def slope(loss: Loss, log_u: Tensor) -> Tensor:
    """Return ``|l'(u)|`` at ``u = exp(log_u)`` (in float64), from autograd."""
    with torch.enable_grad():
        x = log_u.detach().to(torch.float64).requires_grad_()
        (gradient,) = torch.autograd.grad(loss.pointwise(x).sum(), x)
    return (gradient * torch.exp(-x.detach())).abs()


def _solve(loss: Loss, v: float, by: str) -> tuple[float, float, float]:
    """Return ``(log c, value, slope)`` of the construction: the shift or factor, or the point of the tangent."""

    def at(log_u: float) -> float:
        return float(slope(loss, torch.tensor([log_u], dtype=torch.float64)))

    def ratio(first: float, last: float) -> float:
        top, least = at(first), at(last)
        return top / least if least > 0 else math.inf

    low = -690.0
    if by == "linear":
        least = at(0.0)
        if not least > 1e-12 * at(-1.0):
            raise ValueError(
                f"bounded: the slope of {loss} vanishes at u = 1, so that a tangent below some point cannot bound "
                f"its variation ratio; use by='base' or by='shift'"
            )
        if at(low) <= v * least:
            return -math.inf, 0.0, 0.0
        log_c = _bisect(lambda x: v * least - at(x), low, 0.0)
        return log_c, float(loss.pointwise(torch.tensor(log_c, dtype=torch.float64))), v * least
    if by == "shift":
        if ratio(low, 0.0) <= v:
            return -math.inf, 0.0, 0.0
        log_c = _bisect(lambda x: v - ratio(x, math.log1p(math.exp(x))), low, 46.0)
        # Beyond its domain a loss is flat, or what is left of it after rounding is.
        flat = not at(log_c) > 1e-12 * at(-1.0)
        reached = math.inf if flat else ratio(log_c, math.log1p(math.exp(log_c)))
    else:
        log_c = _bisect(lambda x: ratio(low, x) - v, low / 2, 46.0)
        reached = ratio(low, log_c)
    if not abs(reached - v) < 1e-6 * v:
        raise ValueError(
            f"bounded: by={by!r} cannot give {loss} the variation ratio {v:g}; "
            + ("l(u + c) leaves the domain of the loss" if by == "shift" else "l(c u) has the same ratio for every c")
            + "; try by='linear'"
        )
    return log_c, 0.0, 0.0


# What torch.compiler.assume_constant_result does, which would import all of the compiler, a second, with every loss.
_solve._dynamo_marked_constant = True  # type: ignore[attr-defined]


class Bounded(PointwiseLoss):
    r"""A version of any decreasing, convex loss ``l(u)`` whose variation ratio is at most ``v``.

    Args:
        loss: a loss of the given class's probability alone, or its spec.
        v: the ratio wanted, ``v > 1``.
        by: how. ``"linear"``: the tangent of ``l`` below the point where its slope is ``v`` times the least one (cross
            entropy becomes PHuber-CE); ``"shift"``: ``l(u + c)`` (cross entropy becomes VCE); ``"base"``: ``l(c u)``
            (the exponential loss becomes VEL).

    >>> from unswayed import CE, PHuberCE
    >>> logits, target = torch.tensor([[-3.0, 0.0, 2.0]]), torch.tensor([0])
    >>> Bounded(CE(), v=10)(logits, target), PHuberCE(tau=10)(logits, target)
    (tensor(3.2436), tensor(3.2436))
    """

    name = "bounded"
    loss: Loss
    v: float
    by: str

    def __init__(self, loss: Loss | str = "ce", v: float = 2.0, by: str = "linear", **options: Any) -> None:
        super().__init__(loss=loss, v=v, by=by, **options)
        if not self.loss.is_pointwise:
            raise ValueError(f"bounded: {self.loss} is no function of the given class's probability alone")
        self._log_c, self._value, self._slope = _solve(self.loss, self.v, self.by)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the bounded loss."""
        if self._log_c == -math.inf:
            return self.loss.pointwise(log_p)
        if self.by == "shift":
            return self.loss.pointwise(log_add(log_p, self._log_c))
        if self.by == "base":
            return self.loss.pointwise(log_p + self._log_c)
        tangent = self._value + self._slope * (math.exp(self._log_c) - log_p.exp())
        return torch.where(log_p > self._log_c, self.loss.pointwise(log_p), tangent)


def bounded(loss: Loss | str, v: float = 2.0, by: str = "linear", **options: Any) -> Bounded:
    """Return a version of ``loss`` whose variation ratio is at most ``v``: see :class:`Bounded`.

    >>> bounded("ce", v=10)
    bounded(loss=ce, v=10, by="linear")
    """
    return Bounded(loss, v, by, **options)
