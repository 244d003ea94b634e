"""What a loss may look at, computed once, in fp32, however many losses ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# From this many logits on, a hand-written backward pass beats the overhead of calling it (benchmarks/losses.py).
_FUSE_FROM = 1 << 17
# torch's kernel skips one index, -100 unless told otherwise; here every label counts, and a wrong one is an error.
_NO_CLASS = -(1 << 40)
_NOTHING: Mapping[str, Any] = {}


def working_dtype(logits: Tensor) -> torch.dtype:
    """Losses are computed in fp32, whatever the network's precision; float64 stays float64."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _log_softmax(logits: Tensor, dtype: torch.dtype) -> Tensor:
    # The argument costs a few microseconds, even where it changes nothing.
    return torch.log_softmax(logits, 1) if logits.dtype == dtype else torch.log_softmax(logits, 1, dtype=dtype)


def _given(log_p: Tensor, target: Tensor) -> Tensor:
    return -F.nll_loss(log_p, target, reduction="none", ignore_index=_NO_CLASS)


def _is_batched(gradient: Tensor | None) -> bool:
    """Whether this stands for many gradients, as in ``torch.autograd.grad(..., is_grads_batched=True)``."""
    functorch = torch._C._functorch
    return gradient is not None and (
        functorch.is_batchedtensor(gradient) or functorch.is_legacy_batchedtensor(gradient)
    )


