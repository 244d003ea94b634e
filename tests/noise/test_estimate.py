"""Estimates of noise on data whose truth is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.noise import NoiseEstimate, estimate, make
from unswayed.noise.ranking import ranked

METHODS = ["corrected", "confident joint", "anchor points"]


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def classified(n: int, k: int, sharp: float = 4.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true classes, and logits and probabilities of a classifier that errs on some of them."""
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    scores = sharp * (np.eye(k)[true] + 0.45 * rng.standard_normal((n, k)))
    return true, scores, softmax(scores)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
def test_symmetric_noise_is_found_beside_the_classifiers_own_errors(rate: float) -> None:
    true, _, p = classified(20000, 6)
    errors = float((p.argmax(1) != true).mean())
    assert errors > 0.15
    given = make(f"symmetric({rate})", true, 6).labels
    found = estimate(given, p, resamples=40)
    assert found.rate == pytest.approx(rate, abs=0.015)
    assert found.low < rate < found.high
    assert found.kind.name == "symmetric"
    assert found.warning is None
    assert found.errors == pytest.approx(errors, abs=0.03)
    assert found.methods["confident joint"].rate > rate + 0.01, "what the correction is for"
    assert np.abs(found.matrix - make(f"symmetric({rate})", true, 6).transition).max() < 0.03


def test_the_margins_scale_means_nothing() -> None:
    true, scores, _ = classified(10000, 5)
    given = make("symmetric(0.3)", true, 5).labels
    rates = [estimate(given, softmax(scores * scale), resamples=20).rate for scale in (0.5, 1.0, 2.0)]
    assert max(rates) - min(rates) < 1e-6


def test_class_dependent_noise_is_told_and_its_matrix_found() -> None:
    true, _, p = classified(20000, 5)
    matrix = np.eye(5)
    matrix[0, :2], matrix[3, 2:4] = (0.7, 0.3), (0.25, 0.75)
    rng = np.random.default_rng(1)
    given = np.array([rng.choice(5, p=matrix[i]) for i in true])
    found = estimate(given, p, resamples=20)
    assert found.kind.name == "class-dependent"
    assert found.rate == pytest.approx((given != true).mean(), abs=0.02)
    assert np.abs(found.matrix - matrix).max() < 0.03
    low, high = found.methods["corrected"].matrix_interval
    assert ((low <= high + 1e-6) & (low >= 0) & (high <= 1 + 1e-6)).all()


def test_noise_that_grows_with_difficulty_is_told() -> None:
    true, scores, p = classified(40000, 5, seed=3)
    ordered = np.sort(scores, 1)
    hard = 1 - np.argsort(np.argsort(ordered[:, -1] - ordered[:, -2])) / len(true)
    rng = np.random.default_rng(2)
    wrong = rng.random(len(true)) < 0.05 + 0.4 * hard
    given = np.where(wrong, (true + rng.integers(1, 5, len(true))) % 5, true)
    found = estimate(given, p, resamples=20)
    assert found.kind.name == "instance-dependent"
    assert found.separation.low == pytest.approx(0.45, abs=0.1)
    assert found.separation.high == pytest.approx(0.05, abs=0.02)
    assert found.low < wrong.mean() < found.high
    assert found.rate == pytest.approx(wrong.mean(), abs=0.05)


def test_clean_labels_have_no_noise_whatever_the_classifier_gets_wrong() -> None:
    true, _, p = classified(20000, 6)
    found = estimate(true, p, resamples=20)
    assert found.rate < 0.01
    assert found.low < 0.003
    assert found.kind.name == "unknown"


def test_two_classes() -> None:
    true, _, p = classified(20000, 2, sharp=5)
    found = estimate(make("symmetric(0.2)", true, 2).labels, p, resamples=20)
    assert found.rate == pytest.approx(0.2, abs=0.02)
    assert found.matrix.sum(1) == pytest.approx([1, 1])


def test_a_class_without_examples_has_no_row() -> None:
    true, scores, _ = classified(4000, 4)
    p = softmax(np.column_stack([scores, np.full(len(true), -30.0)]))
    found = estimate(make("symmetric(0.2)", true, 4).labels, p, resamples=20)
    anchors = found.methods["anchor points"].matrix
    assert np.isnan(anchors[4]).all()
    for name in METHODS:
        matrix = found.methods[name].matrix
        assert matrix[:4].sum(1) == pytest.approx(np.ones(4))
        assert matrix[:4, 4] == pytest.approx(np.zeros(4))
    json.dumps(found.record(), allow_nan=False)


def test_a_classifier_that_knows_nothing_is_no_witness() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=5000)
    found = estimate(labels, softmax(0.3 * rng.standard_normal((5000, 5))), resamples=20)
    assert found.warning is not None
    assert found.low == min(m.low for m in found.methods.values())
    assert found.high == max(m.high for m in found.methods.values())
    assert "Caution" in str(found)


@pytest.mark.parametrize("n", [1, 2, 30, 400])
def test_few_examples_tell_nothing(n: int) -> None:
    true, _, p = classified(n, 4)
    found = estimate(true, p, resamples=20)
    assert (found.low, found.high) == (0, 1)
    assert "500 examples or more are needed" in str(found)


def test_decisions_without_degrees_tell_nothing() -> None:
    true, _, p = classified(2000, 4)
    found = estimate(true, 0.96 * np.eye(4)[p.argmax(1)] + 0.01, resamples=20)
    assert (found.low, found.high) == (0, 1)
    assert found.warning is not None


