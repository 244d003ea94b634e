"""Cross entropy and the losses that grew around it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unswayed.losses.base import Loss, PointwiseLoss
from unswayed.losses.evidence import Evidence

# Keeps 0^(gamma-1) out of the gradient where u = 1; far below any 1 - u that fp32 can tell from 0.
_TINY = 1e-30


def one_minus_exp(x: Tensor) -> Tensor:
    """Return ``1 - exp(x)`` for ``x <= 0``, exact near 0, and with the exact gradient far below it.

    ``expm1`` alone loses the gradient ``exp(x)`` once it is below the last digit of 1; ``1 - exp`` alone loses the
    value near 0.
    """
    return torch.where(x > -0.5, -torch.expm1(x), 1 - torch.exp(x))


def focal(log_p: Tensor, gamma: float) -> Tensor:
    """Return ``-(1-p)^gamma log p`` elementwise; the gradient is that of the whole formula."""
    return -log_p * (-torch.expm1(log_p.clamp_max(-_TINY))) ** gamma


class CE(PointwiseLoss):
    """Cross entropy, ``-log u``: the same numbers as :class:`torch.nn.CrossEntropyLoss`.

    >>> CE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(2.3026)
    """

    name = "ce"

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``-log u``."""
        return -log_p


class MAE(PointwiseLoss):
    """Mean absolute error, ``scale (1 - u)``; the L1 distance to the one-hot label for ``scale=2``.

    Args:
        scale: factor, ``> 0``. Papers mean 2; repositories use 1 or 2, so that their weights do not compare.

    >>> MAE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(1.8000)
    """

    name = "mae"
    scale: float

    def __init__(self, scale: float = 2.0, **options: Any) -> None:
        super().__init__(scale=scale, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``scale (1 - u)``."""
        return self.scale * (1 - log_p.exp())


class Focal(PointwiseLoss):
    """Focal loss, ``-(1-u)^gamma log u``.

    Args:
        gamma: focusing exponent, from 0, which is cross entropy, to 100.

    >>> Focal(gamma=2)(torch.zeros(1, 2), torch.tensor([0]))    # 0.25 log 2
    tensor(0.1733)
    """

    name = "focal"
    gamma: float

    def __init__(self, gamma: float = 0.5, **options: Any) -> None:
        super().__init__(gamma=gamma, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``-(1-u)^gamma log u``."""
        return focal(log_p, self.gamma)


class RCE(PointwiseLoss):
    """Reverse cross entropy, ``-A (1 - u)``: a scaled MAE.

    Args:
        A: stands for ``log 0``, ``< 0``. Papers say -4; their code has ``ln 1e-4 = -9.2103``.

    >>> RCE()(torch.zeros(1, 10), torch.tensor([3]))
    tensor(3.6000)
    """

    name = "rce"
    A: float

    def __init__(self, A: float = -4.0, **options: Any) -> None:
        super().__init__(A=A, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``-A (1 - u)``."""
        return -self.A * (1 - log_p.exp())


class SCE(PointwiseLoss):
    """Symmetric cross entropy, ``alpha CE + beta RCE``.

    Args:
        alpha: weight of cross entropy, ``>= 0``.
        beta: weight of reverse cross entropy, ``> 0``.
        A: as in :class:`RCE`.

    >>> SCE(alpha=1, beta=1)(torch.zeros(1, 10), torch.tensor([3]))
    tensor(5.9026)
    """

    name = "sce"
    alpha: float
    beta: float
    A: float

    def __init__(self, alpha: float = 0.1, beta: float = 1.0, A: float = -4.0, **options: Any) -> None:
        super().__init__(alpha=alpha, beta=beta, A=A, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``-alpha log u - beta A (1 - u)``."""
        return -self.alpha * log_p - self.beta * self.A * (1 - log_p.exp())


class GCE(PointwiseLoss):
    """Generalized cross entropy, ``(1 - u^q) / q``.

    Args:
        q: ``0 < q <= 1``; towards 0 it is cross entropy, 1 is ``1 - u``.

    >>> GCE(q=0.7)(torch.zeros(1, 10), torch.tensor([3]))
    tensor(1.1435)
    """

    name = "gce"
    q: float

    def __init__(self, q: float = 0.7, **options: Any) -> None:
        super().__init__(q=q, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``(1 - u^q) / q``."""
        return one_minus_exp(self.q * log_p) / self.q


class TaylorCE(PointwiseLoss):
    """Taylor cross entropy, ``sum_{i=1..t} (1-u)^i / i``, with variation ratio ``t``.

    Args:
        t: number of terms, ``>= 1``; 1 is ``1 - u``, more come nearer to cross entropy.

    >>> TaylorCE(t=2)(torch.zeros(1, 2), torch.tensor([0]))     # 0.5 + 0.5^2 / 2
    tensor(0.6250)
    """

    name = "taylor_ce"
    t: int

    def __init__(self, t: int = 2, **options: Any) -> None:
        super().__init__(t=t, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the sum, by Horner's rule."""
        rest = 1 - log_p.exp()
        total = rest / self.t
        for i in range(self.t - 1, 0, -1):
            total = rest * (total + 1 / i)
        return total


class JS(PointwiseLoss):
    """Jensen-Shannon divergence of label and prediction, scaled so that ``pi → 0`` is CE and ``pi → 1`` is ``1 - u``.

    ``[pi KL(e_y || m) + (1-pi) KL(p || m)] / Z`` with ``m = pi e_y + (1-pi) p`` and ``Z = -(1-pi) log(1-pi)``.

    Args:
        pi: weight of the label, ``0 < pi < 1``.

    >>> JS(pi=0.5)(torch.tensor([[-1e4, 0.0]]), torch.tensor([0]))
    tensor(2.)
    """

    name = "js"
    pi: float

    def __init__(self, pi: float = 0.5, **options: Any) -> None:
        super().__init__(pi=pi, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the divergence, which depends on ``u`` alone."""
        w, log_w = 1 - self.pi, math.log1p(-self.pi)
        rest = w * log_p.exp()
        m_y = rest + self.pi
        return 1 + (m_y * m_y.log() - rest * (log_p + log_w)) / (w * log_w)


class GJS(Loss):
    """Generalised Jensen-Shannon divergence of the label and several predictions of one example.

    ``[pi KL(e_y || m) + (1-pi)/M sum_i KL(p_i || m)] / Z``, ``m = pi e_y + (1-pi)/M sum_i p_i``, with ``Z`` as in
    :class:`JS`. Call it with a sequence of ``M`` logits of one shape, as from several augmentations; one tensor gives
    :class:`JS`.

    Args:
        pi: weight of the label, ``0 < pi < 1``.
        views: how many augmentations of each example :func:`unswayed.training.train` gives it, ``>= 1``.

    >>> weak, strong = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.5]])
    >>> GJS(pi=0.5)([weak, strong], torch.tensor([0]))
    tensor(0.3409)
    """

    name = "gjs"
    takes_views = True
    pi: float
    views: int

    def __init__(self, pi: float = 0.5, views: int = 2, **options: Any) -> None:
        super().__init__(pi=pi, views=views, **options)

    def formula(self, e: Evidence) -> Tensor:
        """Return ``[H(m) - (1-pi)/M sum_i H(p_i)] / Z``, which is the same."""
        share = (1 - self.pi) / len(e.views)
        others = [e.with_logits(view) for view in e.views[1:]]
        log_p = [e.log_p, *(other.log_p for other in others)]
        log_p_y = [e.log_p_y, *(other.log_p_y for other in others)]
        log_s, log_s_y = (math.log(share) + torch.logsumexp(torch.stack(x), 0) for x in (log_p, log_p_y))
        # The rest of the row enters m as it stands; at the given class pi comes on top.
        disagreement = share * sum(x.exp() * x for x in log_p) - log_s.exp() * log_s
        s_y = log_s_y.exp()
        top = self.pi + s_y
        at_label = s_y * log_s_y - top * torch.log(top)
        return (e.sum_classes(disagreement) + at_label) / (-(1 - self.pi) * math.log1p(-self.pi))


class PHuberCE(PointwiseLoss):
    """Partially Huberised cross entropy: ``-log u`` with its tangent below ``u = 1/tau``; variation ratio ``tau``.

    Args:
        tau: largest slope, ``>= 1``.

    >>> PHuberCE(tau=2)(torch.tensor([[-1e4, 0.0]]), torch.tensor([0]))   # 1 + log 2
    tensor(1.6931)
    """

    name = "phuber_ce"
    tau: float

    def __init__(self, tau: float = 10.0, **options: Any) -> None:
        super().__init__(tau=tau, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the loss."""
        tangent = 1 + math.log(self.tau) - self.tau * log_p.exp()
        return torch.where(log_p > -math.log(self.tau), -log_p, tangent)


class PHuberGCE(PointwiseLoss):
    """Partially Huberised GCE: ``(1 - u^q)/q`` with its tangent below ``u* = tau^(1/(q-1))``; variation ratio ``tau``.

    Args:
        q: as in :class:`GCE`; with 1 there is nothing to bound.
        tau: largest slope, ``>= 1``.

    >>> PHuberGCE(q=0.5, tau=2)(torch.tensor([[-1e4, 0.0]]), torch.tensor([0]))
    tensor(1.5000)
    """

    name = "phuber_gce"
    q: float
    tau: float

    def __init__(self, q: float = 0.7, tau: float = 10.0, **options: Any) -> None:
        super().__init__(q=q, tau=tau, **options)

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the loss."""
        gce = one_minus_exp(self.q * log_p) / self.q
        if self.q == 1:
            return gce
        log_star = math.log(self.tau) / (self.q - 1)
        tangent = -math.expm1(self.q * log_star) / self.q + self.tau * (math.exp(log_star) - log_p.exp())
        return torch.where(log_p > log_star, gce, tangent)
