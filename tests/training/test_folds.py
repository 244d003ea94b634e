"""Out-of-sample probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unswayed.data import Data, wrap
from unswayed.training import Recipe, out_of_sample

RECIPE = Recipe(epochs=3, batch_size=16, lr=0.1)


def blobs(n: int, k: int = 3, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    x = 3 * np.eye(k)[labels] + rng.standard_normal((n, k))
    return wrap((x.astype(np.float32), labels), num_classes=k)


def test_each_example_has_probabilities() -> None:
    data = blobs(203)
    p = out_of_sample(data, "ce", "linear", RECIPE, folds=4)
    assert p.shape == (203, 3)
    assert p.sum(1) == pytest.approx(np.ones(203), abs=1e-5)
    assert (p.argmax(1) == data.train.labels).mean() > 0.8


def test_no_example_is_seen_by_its_own_model() -> None:
    """Labels that mean nothing can be memorised, but not foretold."""
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((120, 200)).astype(np.float32), rng.integers(2, size=120)
    recipe = Recipe(epochs=40, batch_size=16, lr=0.1)
    p = out_of_sample(wrap((x, labels), num_classes=2), "ce", "linear", recipe, folds=5)
    assert (p.argmax(1) == labels).mean() < 0.7


def test_same_seed_same_probabilities() -> None:
    data = blobs(60)
    first, again, other = (out_of_sample(data, "ce", "linear", RECIPE, folds=3, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_defaults_learn_and_take_noise() -> None:
    data = blobs(400)
    p = out_of_sample(data, noise="symmetric(0.3)")
    assert (p.argmax(1) == data.train.labels).mean() > 0.85


def test_images_will_do() -> None:
    x = torch.randint(0, 256, (40, 3, 4, 4), dtype=torch.uint8)
    p = out_of_sample(wrap((x, np.arange(40) % 2), num_classes=2), "ce", "linear", RECIPE, folds=2)
    assert p.shape == (40, 2)


def test_leave_one_out_and_no_further() -> None:
    data = blobs(12)
    assert out_of_sample(data, "ce", "linear", RECIPE, folds=12).shape == (12, 3)
    with pytest.raises(ValueError, match="there are 12 examples"):
        out_of_sample(data, "ce", "linear", RECIPE, folds=13)
    with pytest.raises(ValueError, match="folds >= 2"):
        out_of_sample(data, "ce", "linear", RECIPE, folds=1)