def test_same_seed_same_result() -> None:
    true, _, p = classified(2000, 4)
    given = make("symmetric(0.3)", true, 4).labels

    def record(seed: int) -> str:
        return json.dumps(estimate(given, p, resamples=20, seed=seed).record())

    assert record(1) == record(1)
    assert record(1) != record(2)


def plain_confident_joint(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the calibrated confident joint, as its paper writes it, one example after another."""
    k = p.shape[1]
    threshold = [np.mean([row[i] for row, y in zip(p, labels) if y == i]) for i in range(k)]
    counts = np.zeros((k, k))
    for row, y in zip(p, labels):
        sure = [i for i in range(k) if row[i] >= threshold[i]]
        if sure:
            counts[max(sure, key=lambda i: row[i]), y] += 1
    calibrated = counts / counts.sum(0) * np.bincount(labels, minlength=k)
    return calibrated / calibrated.sum()


def test_the_confident_joint_is_that_of_its_paper() -> None:
    true, _, p = classified(1500, 4)
    given = make("symmetric(0.25)", true, 4).labels
    joint = estimate(given, p, resamples=20).methods["confident joint"].joint
    dense = np.zeros((4, 4))
    dense[joint.true, joint.label] = joint.share
    assert dense == pytest.approx(plain_confident_joint(p, given))


def test_anchor_points_show_the_labels_of_the_surest() -> None:
    true, _, p = classified(4000, 4)
    given = make("symmetric(0.25)", true, 4).labels
    matrix = estimate(given, p, resamples=20).methods["anchor points"].matrix
    guess, top = p.argmax(1), np.sort(p, 1)
    for i in range(4):
        rows = np.flatnonzero(guess == i)
        surest = rows[np.argsort(-np.log(top[rows, -1] / top[rows, -2]))][: int(np.ceil(0.02 * len(rows)))]
        assert matrix[i] == pytest.approx(np.bincount(given[surest], minlength=4) / len(surest))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(30, 300), k=st.integers(2, 9), sharp=st.floats(0.1, 20), seed=st.integers(0, 999),
    single=st.booleans(),
)  # fmt: skip
def test_any_table_gives_shares(n: int, k: int, sharp: float, seed: int, single: bool) -> None:
    rng = np.random.default_rng(seed)
    p = softmax(sharp * rng.standard_normal((n, k))).astype(np.float32 if single else np.float64)
    found = estimate(rng.integers(k, size=n), p, resamples=20)
    check_shares(found)


def check_shares(found: NoiseEstimate) -> None:
    assert list(found.methods) == METHODS
    for m in found.methods.values():
        assert 0 <= m.low <= m.high <= 1 + 1e-9
        assert m.joint.share.sum() == pytest.approx(1)
        assert m.joint.rate == pytest.approx(m.rate)
        rows = m.matrix.sum(1)
        assert rows[~np.isnan(rows)] == pytest.approx(np.ones(int((~np.isnan(rows)).sum())))
    json.dumps(found.record(), allow_nan=False)
    assert str(found)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 60), k=st.integers(2, 40), seed=st.integers(0, 999))
def test_guesses_are_the_likeliest_classes_in_order(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = softmax(np.round(2 * rng.standard_normal((n, k)), 1))
    seen = ranked(p, rng.integers(k, size=n))
    likeliest = -np.sort(-p, 1)[:, : min(4, k)]
    assert (np.take_along_axis(p, seen.guesses, 1) == likeliest).all()
    assert all(len(set(row)) == len(row) for row in seen.guesses.tolist())


@pytest.mark.parametrize(
    ("labels", "p", "message"),
    [
        ([0, 1], [[0.5, 0.5], [0.7, 0.2]], "row 1 sums to 0.9; each row must sum to 1"),
        ([0, 1], [[2.0, -1.0], [-3.0, 4.0]], "row 0 has -1; probabilities lie between 0 and 1"),
        ([0, 1], [[0.5, 0.5], [float("nan"), 1.0]], "row 1 has nan"),
        ([0, 1], [[1.0, 0.0], [0.0, 1.0]], "do not tell how sure the classifier is"),
        ([0, 2], [[0.5, 0.5], [0.7, 0.3]], "2 is not allowed; labels are 0 to 1"),
        ([0, 1, 1], [[0.5, 0.5], [0.7, 0.3]], "3 labels, but 2 rows"),
        ([0, 1], [0.5, 0.7], "N rows and K columns"),
        ([0.5, 1], [[0.5, 0.5], [0.7, 0.3]], "whole numbers are needed"),
    ],
)
def test_mistakes_are_told(labels: list[int], p: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(np.array(labels), np.array(p))


def test_probabilities_or_features() -> None:
    with pytest.raises(ValueError, match="either probabilities"):
        estimate([0, 1])
    with pytest.raises(ValueError, match="resamples >= 20"):
        estimate([0, 1], np.array([[0.5, 0.5], [0.7, 0.3]]), resamples=3)


def test_from_features() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=1500)
    x = np.eye(3)[true] @ rng.standard_normal((3, 8)) * 2 + rng.standard_normal((1500, 8))
    found = estimate(make("symmetric(0.3)", true, 3).labels, features=x.astype(np.float32), resamples=20)
    assert found.rate == pytest.approx(0.3, abs=0.05)
