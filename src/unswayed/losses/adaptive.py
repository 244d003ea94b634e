"""Losses that change while they train: by what they have seen (OGC, ELR, truncated GCE), or by the epoch (after)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from unswayed.losses.base import Loss
from unswayed.losses.bounded import slope
from unswayed.losses.classic import one_minus_exp
from unswayed.losses.evidence import Evidence
from unswayed.losses.mixture import fit
from unswayed.losses.wrapped import penalty_or_class_weight

# Losses that enter OGC's mixture: -log u for u from 1e-7 to 1 - 1e-7, and the grid on which gradients are averaged.
_LEAST, _MOST = 1e-7, -math.log(1e-7)
_GRID = 1000


def from_all(*values: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of all processes, the first of each before the second of each: a batch as the loader shares it.

    It is the same in each process; a process alone has the values themselves.
    """
    parallel = torch.distributed
    if not (parallel.is_available() and parallel.is_initialized() and parallel.get_world_size() > 1):
        return values
    count = torch.tensor([len(values[0])], device=values[0].device)
    counts = [torch.zeros_like(count) for _ in range(parallel.get_world_size())]
    parallel.all_gather(counts, count)
    sizes = torch.cat(counts).tolist()
    order = torch.cat([torch.arange(size) for size in sizes]).argsort(stable=True).to(count.device)
    gathered = []
    for value in values:
        mine = value.new_zeros((max(sizes), *value.shape[1:]))
        mine[: len(value)] = value
        parts = [torch.empty_like(mine) for _ in sizes]
        parallel.all_gather(parts, mine)
        gathered.append(torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])[order])
    return tuple(gathered)


class OGC(Loss):
    """Optimised gradient clipping of a loss ``l(u)``: below a point that follows the training, its tangent.

    Each ``every`` steps a mixture of two normal distributions is fitted to the last ``window`` values of ``-log u``;
    the one with the lower mean stands for clean examples. ``u_c`` is where clipping the slope at ``|l'(u_c)|`` leaves
    noisy examples a mean slope of ``1 + lr budget`` times that of clean ones. The loss is ``l(u)`` above ``u_c`` and
    ``l(u_c) + |l'(u_c)| (u_c - u)`` below; so it is continuous there. Until the window is full nothing is clipped.

    In training a call needs ``lr``, the learning rate of the step; :func:`unswayed.training.train` gives it. With
    several processes all see the values of all. After ``loss.eval()`` calls change nothing.

    Args:
        loss: a loss of the given class's probability alone, or its spec.
        budget: by what share of the clean slope the noisy one may exceed it, for a learning rate of 1; ``>= 0``.
        every: steps between fits, ``>= 1``.
        window: values that are fitted, ``>= 2``.

    >>> loss = OGC(budget=20)
    >>> loss(torch.zeros(1, 10), torch.tensor([3]), lr=0.1)         # nothing is clipped yet
    tensor(2.3026)
    """

    name = "ogc"
    wants = frozenset({"lr"})
    remembers = True
    loss: Loss
    budget: float
    every: int
    window: int
    values: Tensor

    def __init__(
        self, loss: Loss | str = "ce", budget: float = 20.0, every: int = 32, window: int = 4096, **options: Any
    ) -> None:
        super().__init__(loss=loss, budget=budget, every=every, window=window, **options)
        if not self.loss.is_pointwise:
            raise ValueError(f"ogc: {self.loss} is no function of the given class's probability alone")
        self.register_buffer("values", torch.zeros(self.window))
        self._steps = self._seen = 0
        self._edge = 0.0
        self._tangent()

    @property
    def threshold(self) -> float:
        """``u_c``, below which the slope is clipped; 0 while nothing is."""
        return self._edge

    def get_extra_state(self) -> dict[str, float]:
        """Return the counters and the threshold, for ``state_dict()``."""
        return {"steps": self._steps, "seen": self._seen, "edge": self._edge}

    def set_extra_state(self, state: Mapping[str, float]) -> None:
        """Go on from :meth:`get_extra_state`."""
        self._steps, self._seen, self._edge = int(state["steps"]), int(state["seen"]), float(state["edge"])
        self._tangent()

    def _tangent(self) -> None:
        """Find value and slope at the threshold."""
        self._value = self._slope = 0.0
        if self._edge > 0:
            log_edge = torch.tensor([math.log(self._edge)], dtype=torch.float64)
            self._value, self._slope = float(self.loss.pointwise(log_edge)), float(slope(self.loss, log_edge))

    def expected(self, e: Evidence) -> Tensor:
        """Take note of the losses, in training, and return the clipped one."""
        log_p = e.log_p_y
        if self.training:
            self._note(e, log_p.detach())
        value = self.loss.pointwise(log_p)
        if self._edge > 0:
            tangent = self._value + self._slope * (self._edge - log_p.exp())
            value = torch.where(log_p > math.log(self._edge), value, tangent)
        return e.average(value)

    def _note(self, e: Evidence, log_p: Tensor) -> None:
        given = -(e.target * log_p).sum(1) if e.soft else -log_p
        if (ignored := e.told.get("ignored")) is not None:
            given = given[~ignored]
        (new,) = from_all(given.flatten())
        new = new[-self.window :].clamp(_LEAST, _MOST).to(self.values)
        self.values[(self._seen + torch.arange(len(new), device=new.device)) % self.window] = new
        self._seen, self._steps = self._seen + len(new), self._steps + 1
        if self._steps % self.every == 0 and self._seen >= self.window:
            self._edge = clip_point(self.loss, *fit(self.values.double().cpu().numpy()), 1 + e.told["lr"] * self.budget)
            self._tangent()


