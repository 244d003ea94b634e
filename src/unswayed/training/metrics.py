"""What is measured of predictions: sums that add over batches, epochs and processes, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 15


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
        log_confidence, guess = log_p.max(1)
        confidence = log_confidence.double().exp()
        bins = (confidence * BINS).ceil().sub(1).nan_to_num(0).clamp(0, BINS - 1).long()
        rows = torch.stack([torch.ones_like(confidence), (guess == target).double(), confidence, nll.double()], 1)
        # A product adds in the same order each time; scattered additions on a GPU do not.
        self.sums += torch.nn.functional.one_hot(bins, BINS).double().T @ rows

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
