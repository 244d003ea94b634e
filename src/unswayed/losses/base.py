"""One mechanism for all losses: shapes, labels, weights, reductions, precision, algebra and names."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self, TypedDict

import torch
from torch import Tensor, nn

from unswayed.losses.evidence import _NOTHING, Evidence, working_dtype
from unswayed.losses.registry import info
from unswayed.spec import did_you_mean, write

REDUCTIONS = ("mean", "sum", "none")
_WANTS = {
    "index": "the rows of these examples in the training set",
    "epoch": "the number of the epoch, from 0",
    "lr": "the learning rate of this step",
}


class Options(TypedDict, total=False):
    """The options that every loss takes when it is built; as ``torch.nn.CrossEntropyLoss`` means them."""

    weight: Tensor | Sequence[float] | None
    ignore_index: int
    reduction: str


class Loss(nn.Module):
    """Base of all losses; called like :class:`torch.nn.CrossEntropyLoss`.

    A loss is its formula: a subclass sets ``name`` (its entry in the registry), passes its parameters to this
    constructor, which checks them, and defines :meth:`formula`. Options, for every loss:

    - ``weight``: one weight ``>= 0`` a class; ``mean`` then divides by the sum of the weights of the labels.
    - ``ignore_index``: positions with this class index count for nothing (not for soft labels, as in torch).
    - ``reduction``: ``"mean"``, ``"sum"`` or ``"none"``. The mean over nothing is 0, with a graph (torch gives NaN).

    >>> from unswayed import VCE
    >>> loss = VCE(a=4, reduction="none")
    >>> loss(torch.zeros(3, 10), torch.tensor([0, 1, -100]))
    tensor([-1.4110, -1.4110,  0.0000])
    """

    name: ClassVar[str]
    needs_sum: bool = False
    takes_views: bool = False
    # How many predictions of each example it compares, each from an augmentation of its own.
    views: int = 1
    # What the call must say of the training around it: some of index, epoch and lr.
    wants: frozenset[str] = frozenset()
    # Whether a call in training changes what later calls return; a loss around such a loss must let it see all it sees
    # itself, exactly once.
    remembers: bool = False
    _shows_all: ClassVar[bool] = False
    # Attributes whose name in specs is another one.
    _spec_names: ClassVar[dict[str, str]] = {}
    weight: Tensor | None
    ignore_index: int
    reduction: str
    _params: tuple[str, ...]

    def __init__(
        self,
        *,
        weight: Tensor | Sequence[float] | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        **params: Any,
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            hint = did_you_mean(str(reduction), REDUCTIONS)
            raise ValueError(f"reduction={reduction!r} is not allowed; it is one of {', '.join(REDUCTIONS)}{hint}")
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, numbers.Integral):
            raise ValueError(f"ignore_index={ignore_index!r} is not allowed; it is a class index, -100 by default")
        self.register_buffer("weight", None if weight is None else _class_weights(weight))
        self.ignore_index, self.reduction = int(ignore_index), reduction
        self._params = tuple(params)
        named = {self._spec_names.get(key, key): value for key, value in params.items()}
        for key, value in zip(params, info(self.name).check(named).values() if params else ()):
            setattr(self, key, self._inner(key, value) if key in ("loss", "then") else value)
        self._take_over([part for part in self.children() if isinstance(part, Loss)])

    def _take_over(self, parts: Iterable[Loss]) -> None:
        """Need what the losses inside need."""
        for part in parts:
            self.needs_sum, self.remembers = self.needs_sum or part.needs_sum, self.remembers or part.remembers
            self.wants |= part.wants
            self.views = max(self.views, part.views)

    def _inner(self, key: str, loss: Loss | str) -> Loss:
        """The loss inside a wrapper, from a loss or its spec."""
        if isinstance(loss, str):
            from unswayed.losses.expression import loss as build

            loss = build(loss)
        if not isinstance(loss, Loss):
            raise ValueError(f"{self.name}: {key}={loss!r} is not allowed; give a loss or its spec, like 'nce'")
        if loss.remembers and not self._shows_all:
            raise ValueError(
                f"{self.name}: {key}={loss} has a memory of what it sees, which {self.name} would change; "
                f"a loss with a memory is outermost, or a term of a sum"
            )
        if loss.weight is not None or (loss.ignore_index, loss.reduction) != (-100, "mean"):
            raise ValueError(
                f"{self.name}: the loss inside has options of its own; give weight, ignore_index and reduction "
                f"to {self.name} instead"
            )
        return loss

    def formula(self, e: Evidence) -> Tensor:
        """Return ``L(p, y)`` elementwise, in the shape of ``e.log_p_y``."""
        raise NotImplementedError(f"{type(self).__name__} defines neither formula() nor expected()")

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss of each position: the weighted expectation of :meth:`formula` under the label."""
        return e.average(self.formula(e))

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return ``l(u)`` elementwise from ``log u``, for losses that are a function of ``u`` alone."""
        raise TypeError(f"{self} is no function of the given class's probability alone")

    @property
    def is_pointwise(self) -> bool:
        """Whether the loss is a function of the given class's probability alone."""
        return False

    def forward(
        self,
        input: Tensor | Sequence[Tensor],
        target: Tensor,
        *,
        sample_weight: Tensor | None = None,
        index: Tensor | None = None,
        epoch: int | None = None,
        lr: float | None = None,
    ) -> Tensor:
        """Return the loss of logits ``(N, K, ...)`` or ``(K,)`` under class indices or probabilities.

        ``sample_weight`` (one per position, or one per example) multiplies each position's loss, and its share in the
        mean. ``index`` (the examples' rows in the training set), ``epoch`` (counted from 0) and ``lr`` (the learning
        rate of this step) are for losses that want them, as ``loss.wants`` says; :func:`unswayed.training.train` gives
        them.
        """
        views = self._views(input)
        if not isinstance(target, Tensor):
            raise TypeError(f"target needs a tensor of class indices or probabilities, not {type(target).__name__}")
        for name, value in (("sample_weight", sample_weight), ("index", index)):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{name} needs a tensor, not {type(value).__name__}")
        single = views[0].dim() == 1
        if single:
            views, target = tuple(view.unsqueeze(0) for view in views), target.unsqueeze(0)
            sample_weight = None if sample_weight is None else sample_weight.reshape(-1)
            index = None if index is None else index.reshape(-1)
        logits, target = views[0], self._label(views[0], target)
        dtype = working_dtype(logits)
        weight = None if self.weight is None else self._weight_for(logits, dtype)
        soft = target.is_floating_point()
        ignored = None if soft else self._ignored(target)
        label = target if ignored is None else target.masked_fill(ignored, 0)
        told = _NOTHING
        if self.wants:
            told = self._told(logits, index=index, epoch=epoch, lr=lr) | (
                {} if ignored is None else {"ignored": ignored}
            )
        e = Evidence(logits, label, weight=weight, total=self.needs_sum, views=views, told=told)
        try:
            loss = self.expected(e)
        except (IndexError, RuntimeError):
            if not torch.compiler.is_compiling():
                self._explain(logits, label)
            raise
        mass = None if weight is None or soft else weight[label]
        if sample_weight is not None:
            share = self._sample_weight_for(sample_weight, loss)
            loss = loss * share
            mass = share if mass is None else mass * share
        if ignored is not None:
            loss = loss.masked_fill(ignored, 0.0)
        if self.reduction == "none":
            return loss.squeeze(0) if single else loss
        if self.reduction == "sum":
            return loss.sum()
        if mass is not None:
            total = (mass if ignored is None else mass.masked_fill(ignored, 0.0)).sum()
            return loss.sum() / torch.where(total == 0, torch.ones_like(total), total)
        if ignored is None and loss.numel():
            return loss.mean()
        count = loss.numel() if ignored is None else loss.numel() - ignored.sum()
        return loss.sum() / torch.as_tensor(count, device=loss.device).clamp_min(1)

    def _told(self, logits: Tensor, **given: Any) -> dict[str, Any]:
        """Return what the call says of the training around it, checked; in training nothing wanted may be missing."""
        for name in sorted(self.wants) if self.training else ():
            if given[name] is None:
                raise ValueError(
                    f"{self} wants {name}=, {_WANTS[name]}: criterion(logits, target, {name}={name}); "
                    f"unswayed.training.train gives it, and criterion.eval() does without where it can"
                )
        index = given["index"]
        if index is not None:
            if index.shape != logits.shape[:1] or index.is_floating_point() or index.dtype == torch.bool:
                raise ValueError(
                    f"index is {index.dtype} of shape {tuple(index.shape)}; it needs a whole number for each of the "
                    f"{len(logits)} examples"
                )
            given["index"] = index.to(logits.device, torch.long)
        return {name: value for name, value in given.items() if value is not None}

    def _ignored(self, target: Tensor) -> Tensor | None:
        """Where the label is ``ignore_index``; ``None`` where a look is free and finds no such place."""
        ignored = target == self.ignore_index
        if target.device.type == "cpu" and not torch.compiler.is_compiling():
            try:
                return ignored if ignored.any() else None
            except RuntimeError:
                # Inside torch.func.vmap nobody may look.
                return ignored
        return ignored

    def _views(self, input: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
        views = (input,) if isinstance(input, Tensor) else tuple(input) if isinstance(input, (list, tuple)) else ()
        if not views or not all(isinstance(view, Tensor) for view in views):
            raise TypeError(f"logits need a tensor (for gjs, or several), not {type(input).__name__}: {input!r:.40}")
        if len(views) != 1 and not self.takes_views:
            raise ValueError(f"{self} takes one tensor of logits, not a sequence of {len(views)}; gjs takes several")
        first = views[0]
        for view in views[1:]:
            if view.shape != first.shape:
                raise ValueError(f"all predictions need one shape, not {tuple(first.shape)} and {tuple(view.shape)}")
        if first.dim() == 0 or not first.is_floating_point():
            raise ValueError(
                f"logits need a floating-point tensor of shape (N, K), (K,) or (N, K, d1, ...), "
                f"not {first.dtype} of shape {tuple(first.shape)}"
            )
        if first.shape[0 if first.dim() == 1 else 1] < 2:
            raise ValueError(
                f"logits of shape {tuple(first.shape)} have fewer than 2 classes; "
                f"for a yes-or-no question give two logits, torch.stack([0 * z, z], 1)"
            )
        return views

    def _label(self, logits: Tensor, target: Tensor) -> Tensor:
        positions = logits.shape[:1] + logits.shape[2:]
        if target.is_floating_point():
            if target.shape == logits.shape:
                if self.ignore_index >= 0:
                    raise ValueError(f"ignore_index={self.ignore_index} has no meaning for soft labels (probabilities)")
                return target
            fix = (
                "class indices must be whole numbers: target.long()"
                if target.shape == positions
                else f"soft labels need the logits' shape {tuple(logits.shape)}"
            )
            raise ValueError(f"target is {target.dtype} of shape {tuple(target.shape)}; {fix}")
        if target.dtype == torch.bool or target.is_complex():
            raise ValueError(f"target is {target.dtype}; give class indices (target.long()) or probabilities")
        if target.shape != positions:
            fix = "; for one-hot labels use target.float()" if target.shape == logits.shape else ""
            raise ValueError(
                f"target of class indices has shape {tuple(target.shape)}, but logits of shape {tuple(logits.shape)} "
                f"need {tuple(positions)}{fix}"
            )
        return target.long()

    def _weight_for(self, logits: Tensor, dtype: torch.dtype) -> Tensor:
        assert self.weight is not None
        if self.weight.shape[0] != logits.shape[1]:
            raise ValueError(
                f"weight has {self.weight.shape[0]} entries, but the logits have {logits.shape[1]} classes"
            )
        return self.weight.to(dtype)

    def _sample_weight_for(self, sample_weight: Tensor, loss: Tensor) -> Tensor:
        if sample_weight.shape != loss.shape and sample_weight.shape != loss.shape[:1]:
            raise ValueError(
                f"sample_weight has shape {tuple(sample_weight.shape)}; it needs one entry per position "
                f"{tuple(loss.shape)} or per example {tuple(loss.shape[:1])}"
            )
        extra = loss.dim() - sample_weight.dim()
        return sample_weight.to(loss.dtype).view(*sample_weight.shape, *[1] * extra).expand_as(loss)

    def _explain(self, logits: Tensor, label: Tensor) -> None:
        """Raise a better error if the label is what was wrong (found only after the fact, so that it costs nothing)."""
        if label.is_floating_point() or not label.numel():
            return
        low, high, classes = int(label.min()), int(label.max()), logits.shape[1]
        if low < 0 or high >= classes:
            raise ValueError(
                f"target {low if low < 0 else high} is out of range: class indices go from 0 to {classes - 1} "
                f"for logits of shape {tuple(logits.shape)}, or are ignore_index={self.ignore_index}"
            )

    def _same_options(self, other: Loss) -> bool:
        if self.weight is None or other.weight is None:
            same = self.weight is other.weight
        else:
            same = torch.equal(self.weight, other.weight)
        return same and (self.ignore_index, self.reduction) == (other.ignore_index, other.reduction)

    @property
    def options(self) -> Options:
        """``weight``, ``ignore_index`` and ``reduction``, as the constructor takes them."""
        return {"weight": self.weight, "ignore_index": self.ignore_index, "reduction": self.reduction}

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that the loss was built with."""
        return {self._spec_names.get(key, key): getattr(self, key) for key in self._params}

    @property
    def spec(self) -> str:
        """The canonical spec: ``unswayed.loss(spec)`` builds this loss again.

        >>> from unswayed import VCE
        >>> VCE(a=4).spec
        'vce(a=4)'
        """
        kinds = {p.name: p.kind for p in info(self.name).params} if self._params else {}
        inside = ", ".join(f"{key}={write(value, kinds[key])}" for key, value in self.params.items())
        return f"{self.name}({inside})" if inside else self.name

    def __repr__(self) -> str:
        return self.spec

    __str__ = __repr__

    def _terms(self) -> list[tuple[float, Loss]]:
        return [(1.0, self)]

    def __add__(self, other: Loss) -> Sum:
        return Sum.of(self, other) if isinstance(other, Loss) else NotImplemented

    def __sub__(self, other: Loss) -> Sum:
        return Sum.of(self, -1.0 * other) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Sum:
        if isinstance(factor, bool) or not isinstance(factor, numbers.Real):
            return NotImplemented
        terms = [(float(factor) * c, term) for c, term in self._terms()]
        return Sum(terms, **self.options)

    __rmul__ = __mul__

    def __neg__(self) -> Sum:
        return self * -1.0


class PointwiseLoss(Loss):
    """Base of the losses ``l(u)`` of the given class's probability alone: a subclass defines :meth:`pointwise`.

    >>> class Square(PointwiseLoss):
    ...     name = "square"
    ...     def pointwise(self, log_p):
    ...         return (1 - log_p.exp()) ** 2
    >>> round(Square()(torch.zeros(1, 2), torch.tensor([0])).item(), 3)
    0.25
    """

    def formula(self, e: Evidence) -> Tensor:
        """Return ``l(u)``."""
        return self.pointwise(e.log_p_y)

    @property
    def is_pointwise(self) -> bool:
        """True."""
        return True


class Sum(Loss):
    """A weighted sum of losses, which look at shared :class:`Evidence`; made by ``+``, ``-`` and ``*``.

    >>> from unswayed import NCE, VCE
    >>> NCE() + 10 * VCE(a=4)
    nce + 10*vce(a=4)
    """

    def __init__(self, terms: Iterable[tuple[float, Loss]], **options: Any) -> None:
        super().__init__(**options)
        pairs = list(terms)
        self.coefficients = tuple(float(c) for c, _ in pairs)
        for c in self.coefficients:
            if not abs(c) < float("inf"):
                raise ValueError(f"a loss cannot be multiplied by {c}; the factor is a finite number")
        self.losses = nn.ModuleList(loss for _, loss in pairs)
        self._take_over(loss for _, loss in pairs)
        self.takes_views = all(loss.takes_views for _, loss in pairs)

    @classmethod
    def of(cls, left: Loss, right: Loss) -> Self:
        """Add two losses whose options agree."""
        if not left._same_options(right):
            raise ValueError(
                f"{left} and {right} have different options (weight, ignore_index or reduction); "
                f"build both with the same ones, or use unswayed.loss('{left} + {right}', reduction=...)"
            )
        return cls([*left._terms(), *right._terms()], **left.options)

    def _terms(self) -> list[tuple[float, Loss]]:
        return list(zip(self.coefficients, self.losses))  # type: ignore[arg-type]

    def expected(self, e: Evidence) -> Tensor:
        """Return the weighted sum of the terms' losses."""
        (c, first), *rest = self._terms()
        total = first.expected(e) if c == 1 else c * first.expected(e)
        for c, loss in rest:
            total = torch.add(total, loss.expected(e), alpha=c)
        return total

    def pointwise(self, log_p: Tensor) -> Tensor:
        """Return the weighted sum of the terms, if all are functions of ``u`` alone."""
        first, *rest = [c * loss.pointwise(log_p) for c, loss in self._terms()]
        return sum(rest, first)

    @property
    def is_pointwise(self) -> bool:
        """Whether all terms are."""
        return all(loss.is_pointwise for _, loss in self._terms())

    @property
    def spec(self) -> str:
        """The terms, joined by ``+`` and ``-``."""
        text = ""
        for c, loss in self._terms():
            size = loss.spec if abs(c) == 1 else f"{write(abs(c))}*{loss.spec}"
            sign = "-" if c < 0 else "+"
            text += f" {sign} {size}" if text else size if c >= 0 else f"-{size}"
        return text


def what_it_wants(loss: nn.Module) -> list[str]:
    """Return what of ``index``, ``epoch`` and ``lr`` a loss, or any module called like one, must be told.

    >>> from unswayed import loss
    >>> what_it_wants(loss("ogc")), what_it_wants(nn.CrossEntropyLoss())
    (['lr'], [])
    """
    if isinstance(loss, Loss):
        return sorted(loss.wants)
    return [name for name in _WANTS if name in inspect.signature(loss.forward).parameters]


def _class_weights(weight: Tensor | Sequence[float]) -> Tensor:
    values = torch.as_tensor(weight)
    values = values if values.is_floating_point() else values.to(torch.get_default_dtype())
    if values.dim() != 1:
        raise ValueError(f"weight needs one number a class, a tensor of shape (K,), not {tuple(values.shape)}")
    wrong = ~(values.isfinite() & (values >= 0))
    if wrong.any():
        place = int(wrong.nonzero()[0])
        raise ValueError(f"weight[{place}] = {values[place].item()} is not allowed; class weights are finite and >= 0")
    return values
