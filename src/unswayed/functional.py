"""One function a loss, in the manner of ``torch.nn.functional``: same name, parameters and options as its spec.

Every function takes ``input`` and ``target`` as the loss classes do, the loss's parameters by keyword, and
``weight``, ``sample_weight``, ``ignore_index`` and ``reduction``.

>>> import torch
>>> from unswayed import functional
>>> functional.vce(torch.zeros(1, 10), torch.tensor([3]), a=4)
tensor(-1.4110)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from torch import Tensor

from unswayed import losses
from unswayed.losses.base import Loss, Options


class CallOptions(Options, total=False):
    """What every function here takes besides the loss's own parameters."""

    sample_weight: Tensor | None


def _call(
    cls: type[Loss],
    input: Tensor | Sequence[Tensor],
    target: Tensor,
    options: CallOptions | dict[str, Any],
    **params: Any,
) -> Tensor:
    sample_weight = options.pop("sample_weight", None)
    loss: Tensor = cls(**params, **options)(input, target, sample_weight=sample_weight)
    return loss


def ce(input: Tensor, target: Tensor, **options: Unpack[CallOptions]) -> Tensor:
    """Cross entropy; :class:`unswayed.CE` says what the parameters mean.

    ``-log u``

    >>> import torch
    >>> ce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1269)
    """
    return _call(losses.CE, input, target, options)


def mae(input: Tensor, target: Tensor, *, scale: float = 2.0, **options: Unpack[CallOptions]) -> Tensor:
    """Mean absolute error; :class:`unswayed.MAE` says what the parameters mean.

    ``scale (1 - u)``

    >>> import torch
    >>> mae(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.2384)
    """
    return _call(losses.MAE, input, target, options, scale=scale)


def focal(input: Tensor, target: Tensor, *, gamma: float = 0.5, **options: Unpack[CallOptions]) -> Tensor:
    """Focal loss; :class:`unswayed.Focal` says what the parameters mean.

    ``-(1-u)^gamma log u``

    >>> import torch
    >>> focal(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.0438)
    """
    return _call(losses.Focal, input, target, options, gamma=gamma)


def rce(input: Tensor, target: Tensor, *, A: float = -4.0, **options: Unpack[CallOptions]) -> Tensor:
    """Reverse cross entropy; :class:`unswayed.RCE` says what the parameters mean.

    ``-A (1 - u)``

    >>> import torch
    >>> rce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.4768)
    """
    return _call(losses.RCE, input, target, options, A=A)


def sce(
    input: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    A: float = -4.0,
    **options: Unpack[CallOptions],
) -> Tensor:
    """Symmetric cross entropy; :class:`unswayed.SCE` says what the parameters mean.

    ``alpha (-log u) - beta A (1 - u)``

    >>> import torch
    >>> sce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.4895)
    """
    return _call(losses.SCE, input, target, options, alpha=alpha, beta=beta, A=A)


def gce(input: Tensor, target: Tensor, *, q: float = 0.7, **options: Unpack[CallOptions]) -> Tensor:
    """Generalized cross entropy; :class:`unswayed.GCE` says what the parameters mean.

    ``(1 - u^q) / q``

    >>> import torch
    >>> gce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1215)
    """
    return _call(losses.GCE, input, target, options, q=q)


def taylor_ce(input: Tensor, target: Tensor, *, t: int = 2, **options: Unpack[CallOptions]) -> Tensor:
    """Taylor cross entropy; :class:`unswayed.TaylorCE` says what the parameters mean.

    ``sum_{i=1..t} (1-u)^i / i``

    >>> import torch
    >>> taylor_ce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1263)
    """
    return _call(losses.TaylorCE, input, target, options, t=t)


def js(input: Tensor, target: Tensor, *, pi: float = 0.5, **options: Unpack[CallOptions]) -> Tensor:
    """Jensen-Shannon divergence; :class:`unswayed.JS` says what the parameters mean.

    ``[pi KL(e_y || m) + (1-pi) KL(p || m)] / Z, m = pi e_y + (1-pi) p, Z = -(1-pi) log(1-pi)``

    >>> import torch
    >>> js(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1247)
    """
    return _call(losses.JS, input, target, options, pi=pi)