def clip_point(loss: Loss, means: Sequence[float], deviations: Sequence[float], target: float) -> float:
    """Return the ``u`` where clipping leaves noisy examples ``target`` times the mean slope of clean ones.

    ``means`` and ``deviations`` of ``-log u``, clean before noisy; 0 if nothing has to be clipped.

    >>> from unswayed import CE
    >>> round(clip_point(CE(), (0.3, 3.0), (0.3, 1.0), target=1.2), 3)
    0.584
    """
    grid = torch.linspace(-math.log1p(-_LEAST), _MOST, _GRID, dtype=torch.float64)
    steep = slope(loss, -grid)
    # Where the tails are cut off cancels out, and so do the factors of the densities.
    clean, noisy = (
        torch.softmax(-0.5 * ((grid - mean) / deviation) ** 2, 0) for mean, deviation in zip(means, deviations)
    )

    def parts(density: Tensor) -> tuple[Tensor, Tensor]:
        """Of the mean slope if it is clipped from each point on: what is not clipped, and the share that is."""
        share = density.flip(0).cumsum(0).flip(0)
        return (steep * density).cumsum(0) - steep * density, share

    (clean_slope, clean_share), (noisy_slope, noisy_share) = parts(clean), parts(noisy)
    ratio = (noisy_slope + steep * noisy_share) / (clean_slope + steep * clean_share)
    above = (ratio > target).nonzero()
    if not len(above):
        return 0.0
    last = int(above[0])
    first = max(last - 1, 0)
    # Between two points the ratio hangs on the clipped slope alone, whose logarithm is all but straight.
    clipped = (target * clean_slope[last] - noisy_slope[last]) / (noisy_share[last] - target * clean_share[last])
    low, high = steep[first].log(), steep[last].log()
    part = ((clipped.log() - low) / (high - low)).nan_to_num(1.0).clamp(0, 1)
    return math.exp(-float(grid[first] + part * (grid[last] - grid[first])))


