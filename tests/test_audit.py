"""Which labels to distrust."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed import audit
from unswayed.noise import make


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def noisy(n: int = 10000, k: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true and given labels, and probabilities of a classifier that errs on some examples."""
    rng = np.random.default_rng(0)
    true = rng.integers(k, size=n)
    p = softmax(4 * (np.eye(k)[true] + 0.4 * rng.standard_normal((n, k))))
    return true, make("symmetric(0.2)", true, k).labels, p


def test_suspects_are_wrong_as_often_as_expected() -> None:
    true, labels, p = noisy()
    found = audit.suspects(labels, p)
    wrong = labels != true
    assert found.number == pytest.approx(wrong.sum(), rel=0.1)
    for number in (300, 1000, 2000, 4000):
        real = wrong[found.order[:number]].mean()
        assert found.expected_precision(number) == pytest.approx(real, abs=0.08)
    assert found.mask.sum() == found.number
    assert found.chance.mean() == pytest.approx(wrong.mean(), abs=0.02)
    first = found.order[:1000]
    assert (found.proposed[first] == true[first]).mean() > 0.9
    assert (found.proposed != labels).all()


def test_scores_are_what_they_say() -> None:
    _, labels, p = noisy(50, 4)
    others = np.array([max(row[j] for j in range(4) if j != y) for row, y in zip(p, labels)])
    own = p[np.arange(50), labels]
    for score, expected in (
        ("self-confidence", own),
        ("normalised margin", (own - others + 1) / 2),
        ("log margin", own / (own + others)),
    ):
        found = audit.suspects(labels, p, score)
        assert found.quality == pytest.approx(expected)
        assert (np.diff(found.quality[found.order]) >= 0).all()


def test_tables_of_suspects() -> None:
    _, labels, p = noisy(500, 3)
    found = audit.suspects(labels, p)
    rows = found.records(7)
    assert [row["row"] for row in rows] == found.order[:7].tolist()
    assert all(labels[row["row"]] == row["label"] != row["proposed"] for row in rows)
    assert len(found.records()) == found.number
    classes = found.by_class()
    assert sum(row["suspects"] for row in classes) == found.number
    assert sum(row["examples"] for row in classes) == 500


def test_mistakes_are_told() -> None:
    _, labels, p = noisy(50, 3)
    with pytest.raises(ValueError, match="did you mean 'self-confidence'"):
        audit.suspects(labels, p, "self-confidenc")
    with pytest.raises(ValueError, match="number=51 is not allowed; it is 0 to 50"):
        audit.suspects(labels, p).expected_precision(51)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(20, 200), k=st.integers(2, 7), seed=st.integers(0, 99))
def test_any_table_gives_a_ranking(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    for score in audit.SCORES:
        found = audit.suspects(labels, softmax(3 * rng.standard_normal((n, k))).astype(np.float32), score)
        assert sorted(found.order.tolist()) == list(range(n))
        assert ((found.quality >= 0) & (found.quality <= 1)).all()
        assert ((found.chance >= -1e-9) & (found.chance <= 1 + 1e-9)).all()
        assert (found.proposed != labels).all()
        assert ((found.proposed >= 0) & (found.proposed < k)).all()
