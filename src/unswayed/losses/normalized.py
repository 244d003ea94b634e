"""Losses divided by their sum over all labels, which makes them symmetric."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unswayed.losses.base import Loss
from unswayed.losses.classic import focal, one_minus_exp
from unswayed.losses.evidence import Evidence


class NCE(Loss):
    """Normalised cross entropy, ``log u / sum_k log p_k``; sums to 1 over the labels.

    >>> NCE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.1000)
    """

    name = "nce"
    needs_sum = True

    def formula(self, e: Evidence) -> Tensor:
        """Return ``log u / sum_k log p_k``."""
        return e.log_p_y / e.sum_log_p


class NFL(Loss):
    """Normalised focal loss, ``focal(u) / sum_k focal(p_k)``; sums to 1 over the labels.

    Args:
        gamma: as in :class:`~unswayed.Focal`.

    >>> NFL()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.1000)
    """

    name = "nfl"
    gamma: float

    def __init__(self, gamma: float = 0.5, **options: Any) -> None:
        super().__init__(gamma=gamma, **options)

    def formula(self, e: Evidence) -> Tensor:
        """Return ``focal(u) / sum_k focal(p_k)``."""
        return focal(e.log_p_y, self.gamma) / e.sum_classes(focal(e.log_p, self.gamma))


class NGCE(Loss):
    """Normalised GCE, ``(1 - u^q) / (K - sum_k p_k^q)``; sums to 1 over the labels.

    Args:
        q: as in :class:`~unswayed.GCE`.

    >>> NGCE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.1000)
    """

    name = "ngce"
    q: float

    def __init__(self, q: float = 0.7, **options: Any) -> None:
        super().__init__(q=q, **options)

    def formula(self, e: Evidence) -> Tensor:
        """Return ``(1 - u^q) / sum_k (1 - p_k^q)``."""
        return one_minus_exp(self.q * e.log_p_y) / e.sum_classes(one_minus_exp(self.q * e.log_p))


class NMAE(Loss):
    """Normalised MAE, ``(1 - u) / (K - 1)``; sums to 1 over the labels.

    >>> NMAE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.1000)
    """

    name = "nmae"

    def formula(self, e: Evidence) -> Tensor:
        """Return ``(1 - u) / (K - 1)``."""
        return (1 - e.p_y) / (e.num_classes - 1)


class NRCE(NMAE):
    """Normalised reverse cross entropy, ``(1 - u) / (K - 1)``: the constant ``A`` cancels, so it is :class:`NMAE`.

    >>> NRCE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.1000)
    """

    name = "nrce"


class _Negative(Loss):
    """``1 - (A - l(u)) / sum_k (A - l(p_k))`` with ``l`` clipped at ``A = l(p_min)``."""

    p_min: float

    def flipped(self, log_p: Tensor) -> Tensor:
        """Return ``A - l(p)``."""
        raise NotImplementedError(f"{type(self).__name__} does not define flipped()")

    def formula(self, e: Evidence) -> Tensor:
        """Return ``1 - (A - l(u)) / sum_k (A - l(p_k))``."""
        if self.p_min * e.num_classes >= 1:
            raise ValueError(
                f"{self.name}: p_min={self.p_min:g} is not below 1/K = 1/{e.num_classes}; give a smaller one"
            )
        return 1 - self.flipped(e.log_p_y) / e.sum_classes(self.flipped(e.log_p))


class NNCE(_Negative):
    """Normalised negative cross entropy, ``1 - (A + log u) / sum_k (A + log p_k)``, ``A = -log p_min``.

    Probabilities below ``p_min`` count as ``p_min``: that floor is part of the definition, as ``A`` hangs on it.

    Args:
        p_min: floor, ``0 < p_min < 1/K``. Its authors use 1e-7; other repositories 1e-8.

    >>> NNCE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.9000)
    """

    name = "nnce"

    def __init__(self, p_min: float = 1e-7, **options: Any) -> None:
        super().__init__(p_min=p_min, **options)

    def flipped(self, log_p: Tensor) -> Tensor:
        """Return ``A + log p``."""
        floor = math.log(self.p_min)
        return log_p.clamp_min(floor) - floor


class NNFL(_Negative):
    """Normalised negative focal loss, ``1 - (A - focal(u)) / sum_k (A - focal(p_k))``, ``A = focal(p_min)``.

    Args:
        gamma: as in :class:`~unswayed.Focal`.
        p_min: as in :class:`NNCE`.

    >>> NNFL()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(0.9000)
    """

    name = "nnfl"
    gamma: float

    def __init__(self, gamma: float = 0.5, p_min: float = 1e-7, **options: Any) -> None:
        super().__init__(gamma=gamma, p_min=p_min, **options)

    def flipped(self, log_p: Tensor) -> Tensor:
        """Return ``A - focal(p)``."""
        floor = math.log(self.p_min)
        ceiling = -floor * math.pow(1 - self.p_min, self.gamma)
        return ceiling - focal(torch.clamp_min(log_p, floor), self.gamma)