class _Remembering(Loss):
    """A loss with a row of memory for each training example, in buffers that grow to the largest row seen.

    With several processes each remembers what all of them see, so that all remember the same.
    """

    wants = frozenset({"index"})
    remembers = True
    _rows: tuple[str, ...] = ()

    def _fit_rows(self, index: Tensor) -> None:
        """Make room for some examples."""
        needed = int(index.max()) + 1 if len(index) else 0
        for name in self._rows:
            old = getattr(self, name)
            if needed > len(old):
                # A little more, as orders that begin with small rows would grow it in each step.
                new = old.new_zeros((needed + needed // 8, *old.shape[1:]))
                new[: len(old)] = old
                setattr(self, name, new)

    def _recall(self, memory: Tensor, index: Tensor) -> Tensor:
        """Return the rows of some examples, which are 0 for those never seen."""
        known = memory[index.clamp_max(len(memory) - 1)]
        return known.masked_fill((index >= len(memory)).view(-1, *[1] * (known.dim() - 1)), 0)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        for name in self._rows:
            stored = state_dict.get(prefix + name)
            if stored is not None:
                setattr(self, name, torch.empty_like(stored, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _check(self, e: Evidence) -> Tensor | None:
        """Return the rows of the examples; ``None`` where they are not told, out of training."""
        if e.logits.dim() != 2:
            raise ValueError(
                f"{self.name} remembers an example by its row: logits have shape (N, K), not {tuple(e.logits.shape)}"
            )
        index: Tensor | None = e.told.get("index")
        if index is None:
            return None
        if len(index) and int(index.min()) < 0:
            raise ValueError(f"index={int(index.min())} is not allowed; rows of the training set start at 0")
        return index


class ELR(_Remembering):
    """Early-learning regularisation: a loss plus ``weight log(1 - t.p)``, ``t`` being the example's past predictions.

    ``t`` is kept for each training example: it starts at 0, and each time the example is seen in training
    ``t <- beta t + (1 - beta) p``, where this ``p`` is normalised and has no gradient. A call needs ``index``, the rows
    of the examples in the training set; :func:`unswayed.training.train` gives it. After ``loss.eval()`` calls change no
    memory, and without ``index`` are those of the loss inside.

    Args:
        loss: the loss inside, or its spec.
        beta: how slowly the memory changes, ``0 <= beta < 1``.
        weight: weight of the penalty, ``>= 0``. Class weights are ``class_weight`` here; a tensor or sequence given as
            ``weight`` means them too.
        p_min: probabilities are kept between this and ``1 - p_min``, part of the definition; ``0 < p_min < 0.5``.

    >>> loss = ELR(beta=0.5, weight=1.0)
    >>> logits, target = torch.zeros(1, 2), torch.tensor([0])
    >>> loss(logits, target, index=torch.tensor([7]))               # log 2 + log(1 - 0.25)
    tensor(0.4055)
    >>> loss(logits, target, index=torch.tensor([7]))               # log 2 + log(1 - 0.375)
    tensor(0.2231)
    """

    name = "elr"
    _spec_names = {"penalty": "weight"}  # noqa: RUF012
    _shows_all = True
    _rows = ("memory",)
    loss: Loss
    beta: float
    penalty: float
    p_min: float
    memory: Tensor

    def __init__(
        self,
        loss: Loss | str = "ce",
        beta: float = 0.7,
        weight: float | Tensor | Sequence[float] = 3.0,
        p_min: float = 1e-4,
        *,
        class_weight: Tensor | Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        penalty, class_weight = penalty_or_class_weight(weight, class_weight, 3.0)
        super().__init__(loss=loss, beta=beta, penalty=penalty, p_min=p_min, weight=class_weight, **options)
        self.register_buffer("memory", torch.zeros(0, 0))

    def expected(self, e: Evidence) -> Tensor:
        """Remember the predictions, in training, and return loss and penalty."""
        index = self._check(e)
        value = self.loss.expected(e)
        p = e.p.clamp(self.p_min, 1 - self.p_min)
        if self.training and index is not None:
            self._remember(index, p.detach())
        if index is None or not len(self.memory):
            return value
        past = self._recall(self.memory, index).to(p.dtype)
        return value + self.penalty * e.average(torch.log1p(-e.sum_classes(past * p)))

    @torch.no_grad()
    def _remember(self, index: Tensor, p: Tensor) -> None:
        index, p = from_all(index, p / p.sum(1, keepdim=True))
        if not self.memory.numel():
            self.memory = p.new_zeros((0, p.shape[1]))
        if self.memory.shape[1] != p.shape[1]:
            raise ValueError(f"elr remembers {self.memory.shape[1]} classes; these logits have {p.shape[1]}")
        self._fit_rows(index)
        self.memory[index] = self.beta * self.memory[index] + (1 - self.beta) * p.to(self.memory.dtype)


class TruncatedGCE(_Remembering):
    """GCE that leaves examples out: ``w [(1 - u^q)/q - (1 - k^q)/q]``, where ``w`` is 1 if ``u > k`` and else 0.

    ``w`` is kept for each training example: it is 1 the first ``start`` times that the example is seen in training, is
    then found from its ``u``, and again after each ``every`` times. A call needs ``index``, as in :class:`ELR`. After
    ``loss.eval()`` calls change no memory, and without ``index`` leave no example out.

    Args:
        q: as in :class:`GCE`.
        k: the probability that an example must exceed, ``0 < k < 1``.
        start: how many epochs nothing is left out, ``>= 0``.
        every: epochs after which it is decided anew, ``>= 1``.

    >>> loss = TruncatedGCE(q=1.0, k=0.5, start=1)
    >>> logits, target = torch.tensor([[0.0, 2.0], [0.0, 0.0]]), torch.tensor([0, 0])
    >>> loss(logits, target, index=torch.tensor([0, 1]))            # 0.5 - (0.119 + 0.5) / 2
    tensor(0.1904)
    >>> loss(logits, target, index=torch.tensor([0, 1]))            # no u is above 0.5
    tensor(0.)
    """

    name = "truncated_gce"
    _rows = ("seen", "left_out")
    q: float
    k: float
    start: int
    every: int
    seen: Tensor
    left_out: Tensor

    def __init__(self, q: float = 0.7, k: float = 0.5, start: int = 40, every: int = 10, **options: Any) -> None:
        super().__init__(q=q, k=k, start=start, every=every, **options)
        self.register_buffer("seen", torch.zeros(0, dtype=torch.int32))
        self.register_buffer("left_out", torch.zeros(0, dtype=torch.uint8))

    def expected(self, e: Evidence) -> Tensor:
        """Decide who is left out, in training where it is due, and return the loss."""
        index = self._check(e)
        at_k = -math.expm1(self.q * math.log(self.k)) / self.q
        value = e.average(one_minus_exp(self.q * e.log_p_y) / self.q - at_k)
        if self.training and index is not None:
            self._decide(index, e)
        if index is None or not len(self.left_out):
            return value
        return value.masked_fill(self._recall(self.left_out, index) > 0, 0)

    @torch.no_grad()
    def _decide(self, index: Tensor, e: Evidence) -> None:
        u = (e.target * e.p).sum(1) if e.soft else e.p_y
        index, low = from_all(index, (u <= self.k).to(torch.uint8))
        self._fit_rows(index)
        times = self.seen[index]
        due = (times >= self.start) & ((times - self.start) % self.every == 0)
        self.left_out[index] = torch.where(due, low, self.left_out[index])
        self.seen[index] = times + 1


class After(Loss):
    """One loss for the first epochs, another one from then on: ``after(ce, then=label_smoothing(r=-0.2), epoch=60)``.

    A call needs ``epoch``, counted from 0; :func:`unswayed.training.train` gives it.

    Args:
        loss: the loss of the first epochs, or its spec.
        then: the loss from ``epoch`` on, or its spec.
        epoch: how many epochs the first one lasts, ``>= 1``.

    >>> loss = After("ce", then="mae(scale=1)", epoch=60)
    >>> [loss(torch.zeros(1, 2), torch.tensor([0]), epoch=epoch).item() for epoch in (59, 60)]
    [0.6931..., 0.5]
    """

    name = "after"
    wants = frozenset({"epoch"})
    _shows_all = True
    loss: Loss
    then: Loss
    epoch: int

    def __init__(self, loss: Loss | str = "ce", then: Any = None, epoch: Any = None, **options: Any) -> None:
        super().__init__(loss=loss, then=then, epoch=epoch, **options)

    def expected(self, e: Evidence) -> Tensor:
        """Return the loss of this epoch; what is evaluated without one is of the last."""
        epoch = e.told.get("epoch", self.epoch)
        return (self.loss if epoch < self.epoch else self.then).expected(e)
