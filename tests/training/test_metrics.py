"""Accuracy, likelihood and calibration, against the plainest way to compute them."""

import math

import torch

from unswayed.training import Tally


def plain(logits: torch.Tensor, target: torch.Tensor, bins: int = 15) -> tuple[float, float, float]:
    p = torch.softmax(logits.double(), 1)
    members: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    nll = right = 0.0
    for row, y in zip(p, target.tolist()):
        confidence, guess = row.max(0)
        place = next(b for b in range(bins) if confidence <= (b + 1) / bins + 1e-12)
        members[place].append((float(confidence), int(guess) == y))
        nll -= math.log(row[y])
        right += int(guess) == y
    gaps = [abs(sum(c for c, _ in m) / len(m) - sum(r for _, r in m) / len(m)) * len(m) for m in members if m]
    n = len(target)
    return right / n, nll / n, sum(gaps) / n


def test_against_a_plain_loop() -> None:
    torch.manual_seed(0)
    logits, target = 3 * torch.randn(300, 7), torch.randint(7, (300,))
    tally = Tally()
    for start in range(0, 300, 64):
        tally.add(logits[start : start + 64], target[start : start + 64])
    found = tally.metrics()
    accuracy, nll, ece = plain(logits, target)
    assert found.n == 300
    assert found.accuracy == accuracy
    assert abs(found.nll - nll) < 1e-6
    assert abs(found.ece - ece) < 1e-6
    assert sum(count for count, _, _ in found.bins) == 300
    assert len(found.bins) == 15


def test_a_sure_and_right_network_is_calibrated_and_a_sure_and_wrong_one_is_not() -> None:
    logits = torch.full((10, 4), -100.0)
    logits[:, 1] = 100
    sure = Tally()
    sure.add(logits, torch.ones(10, dtype=torch.int64))
    assert (sure.metrics().ece, sure.metrics().nll, sure.metrics().accuracy) == (0, 0, 1)
    assert sure.metrics().bins[14] == (10, 1.0, 1.0)
    wrong = Tally()
    wrong.add(logits, torch.zeros(10, dtype=torch.int64))
    assert (wrong.metrics().ece, wrong.metrics().nll, wrong.metrics().accuracy) == (1, 200, 0)


def test_sums_add_over_processes() -> None:
    torch.manual_seed(0)
    logits, target = torch.randn(50, 3), torch.randint(3, (50,))
    whole, left, right = Tally(), Tally(), Tally()
    whole.add(logits, target)
    left.add(logits[:20], target[:20])
    right.add(logits[20:], target[20:])
    left.sums += right.sums
    assert torch.allclose(left.sums, whole.sums)
    assert left.metrics().n == 50


def test_low_precision_is_lifted_and_nan_does_not_crash() -> None:
    tally = Tally()
    tally.add(torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16), torch.tensor([1]))
    assert abs(tally.metrics().nll - math.log1p(math.exp(-1))) < 1e-6
    tally.add(torch.tensor([[math.nan, 0.0]]), torch.tensor([1]))
    assert tally.metrics().n == 2
    assert math.isnan(tally.metrics().nll)


def test_of_nothing() -> None:
    assert Tally().metrics().n == 0
    assert math.isnan(Tally().metrics().accuracy)