def gjs(input: Tensor | Sequence[Tensor], target: Tensor, *, pi: float = 0.5, **options: Unpack[CallOptions]) -> Tensor:
    """Generalised Jensen-Shannon divergence; :class:`unswayed.GJS` says what the parameters mean.

    ``[pi KL(e_y || m) + (1-pi)/M sum_i KL(p_i || m)] / Z``

    >>> import torch
    >>> gjs(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1247)
    """
    return _call(losses.GJS, input, target, options, pi=pi)


def phuber_ce(input: Tensor, target: Tensor, *, tau: float = 10.0, **options: Unpack[CallOptions]) -> Tensor:
    """Partially Huberised cross entropy; :class:`unswayed.PHuberCE` says what the parameters mean.

    ``-log u if u > 1/tau, else 1 + log tau - tau u``

    >>> import torch
    >>> phuber_ce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1269)
    """
    return _call(losses.PHuberCE, input, target, options, tau=tau)


def phuber_gce(
    input: Tensor, target: Tensor, *, q: float = 0.7, tau: float = 10.0, **options: Unpack[CallOptions]
) -> Tensor:
    """Partially Huberised generalized cross entropy; :class:`unswayed.PHuberGCE` says what the parameters mean.

    ``gce(q) if u > u*, else its tangent at u* = tau^(1/(q-1))``

    >>> import torch
    >>> phuber_gce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1215)
    """
    return _call(losses.PHuberGCE, input, target, options, q=q, tau=tau)


def nce(input: Tensor, target: Tensor, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised cross entropy; :class:`unswayed.NCE` says what the parameters mean.

    ``log u / sum_k log p_k``

    >>> import torch
    >>> nce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.0563)
    """
    return _call(losses.NCE, input, target, options)


def nfl(input: Tensor, target: Tensor, *, gamma: float = 0.5, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised focal loss; :class:`unswayed.NFL` says what the parameters mean.

    ``focal(u) / sum_k focal(p_k)``

    >>> import torch
    >>> nfl(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.0215)
    """
    return _call(losses.NFL, input, target, options, gamma=gamma)


def ngce(input: Tensor, target: Tensor, *, q: float = 0.7, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised generalized cross entropy; :class:`unswayed.NGCE` says what the parameters mean.

    ``(1 - u^q) / (K - sum_k p_k^q)``

    >>> import torch
    >>> ngce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.0989)
    """
    return _call(losses.NGCE, input, target, options, q=q)


def nmae(input: Tensor, target: Tensor, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised mean absolute error; :class:`unswayed.NMAE` says what the parameters mean.

    ``(1 - u) / (K - 1)``

    >>> import torch
    >>> nmae(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1192)
    """
    return _call(losses.NMAE, input, target, options)


