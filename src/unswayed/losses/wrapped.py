"""Losses around losses: they change the label, the logits or the probabilities that the loss inside sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unswayed.losses.base import Loss
from unswayed.losses.bounded import log_add
from unswayed.losses.evidence import Evidence, working_dtype
from unswayed.noise.matrix import Matrix, transition_matrix


class LabelSmoothing(Loss):
    """Label smoothing of any loss, ``(1-r) L(p, y) + r/K sum_k L(p, k)``; negative ``r`` sharpens the label instead.

    With cross entropy and ``r >= 0`` it is ``torch.nn.CrossEntropyLoss(label_smoothing=r)``, weights included.

    Args:
        loss: the loss inside, or its spec.
        r: share of the label that is spread over all ``K`` classes (the given one too), ``<= 1``.

    >>> LabelSmoothing(r=-0.5)(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(-0.3731)
    """

    name = "label_smoothing"
    loss: Loss
    r: float

    def __init__(self, loss: Loss | str = "ce", r: float = 0.1, **options: Any) -> None:
        super().__init__(loss=loss, r=r, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, under the changed label."""
        even = torch.full_like(e.log_p[:1], 1 / e.num_classes).expand_as(e.log_p)
        return (1 - self.r) * self.loss.expected(e) + self.r * self.loss.expected(e.with_label(even))


class LogitClip(Loss):
    """Any loss of logits whose L2 norm is clipped: rescaled to ``norm`` when it is larger, and left alone otherwise.

    This is the definition of the paper. Its public code, and that of papers that compare with it, rescales to ``norm``
    what is larger than ``1/norm``: that is ``published=True``, which for ``norm > 1`` stretches some logits.

    Args:
        loss: the loss inside, or its spec.
        norm: the largest norm, ``> 0``; the ``delta`` of public code, or ``1/temp`` of its authors'.
        published: whether to do as public code does, to repeat its results. (It adds 1e-7 to the norm too.)

    >>> LogitClip(norm=1.0)(torch.tensor([[3.0, 4.0]]), torch.tensor([0]))
    tensor(0.7981)
    """

    name = "logit_clip"
    loss: Loss
    norm: float
    published: bool

    def __init__(self, loss: Loss | str = "ce", norm: float = 1.0, published: bool = False, **options: Any) -> None:
        super().__init__(loss=loss, norm=norm, published=published, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, of the clipped logits."""
        logits = e.logits.to(working_dtype(e.logits))
        size = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
        most = 1 / self.norm if self.published else self.norm
        scale = torch.where(size > most, self.norm / size.clamp_min(most), 1)
        return self.loss.expected(e.with_logits(logits * scale))


class EpsSoftmax(Loss):
    """Any loss of probabilities that are pulled towards one-hot: ``p~ = max((p + m e_argmax) / (1 + m), p_min)``.

    Args:
        loss: the loss inside, or its spec.
        m: how far, ``>= 0``; 0 changes nothing. The largest entry's index is a constant for the gradient.
        p_min: floor of ``p~``, below which there is no gradient. It is in all published results; 0 switches it off.

    >>> EpsSoftmax(m=1.0)(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))    # -log((0.881 + 1) / 2)
    tensor(0.0615)
    """

    name = "eps_softmax"
    loss: Loss
    m: float
    p_min: float

    def __init__(self, loss: Loss | str = "ce", m: float = 1e4, p_min: float = 1e-8, **options: Any) -> None:
        super().__init__(loss=loss, m=m, p_min=p_min, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, of the changed probabilities."""
        log_p = e.log_p
        if self.m > 0:
            top = torch.zeros_like(log_p, dtype=torch.bool).scatter(1, log_p.argmax(1, keepdim=True), True)
            log_p = torch.where(top, log_add(log_p, math.log(self.m)), log_p) - math.log1p(self.m)
        if self.p_min > 0:
            log_p = log_p.clamp_min(math.log(self.p_min))
        return self.loss.expected(e.with_log_p(log_p))


def penalty_or_class_weight(weight: Any, class_weight: Any, default: float) -> tuple[Any, Any]:
    """Return both, for losses whose own parameter has the name that class weights have elsewhere."""
    if isinstance(weight, (Tensor, Sequence)) and not isinstance(weight, str):
        return default, weight
    return weight, class_weight


class Sparse(Loss):
    """Any loss with sparse regularisation: ``L(z~, y) + weight sum_k p_k^p`` on ``z~ = z / (temperature ||z||)``.

    Args:
        loss: the loss inside, or its spec.
        temperature: divides the normalised logits, ``> 0``; smaller ones make the prediction sharper.
        p: exponent of the penalty, ``0 < p <= 1``.
        weight: weight of the penalty, ``>= 0``. As this takes the name that class weights have elsewhere, those are
            ``class_weight`` here; a tensor or sequence given as ``weight`` means them too.

    >>> Sparse(temperature=1.0, p=0.5, weight=1.0)(torch.tensor([[3.0, 4.0]]), torch.tensor([1]))
    tensor(2.0106)
    """

    name = "sparse"
    _spec_names = {"penalty": "weight"}  # noqa: RUF012
    loss: Loss
    temperature: float
    p: float
    penalty: float

    def __init__(
        self,
        loss: Loss | str = "ce",
        temperature: float = 0.5,
        p: float = 0.1,
        weight: float | Tensor | Sequence[float] = 1.2,
        *,
        class_weight: Tensor | Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        penalty, class_weight = penalty_or_class_weight(weight, class_weight, 1.2)
        super().__init__(loss=loss, temperature=temperature, p=p, penalty=penalty, weight=class_weight, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside plus the penalty, of the normalised logits."""
        logits = e.logits.to(working_dtype(e.logits))
        size = torch.linalg.vector_norm(logits, dim=1, keepdim=True)
        # Logits that are all 0 have no direction: they stay 0, without a gradient.
        inner = e.with_logits(logits / (self.temperature * size.masked_fill(size == 0, math.inf)))
        penalty = inner.sum_classes(torch.exp(self.p * inner.log_p))
        return self.loss.expected(inner) + self.penalty * inner.average(penalty)


class Bootstrap(Loss):
    """Any loss of a label mixed with the model's own prediction: ``beta L(p, y) + (1-beta) sum_k t_k L(p, k)``.

    Args:
        loss: the loss inside, or its spec.
        beta: trust in the given label, from 0 to 1. Published: 0.95 for soft, 0.8 for hard.
        hard: ``t`` is the predicted class; otherwise ``t = p``, and the gradient flows through it.

    >>> Bootstrap(beta=0.8, hard=True)(torch.tensor([[0.0, 2.0]]), torch.tensor([0]))
    tensor(1.7269)
    """

    name = "bootstrap"
    loss: Loss
    beta: float
    hard: bool

    def __init__(self, loss: Loss | str = "ce", beta: float = 0.95, hard: bool = False, **options: Any) -> None:
        super().__init__(loss=loss, beta=beta, hard=hard, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, under the mixed label."""
        own = e.with_label(e.log_p.argmax(1) if self.hard else e.p)
        return self.beta * self.loss.expected(e) + (1 - self.beta) * self.loss.expected(own)


class _Correction(Loss):
    """What the two corrections share: a transition matrix, kept exactly, and on the device of the module in fp32."""

    loss: Loss
    T: Any
    _fp32: Tensor

    def __init__(self, loss: Loss | str, T: Any, **options: Any) -> None:
        if T is None:
            raise ValueError(f"{self.name} needs T, the matrix of how labels go wrong: nested lists, array or file")
        self._exact: Matrix = transition_matrix(T, f"{self.name}: T")
        T = T if isinstance(T, str) else tuple(tuple(row) for row in self._exact.tolist())
        super().__init__(loss=loss, T=T, **options)
        self._exact = self._used(self._exact)
        self.register_buffer("_fp32", torch.from_numpy(self._exact).float(), persistent=False)

    def _used(self, matrix: Matrix) -> Matrix:
        """Return what the formula needs of the matrix."""
        raise NotImplementedError(f"{type(self).__name__} does not define _used()")

    def _for(self, e: Evidence) -> Tensor:
        """Return that, in the precision of the computation."""
        if len(self._exact) != e.num_classes:
            raise ValueError(f"{self.name}: T has {len(self._exact)} classes, but the logits have {e.num_classes}")
        if working_dtype(e.logits) == torch.float64:
            return torch.from_numpy(self._exact).to(e.logits.device)
        return self._fp32.float()


class ForwardCorrection(_Correction):
    """Any loss of the probabilities of the *noisy* label, ``L(p^T T, y)``.

    Args:
        loss: the loss inside, or its spec.
        T: row-stochastic ``K x K`` matrix, ``T[i][j]`` the probability that true class ``i`` is labelled ``j``, as
            nested lists, array, tensor, or the path of a ``.csv`` or ``.npy`` file. Each label must occur in it.

    >>> ForwardCorrection(T=[[0.8, 0.2], [0.4, 0.6]])(torch.tensor([[0.0, 100.0]]), torch.tensor([0]))   # -log 0.4
    tensor(0.9163)
    """

    name = "forward_correction"

    def __init__(self, loss: Loss | str = "ce", T: Any = None, **options: Any) -> None:
        super().__init__(loss, T, **options)

    def _used(self, matrix: Matrix) -> Matrix:
        never = np.flatnonzero(matrix.sum(0) == 0)
        if len(never):
            raise ValueError(f"{self.name}: column {never[0]} of T is all 0, so that this label could never be given")
        with np.errstate(divide="ignore"):
            return np.log(matrix)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, of the probabilities of the noisy label."""
        log_t, log_p = self._for(e), e.log_p
        # In logarithms, as a probability that underflows would lose its gradient. The given label's column is enough
        # for a loss of u alone; a loss of the whole row needs them all.
        if self.loss.is_pointwise and not e.soft:
            column = log_t.t()[e.target].movedim(-1, 1)
            return e.average(self.loss.pointwise(torch.logsumexp(log_p + column, 1)))
        shape = (-1, *[1] * (log_p.dim() - 2))
        columns = [torch.logsumexp(log_p + log_t[:, j].view(shape), 1) for j in range(e.num_classes)]
        return self.loss.expected(e.with_log_p(torch.stack(columns, 1)))


class BackwardCorrection(_Correction):
    """Any loss under the label that undoes the noise on average: ``sum_k (T^-1)_yk L(p, k)``.

    Args:
        loss: the loss inside, or its spec.
        T: as in :class:`ForwardCorrection`, and invertible.

    >>> BackwardCorrection(T=[[0.8, 0.2], [0.4, 0.6]])(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(-1.8731)
    """

    name = "backward_correction"

    def __init__(self, loss: Loss | str = "ce", T: Any = None, **options: Any) -> None:
        super().__init__(loss, T, **options)

    def _used(self, matrix: Matrix) -> Matrix:
        if not np.linalg.cond(matrix) < 1e10:
            raise ValueError(f"{self.name}: T cannot be inverted (condition number {np.linalg.cond(matrix):.1e})")
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss inside, under the corrected label."""
        inverse = self._for(e)
        if e.soft:
            label = (e.target.to(inverse.dtype).movedim(1, -1).unsqueeze(-1) * inverse).sum(-2).movedim(-1, 1)
        else:
            label = inverse[e.target].movedim(-1, 1)
        return self.loss.expected(e.with_label(label))
