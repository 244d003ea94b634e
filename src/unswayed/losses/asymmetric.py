"""Asymmetric losses: they attend to the label that weighs most, and ignore the rest."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unswayed.losses.base import Loss, PointwiseLoss
from unswayed.losses.evidence import Evidence


def _check_power(name: str, base: float, exponent: float) -> None:
    try:
        math.pow(base, exponent)
    except OverflowError:
        raise ValueError(f"{name}: {base:g}^{exponent:g} is too large a number; give a smaller a or q") from None


class AGCE(PointwiseLoss):
    """Asymmetric GCE, ``[(a+1)^q - (a+u)^q] / q``, with variation ratio ``((a+1)/a)^|q-1|``.

    Args:
        a: shift, ``> 0``.
        q: exponent, ``> 0``; above 1 the loss is concave, which makes it asymmetric for any noise that leaves the true
            label dominant, and hard to fit.

    >>> AGCE(a=1, q=2)(torch.zeros(1, 2), torch.tensor([0]))    # (4 - 2.25) / 2
    tensor(0.8750)
    """

    name = "agce"
    a: float
    q: float

    def __init__(self, a: float = 0.6, q: float = 0.6, **options: Any) -> None:
        super().__init__(a=a, q=q, **options)
        _check_power(self.name, self.a + 1, self.q)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``[(a+1)^q - (a+u)^q] / q``."""
        loss: Tensor = (self.a + 1) ** self.q - torch.pow(self.a + log_p.exp(), self.q)
        return loss / self.q


class AUL(PointwiseLoss):
    """Asymmetric unhinged loss, ``[(a-u)^q - (a-1)^q] / q``, with variation ratio ``(a/(a-1))^|q-1|``.

    Args:
        a: ``> 1``.
        q: exponent, ``> 0``; below 1 the loss is concave.

    >>> AUL(a=2, q=2)(torch.zeros(1, 2), torch.tensor([0]))     # (2.25 - 1) / 2
    tensor(0.6250)
    """

    name = "aul"
    a: float
    q: float

    def __init__(self, a: float = 5.5, q: float = 3.0, **options: Any) -> None:
        super().__init__(a=a, q=q, **options)
        _check_power(self.name, self.a, self.q)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``[(a-u)^q - (a-1)^q] / q``."""
        # Not a - u: where fp32 cannot tell a from 1, the slope at u = 1 would be 0 to a negative power.
        above = self.a - 1
        loss: Tensor = torch.pow(1 - log_p.exp() + above, self.q) - above**self.q
        return loss / self.q


class AEL(PointwiseLoss):
    """Asymmetric exponential loss, ``exp(-u/a)``, with variation ratio ``e^(1/a)``; it is VEL with base ``e^(1/a)``.

    Args:
        a: ``> 0``; larger is more robust.

    >>> AEL(a=1)(torch.zeros(1, 2), torch.tensor([0]))          # e^-0.5
    tensor(0.6065)
    """

    name = "ael"
    a: float

    def __init__(self, a: float = 2.5, **options: Any) -> None:
        super().__init__(a=a, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``exp(-u/a)``."""
        return torch.exp(-log_p.exp() / self.a)


class AMSE(Loss):
    """Asymmetric mean square error, ``(1/K) sum_k (p_k - a [k=y])^2``: the mean over classes too.

    Args:
        a: ``>= 1``; asymmetric for weights ``w`` if ``a >= sum(w) / (w_t - max w_i)``.

    >>> AMSE(a=2)(torch.zeros(1, 2), torch.tensor([0]))         # (1.5^2 + 0.5^2) / 2
    tensor(1.2500)
    """

    name = "amse"
    a: float

    def __init__(self, a: float = 30.0, **options: Any) -> None:
        super().__init__(a=a, **options)

    def formula(self, e: Evidence) -> Tensor:
        """Return ``(sum_k p_k^2 - 2 a u + a^2) / K``."""
        return (e.sum_classes(e.p**2) - 2 * self.a * e.p_y + self.a**2) / e.num_classes