def nrce(input: Tensor, target: Tensor, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised reverse cross entropy; :class:`unswayed.NRCE` says what the parameters mean.

    ``(1 - u) / (K - 1)``

    >>> import torch
    >>> nrce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1192)
    """
    return _call(losses.NRCE, input, target, options)


def nnce(input: Tensor, target: Tensor, *, p_min: float = 1e-07, **options: Unpack[CallOptions]) -> Tensor:
    """Normalised negative cross entropy; :class:`unswayed.NNCE` says what the parameters mean.

    ``1 - (A + log u) / sum_k (A + log p_k), A = -log p_min, p clipped at p_min``

    >>> import torch
    >>> nnce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.4666)
    """
    return _call(losses.NNCE, input, target, options, p_min=p_min)


def nnfl(
    input: Tensor, target: Tensor, *, gamma: float = 0.5, p_min: float = 1e-07, **options: Unpack[CallOptions]
) -> Tensor:
    """Normalised negative focal loss; :class:`unswayed.NNFL` says what the parameters mean.

    ``1 - (A - focal(u)) / sum_k (A - focal(p_k)), A = focal(p_min), p clipped at p_min``

    >>> import torch
    >>> nnfl(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.4677)
    """
    return _call(losses.NNFL, input, target, options, gamma=gamma, p_min=p_min)


def agce(input: Tensor, target: Tensor, *, a: float = 0.6, q: float = 0.6, **options: Unpack[CallOptions]) -> Tensor:
    """Asymmetric generalized cross entropy; :class:`unswayed.AGCE` says what the parameters mean.

    ``[(a+1)^q - (a+u)^q] / q``

    >>> import torch
    >>> agce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1003)
    """
    return _call(losses.AGCE, input, target, options, a=a, q=q)


def aul(input: Tensor, target: Tensor, *, a: float = 5.5, q: float = 3.0, **options: Unpack[CallOptions]) -> Tensor:
    """Asymmetric unhinged loss; :class:`unswayed.AUL` says what the parameters mean.

    ``[(a-u)^q - (a-1)^q] / q``

    >>> import torch
    >>> aul(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(2.4784)
    """
    return _call(losses.AUL, input, target, options, a=a, q=q)


def ael(input: Tensor, target: Tensor, *, a: float = 2.5, **options: Unpack[CallOptions]) -> Tensor:
    """Asymmetric exponential loss; :class:`unswayed.AEL` says what the parameters mean.

    ``exp(-u/a)``

    >>> import torch
    >>> ael(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.7031)
    """
    return _call(losses.AEL, input, target, options, a=a)


def amse(input: Tensor, target: Tensor, *, a: float = 30.0, **options: Unpack[CallOptions]) -> Tensor:
    """Asymmetric mean square error; :class:`unswayed.AMSE` says what the parameters mean.

    ``(1/K) sum_k (p_k - a [k=y])^2``

    >>> import torch
    >>> amse(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(423.9711)
    """
    return _call(losses.AMSE, input, target, options, a=a)


def vce(input: Tensor, target: Tensor, *, a: float = 1.0, **options: Unpack[CallOptions]) -> Tensor:
    """Variation cross entropy; :class:`unswayed.VCE` says what the parameters mean.

    ``-log(u + a)``

    >>> import torch
    >>> vce(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(-0.6317)
    """
    return _call(losses.VCE, input, target, options, a=a)


def vel(input: Tensor, target: Tensor, *, a: float = 2.0, **options: Unpack[CallOptions]) -> Tensor:
    """Variation exponential loss; :class:`unswayed.VEL` says what the parameters mean.

    ``a^-u``

    >>> import torch
    >>> vel(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.5431)
    """
    return _call(losses.VEL, input, target, options, a=a)


def vsl(input: Tensor, target: Tensor, *, a: float = 0.28, **options: Unpack[CallOptions]) -> Tensor:
    """Variation square log; :class:`unswayed.VSL` says what the parameters mean.

    ``[log(a u + 1) - log 2]^2 / a``

    >>> import torch
    >>> vsl(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.7980)
    """
    return _call(losses.VSL, input, target, options, a=a)


def label_smoothing(
    input: Tensor, target: Tensor, *, loss: Loss | str = "ce", r: float = 0.1, **options: Unpack[CallOptions]
) -> Tensor:
    """Label smoothing, negative too; :class:`unswayed.LabelSmoothing` says what the parameters mean.

    ``(1-r) L(p, y) + r/K sum_k L(p, k)``

    >>> import torch
    >>> label_smoothing(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.2269)
    """
    return _call(losses.LabelSmoothing, input, target, options, loss=loss, r=r)


def logit_clip(
    input: Tensor,
    target: Tensor,
    *,
    loss: Loss | str = "ce",
    norm: float = 1.0,
    published: bool = False,
    **options: Unpack[CallOptions],
) -> Tensor:
    """Logit clipping; :class:`unswayed.LogitClip` says what the parameters mean.

    ``L(z min(1, norm/||z||), y)``

    >>> import torch
    >>> logit_clip(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.3133)
    """
    return _call(losses.LogitClip, input, target, options, loss=loss, norm=norm, published=published)


def eps_softmax(
    input: Tensor,
    target: Tensor,
    *,
    loss: Loss | str = "ce",
    m: float = 10000.0,
    p_min: float = 1e-08,
    **options: Unpack[CallOptions],
) -> Tensor:
    """Epsilon-softmax; :class:`unswayed.EpsSoftmax` says what the parameters mean.

    ``L(p~, y), p~ = max((p + m e_argmax) / (1 + m), p_min)``

    >>> import torch
    >>> eps_softmax(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(1.2398e-05)
    """
    return _call(losses.EpsSoftmax, input, target, options, loss=loss, m=m, p_min=p_min)


def sparse(
    input: Tensor,
    target: Tensor,
    *,
    loss: Loss | str = "ce",
    temperature: float = 0.5,
    p: float = 0.1,
    weight: float | Tensor | Sequence[float] = 1.2,
    class_weight: Tensor | Sequence[float] | None = None,
    **options: Any,
) -> Tensor:
    """Sparse regularisation; :class:`unswayed.Sparse` says what the parameters mean.

    ``L(z/(temperature ||z||), y) + weight sum_k p_k^p``

    >>> import torch
    >>> sparse(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(2.2819)
    """
    return _call(
        losses.Sparse,
        input,
        target,
        options,
        loss=loss,
        temperature=temperature,
        p=p,
        weight=weight,
        class_weight=class_weight,
    )


def bootstrap(
    input: Tensor,
    target: Tensor,
    *,
    loss: Loss | str = "ce",
    beta: float = 0.95,
    hard: bool = False,
    **options: Unpack[CallOptions],
) -> Tensor:
    """Bootstrapping; :class:`unswayed.Bootstrap` says what the parameters mean.

    ``beta L(p, y) + (1-beta) sum_k t_k L(p, k), t = p or e_argmax``

    >>> import torch
    >>> bootstrap(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1388)
    """
    return _call(losses.Bootstrap, input, target, options, loss=loss, beta=beta, hard=hard)


def forward_correction(
    input: Tensor, target: Tensor, *, T: Any, loss: Loss | str = "ce", **options: Unpack[CallOptions]
) -> Tensor:
    """Forward correction; :class:`unswayed.ForwardCorrection` says what the parameters mean.

    ``L(p^T T, y)``

    >>> import torch
    >>> forward_correction(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), T=[[0.8, 0.2], [0.4, 0.6]])
    tensor(0.5936)
    """
    return _call(losses.ForwardCorrection, input, target, options, loss=loss, T=T)


def backward_correction(
    input: Tensor, target: Tensor, *, T: Any, loss: Loss | str = "ce", **options: Unpack[CallOptions]
) -> Tensor:
    """Backward correction; :class:`unswayed.BackwardCorrection` says what the parameters mean.

    ``sum_k (T^-1)_yk L(p, k)``

    >>> import torch
    >>> backward_correction(torch.tensor([[0.0, 2.0]]), torch.tensor([1]), T=[[0.8, 0.2], [0.4, 0.6]])
    tensor(-1.8731)
    """
    return _call(losses.BackwardCorrection, input, target, options, loss=loss, T=T)


def bounded(
    input: Tensor,
    target: Tensor,
    *,
    loss: Loss | str = "ce",
    v: float = 2.0,
    by: str = "linear",
    **options: Unpack[CallOptions],
) -> Tensor:
    """Variation-bounded version of a loss; :class:`unswayed.Bounded` says what the parameters mean.

    ``l(u + c), l(c u), or l with its tangent below u_c``

    >>> import torch
    >>> bounded(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
    tensor(0.1269)
    """
    return _call(losses.Bounded, input, target, options, loss=loss, v=v, by=by)
