"""Many losses in one computation: for training many small models at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from unswayed.losses.base import Loss, what_it_wants
from unswayed.losses.evidence import Evidence


class Together:
    """A loss a row: of logits ``(R, K, N)`` and labels ``(R, N)`` it gives the losses ``(R, N)`` of R models.

    Losses that differ only in numbers, like ``gce(q=0.5)`` and ``gce(q=0.7)`` or ``nce + vce(a=1)`` and
    ``nce + 10*vce(a=4)``, are one expression whose parameters are tensors; other losses take their turns, and share the
    softmax. For that the rows are sorted: :attr:`order` says which loss each row has.

    >>> from unswayed import loss
    >>> together = Together([loss("gce(q=0.5)"), loss("ce"), loss("gce(q=1)")])
    >>> together.order
    [0, 2, 1]
    >>> together(torch.zeros(3, 2, 1), torch.tensor([[0], [0], [1]])).flatten()
    tensor([0.5858, 0.5000, 0.6931])
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        groups: dict[object, list[int]] = {}
        for place, loss in enumerate(losses):
            if wants := what_it_wants(loss):
                raise ValueError(f"{loss} wants to know {', '.join(wants)}, so that it cannot be computed with others")
            groups.setdefault(_family(loss), []).append(place)
        self.order: list[int] = []
        self._sizes: list[int] = []
        self._terms: list[list[tuple[float | Tensor, Loss]]] = []
        for places in groups.values():
            for some in _computable(places, losses):
                self.order += some
                self._sizes.append(len(some))
                self._terms.append(_merged_terms([losses[place] for place in some]))
        self._total = any(loss.needs_sum for loss in losses)

    @property
    def groups(self) -> int:
        """How many expressions the losses are."""
        return len(self._sizes)

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each example of each row."""
        parts = Evidence(logits, target, total=self._total).split(self._sizes)
        found = []
        for part, terms in zip(parts, self._terms):
            total: Tensor | None = None
            for factor, loss in terms:
                value = loss.expected(part)
                value = value if isinstance(factor, float) and factor == 1 else factor * value
                total = value if total is None else total + value
            assert total is not None
            found.append(total)
        return found[0] if len(found) == 1 else torch.cat(found)


def _numbers(loss: Loss) -> bool:
    return loss.is_pointwise and all(isinstance(value, float) for value in loss.params.values())


def _family(loss: Loss) -> object:
    """Return what losses that may be one expression have in common."""
    # A parameter of 0 often means another formula.
    return tuple(
        (type(term), *(value == 0 for value in term.params.values())) if _numbers(term) else str(term)
        for _, term in loss._terms()
    )


def _computable(places: list[int], losses: Sequence[Loss]) -> list[list[int]]:
    """Return the places as one group if they can be one expression, else a group a spec."""
    try:
        _merged_terms([losses[place] for place in places])
    except (TypeError, ValueError, RuntimeError):
        # The formula cannot take tensors for its parameters.
        by_spec: dict[str, list[int]] = {}
        for place in places:
            by_spec.setdefault(str(losses[place]), []).append(place)
        return list(by_spec.values())
    return [places]


def _merged_terms(losses: list[Loss]) -> list[tuple[float | Tensor, Loss]]:
    columns = zip(*(loss._terms() for loss in losses))
    return [(_column([c for c, _ in column]), _merged([term for _, term in column])) for column in columns]


def _column(values: list[float]) -> float | Tensor:
    return values[0] if len(set(values)) == 1 else torch.tensor(values).unsqueeze(1)


def _merged(losses: list[Loss]) -> Loss:
    """Return one loss for a row each, and see that it agrees with each of them."""
    first = losses[0]
    if len({str(loss) for loss in losses}) == 1:
        return first
    merged = copy.copy(first)
    for name in first._params:
        setattr(merged, name, _column([getattr(loss, name) for loss in losses]))
    log_p = -torch.logspace(-4, 1.5, 23)
    got = merged.pointwise(log_p.expand(len(losses), -1))
    want = torch.stack([loss.pointwise(log_p) for loss in losses])
    if not torch.allclose(got, want, rtol=1e-4, atol=1e-5):
        raise ValueError(f"{first} takes no tensors as parameters")
    return merged
