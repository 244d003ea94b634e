"""What is measured of predictions: sums that add over batches, epochs and processes, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BINS = 15
# What is summed over an epoch's training steps.
SUMS = ("loss", "seen", "right", "wrong labels", "memorised", "right of clean")


@dataclass(frozen=True)
class Metrics:
    """Accuracy, mean negative log-likelihood and calibration of a set of predictions.

    ``ece`` is the expected calibration error over 15 bins of equal width: the mean distance between confidence (the
    largest probability) and accuracy, weighted by the bins' shares of ``n`` examples. ``bins`` holds for each of them
    the number of examples, their mean confidence and their accuracy.
    """

    n: int
    accuracy: float
    nll: float
    ece: float
    bins: tuple[tuple[int, float, float], ...]


class Tally:
    """Sums from which :class:`Metrics` follow.

    >>> tally = Tally()
    >>> tally.add(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0]))
    >>> tally.metrics().accuracy
    0.5
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        # A row a bin: number of examples, number that are right, sum of confidences, sum of negative log-likelihoods.
        self.sums = torch.zeros(BINS, 4, dtype=torch.float64, device=device)

    def add(self, logits: Tensor, target: Tensor) -> None:
        """Count a batch of logits ``(N, K)`` and class indices."""
        log_p = torch.log_softmax(logits.detach().float(), 1)
        nll = torch.nn.functional.nll_loss(log_p, target, reduction="none")
        top, guess = log_p.max(1)
        self.sums += bin_sums(nll, top, guess == target)

    def metrics(self) -> Metrics:
        """Return what the sums say; of no examples, NaN."""
        count, right, confidence, nll = self.sums.cpu().unbind(1)
        n = float(count.sum())
        if n == 0:
            return Metrics(0, float("nan"), float("nan"), float("nan"), ())
        safe = count.clamp_min(1)
        ece = float((confidence - right).abs().sum()) / n
        bins = tuple(zip(count.int().tolist(), (confidence / safe).tolist(), (right / safe).tolist()))
        return Metrics(int(n), float(right.sum()) / n, float(nll.sum()) / n, ece, bins)


def bin_sums(nll: Tensor, log_confidence: Tensor, right: Tensor) -> Tensor:
    """Return the sums of a :class:`Tally`, ``(..., bins, 4)``, for examples along the last axis."""
    confidence = log_confidence.double().exp()
    bins = (confidence * BINS).ceil().sub(1).nan_to_num(0).clamp(0, BINS - 1).long()
    rows = torch.stack([torch.ones_like(confidence), right.double(), confidence, nll.double()], -1)
    # A product adds in the same order each time; scattered additions on a GPU do not.
    return torch.nn.functional.one_hot(bins, BINS).double().mT @ rows


def epoch_record(
    epoch: int, lr: float, sums: Sequence[float], clean_known: bool, measured: Mapping[str, Metrics]
) -> dict[str, Any]:
    """Return the record of an epoch from its :data:`SUMS` and from what was measured after it."""
    loss, seen, right, wrong, memorised, right_of_clean = sums
    record: dict[str, Any] = {
        "epoch": epoch,
        "lr": lr,
        "train_loss": loss / seen,
        "train_accuracy": right / seen,
        "train_clean_accuracy": right_of_clean / seen if clean_known else None,
        "memorised": memorised / wrong if wrong else None,
    }
    for name, metrics in measured.items():
        record[f"{name}_accuracy"] = metrics.accuracy
        if name != "val":
            record |= {f"{name}_nll": metrics.nll, f"{name}_ece": metrics.ece}
    return record