class _LogProbabilities(torch.autograd.Function):
    """Log-softmax, its entry at the given class and its sum over classes, with one common backward pass.

    Autograd would keep a matrix for the gradient of each of the three, and one for the result. Here they are added up
    in one, which the result then overwrites.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, target: Tensor, dtype: torch.dtype, total: bool) -> tuple[Tensor, Tensor, Tensor]:
        log_p = _log_softmax(logits, dtype)
        given = log_p.gather(1, target.unsqueeze(1)).squeeze(1)
        return given, log_p.sum(1) if total else given.new_empty(0), log_p

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        logits, target, _, total = inputs
        ctx.total, ctx.dtype = total, logits.dtype
        ctx.save_for_backward(target, output[2])
        ctx.save_for_forward(target, output[2])
        ctx.set_materialize_grads(False)

    @staticmethod
    def jvp(ctx: Any, logits: Tensor, *_: None) -> tuple[Tensor, Tensor, Tensor]:
        target, log_p = ctx.saved_tensors
        tangent = logits.to(log_p.dtype)
        full = tangent - (log_p.exp() * tangent).sum(1, keepdim=True)
        given = full.gather(1, target.unsqueeze(1)).squeeze(1)
        return given, full.sum(1) if ctx.total else given.new_empty(0), full

    @staticmethod
    def backward(
        ctx: Any, given: Tensor | None, total: Tensor | None, full: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        target, log_p = ctx.saved_tensors
        if given is None and total is None and full is None:
            return None, None, None, None
        share = total.unsqueeze(1) if total is not None and ctx.total else None
        # In place, as these matrices may be as large as memory allows, unless a graph of this pass itself is wanted or
        # many passes are made as one.
        alone = not torch.is_grad_enabled() and not any(map(_is_batched, (given, total, full)))
        if full is None:
            grad = torch.zeros_like(log_p) if share is None else share.expand_as(log_p).clone()
        else:
            grad = full.clone(memory_format=torch.contiguous_format) if share is None else full + share
        if given is not None:
            index, entry = target.unsqueeze(1), given.unsqueeze(1)
            grad = grad.scatter_add_(1, index, entry) if alone else grad.scatter_add(1, index, entry)
        if not alone:
            grad = grad - log_p.exp() * grad.sum(1, keepdim=True)
        elif grad.is_cpu and grad.is_contiguous() and log_p.is_contiguous():
            # Each row is summed before it is written, so that the result may take the place of what it is made from.
            torch.ops.aten._log_softmax_backward_data.out(grad, log_p, 1, log_p.dtype, out=grad)
        else:
            grad = torch._log_softmax_backward_data(grad, log_p, 1, log_p.dtype)
        return grad.to(ctx.dtype), None, None, None


class Evidence:
    """Logits and a label, and all that follows from them, each computed when first asked for.

    ``logits`` has shape ``(N, K, ...)``. A label of class indices ``(N, ...)`` asks for the loss of the given class:
    then ``log_p_y`` and the row statistics have shape ``(N, ...)``. A label of probabilities ``(N, K, ...)`` asks for
    the loss of every class: then ``log_p_y`` has shape ``(N, K, ...)`` and the row statistics ``(N, 1, ...)``, so that
    one formula serves both, and :meth:`average` takes the expectation under the label. ``told`` is what the call says
    of the training around it: ``index``, ``epoch`` and ``lr``, where given.

    >>> e = Evidence(torch.zeros(1, 4), torch.tensor([2]))
    >>> e.log_p_y.shape, e.sum_classes(e.p).item()
    (torch.Size([1]), 1.0)
    """

    def __init__(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        total: bool = False,
        views: tuple[Tensor, ...] = (),
        told: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self.logits, self.target, self.weight = logits, target, weight
        self.told = told
        self.soft = target.is_floating_point()
        self.views = views or (logits,)
        self._total_wanted = total
        self._log_p: Tensor | None = None
        self._given: Tensor | None = None
        self._total: Tensor | None = None

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.logits.shape[1]

    def _read(self) -> None:
        logits, dtype = self.logits, working_dtype(self.logits)
        if self.soft:
            self._log_p = self._given = _log_softmax(logits, dtype)
        elif logits.numel() >= _FUSE_FROM and not torch.compiler.is_compiling():
            given, total, self._log_p = _LogProbabilities.apply(logits, self.target, dtype, self._total_wanted)  # type: ignore[no-untyped-call]
            self._given, self._total = given, total if self._total_wanted else None
        else:
            self._log_p = _log_softmax(logits, dtype)
            self._given = _given(self._log_p, self.target)

    @property
    def log_p(self) -> Tensor:
        """``log p``, all classes, ``(N, K, ...)``."""
        if self._log_p is None:
            self._read()
        assert self._log_p is not None
        return self._log_p

    @property
    def p(self) -> Tensor:
        """``p = softmax(logits)``, all classes, ``(N, K, ...)``."""
        return self.log_p.exp()

    @property
    def log_p_y(self) -> Tensor:
        """``log u``: the log-probability of the given class, or of each class where the label is soft."""
        if self._given is None:
            self._read()
        assert self._given is not None
        return self._given

    @property
    def p_y(self) -> Tensor:
        """``u``: the probability of the given class, or of each class where the label is soft."""
        return self.log_p_y.exp()

    @property
    def sum_log_p(self) -> Tensor:
        """The sum of ``log p`` over the classes."""
        if self._total is None and self._given is None:
            self._read()
        if self._total is None:
            self._total = self.sum_classes(self.log_p)
        return self._total

    def sum_classes(self, values: Tensor) -> Tensor:
        """Sum ``(N, K, ...)`` values over the classes, in a shape that goes with :attr:`log_p_y`."""
        return values.sum(1, keepdim=self.soft)

    def average(self, values: Tensor) -> Tensor:
        """Apply class weights and take the expectation under the label: the loss of each position, ``(N, ...)``."""
        if not self.soft:
            return values if self.weight is None else values * self.weight[self.target]
        label = self.target.to(values.dtype)
        if self.weight is not None:
            label = label * self.weight.view(-1, *[1] * (label.dim() - 2))
        return (label * values).sum(1)

    def split(self, sizes: list[int]) -> list[Evidence]:
        """Return the evidence of consecutive groups of examples, which share what is computed for all of them."""
        if len(sizes) == 1:
            return [self]
        log_p, given = torch.split(self.log_p, sizes), torch.split(self.log_p_y, sizes)
        total = torch.split(self.sum_log_p, sizes) if self._total_wanted else [None] * len(sizes)
        parts = []
        for logits, target, *known in zip(
            torch.split(self.logits, sizes), torch.split(self.target, sizes), log_p, given, total
        ):
            part = Evidence(logits, target, weight=self.weight)
            part._log_p, part._given, part._total = known
            parts.append(part)
        return parts

    def with_logits(self, logits: Tensor) -> Evidence:
        """Return the same label over other logits."""
        return Evidence(logits, self.target, weight=self.weight, total=self._total_wanted, told=self.told)

    def with_log_p(self, log_p: Tensor) -> Evidence:
        """Return the same label over other log-probabilities, taken as they are."""
        return self._known(log_p, log_p, self.target)

    def with_label(self, target: Tensor) -> Evidence:
        """Return another label, of class indices or of probabilities, over the same logits, sharing what is known."""
        return self._known(self.logits, self.log_p, target)

    def _known(self, logits: Tensor, log_p: Tensor, target: Tensor) -> Evidence:
        other = Evidence(logits, target, weight=self.weight, told=self.told)
        other._log_p = log_p
        other._given = log_p if other.soft else _given(log_p, target)
        return other
