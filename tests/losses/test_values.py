"""Every loss has the value of its formula, and the values and gradients of public code."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from losses_cases import DEFAULTS, SPECS, SYMMETRIC, build, draw, grad, labels, oracle, values
from test_reference import GOLDEN
from unswayed import info, list_losses, loss


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("spec", SPECS)
def test_value_is_that_of_the_formula(spec: str, classes: int) -> None:
    criterion = build(spec, classes, reduction="none")
    target = labels(12, classes=classes)
    for scale in (0.01, 1.0, 4.0):
        logits = draw(12, classes, scale=scale)
        expected = values(criterion, logits, target)
        torch.testing.assert_close(criterion(logits, target), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_reductions_agree_with_the_formula(spec: str) -> None:
    logits, target = draw(6, 4), labels(6, classes=4)
    total = math.fsum(values(build(spec, 4), logits, target).tolist())
    assert build(spec, 4, reduction="sum")(logits, target).item() == pytest.approx(total, rel=1e-9)
    assert build(spec, 4)(logits, target).item() == pytest.approx(total / 6, rel=1e-9)


@pytest.mark.parametrize("spec", SPECS)
def test_soft_labels_mean_the_expected_loss(spec: str) -> None:
    criterion, logits = build(spec, 4, reduction="none"), draw(5, 4)
    soft = draw(5, 4, seed=1).softmax(1)
    one = oracle(criterion)
    expected = [
        math.fsum(q * one(z, k) for k, q in enumerate(row))
        for z, row in zip(logits.tolist(), soft.tolist(), strict=True)
    ]
    torch.testing.assert_close(
        criterion(logits, soft), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("spec", SPECS)
def test_one_hot_soft_labels_are_class_indices_in_value_and_gradient(spec: str) -> None:
    criterion, logits, target = build(spec, 4), draw(5, 4), labels(5, classes=4)
    soft = torch.nn.functional.one_hot(target, 4).to(logits)
    torch.testing.assert_close(criterion(logits, soft), criterion(logits, target), rtol=1e-12, atol=1e-12)
    hard_gradient = grad(lambda z: criterion(z, target), logits)
    torch.testing.assert_close(grad(lambda z: criterion(z, soft), logits), hard_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spec", SYMMETRIC)
def test_a_symmetric_loss_sums_to_a_constant_over_the_labels(spec: str) -> None:
    criterion, logits = build(spec, 5, reduction="none"), draw(20, 5, scale=3)
    sums = sum(criterion(logits, torch.full((20,), k)) for k in range(5))
    torch.testing.assert_close(sums, sums[:1].expand(20), rtol=1e-12, atol=0)


def test_every_default_has_a_reason() -> None:
    for entry in map(info, list_losses()):
        assert entry.why_default or not set(entry.defaults) - {"loss"}, entry.name


def test_every_registered_loss_is_among_the_cases() -> None:
    assert {spec.partition("(")[0] for spec in SPECS} >= set(DEFAULTS)


def golden() -> list[Any]:
    if not GOLDEN.exists():
        skip = pytest.mark.skip(reason=f"no golden file at {GOLDEN}")
        return [pytest.param({}, {}, id="absent", marks=skip)]
    file = json.loads(GOLDEN.read_text())
    return [pytest.param(file, entry, id=entry["name"]) for entry in file["losses"]]


@pytest.mark.parametrize(("file", "entry"), golden())
def test_value_and_gradient_are_those_of_public_code(file: dict[str, Any], entry: dict[str, Any]) -> None:
    criterion = loss(entry["spec"])
    logits = torch.tensor(file["logits"], dtype=torch.float64)
    target = torch.tensor(file["target"])
    assert criterion(logits, target).item() == pytest.approx(entry["mean"], rel=1e-6)
    if "gradient" in entry:
        expected = torch.tensor(entry["gradient"], dtype=torch.float64)
        torch.testing.assert_close(grad(lambda z: criterion(z, target), logits), expected, rtol=1e-6, atol=1e-9)
    else:
        assert entry["name"].endswith("value_only")
