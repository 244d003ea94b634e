"""Instance noise: the published distributions, in exact numbers, in little memory, with exact arithmetic."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unswayed.noise import make
from unswayed.noise.drawing import Draw, rounded
from unswayed.noise.instance import _TARGETS, _WEIGHTS, _Inputs, _rates, _systematic

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (6000, 3, 5, 4), dtype=np.uint8)
LABELS = np.arange(6000) % 10
# Mean of a normal number around the rate with deviation 0.1, cut off at 0 and 1; from spec/methods.md, 6.3.
EXPECTED = {0.1: 0.1288, 0.2: 0.2055, 0.3: 0.3004, 0.4: 0.4000, 0.5: 0.5, 0.6: 0.6}


@pytest.mark.parametrize("rate", EXPECTED)
def test_pdn_has_the_rate_of_its_authors(rate: float) -> None:
    exact = make(f"instance({rate})", LABELS, 10, features=IMAGES)
    assert exact.rate == pytest.approx(EXPECTED[rate], abs=2e-4)
    assert exact.counts is not None
    flips = exact.counts.sum(1) - np.diag(exact.counts)
    assert np.ptp(flips) <= 1
    drawn = make(f"instance({rate}, sampling=bernoulli)", LABELS, 10, features=IMAGES)
    assert drawn.rate == pytest.approx(EXPECTED[rate], abs=5 * math.sqrt(0.25 / 6000))


@pytest.mark.parametrize("exact", [True, False])
def test_rates_follow_the_truncated_normal(exact: bool) -> None:
    from scipy.stats import kstest, truncnorm

    rates = _rates(0.15, np.zeros(20000, dtype=np.int64), exact, Draw(3))
    theirs = truncnorm(-1.5, 8.5, loc=0.15, scale=0.1)
    assert kstest(rates, theirs.cdf).statistic < (1e-4 if exact else 1.63 / math.sqrt(20000))
    assert abs(np.corrcoef(rates[:-1], rates[1:])[0, 1]) < 5 / math.sqrt(20000)


@settings(deadline=None, max_examples=50)
@given(rates=st.lists(st.integers(0, 1024).map(lambda n: n / 1024), min_size=1, max_size=20))
def test_each_example_is_chosen_with_its_own_rate(rates: list[float]) -> None:
    own, total = np.array(rates), sum(rates)
    rest, grid = total - math.floor(total), (np.arange(512) + 0.5) / 512
    share = np.zeros(len(rates))
    for count, weight in ((math.floor(total), 1 - rest), (math.floor(total) + 1, rest)):
        if weight:
            chosen = np.array([_systematic(own, count, u) for u in grid])
            assert (chosen.sum(1) == count).all()
            share += weight * chosen.mean(0)
    assert np.abs(share - own).max() < 2 / 512


@pytest.mark.parametrize("spec", ["instance(0.4)", "instance(0.4, kind=projection, scaling=raw)"])
@pytest.mark.parametrize("sampling", ["exact", "bernoulli"])
def test_wrong_labels_follow_the_softmax_of_the_projection(spec: str, sampling: str) -> None:
    """Many copies of three small examples, so that the softmax is far from one-hot."""
    points = RNG.normal(size=(3, 6)) * 0.4
    which, labels = np.repeat([0, 1, 2], 20000), np.repeat([0, 4, 4], 20000)
    noisy = make(f"{spec[:-1]}, sampling={sampling})", labels, 5, features=points[which], seed=11)
    for copy, y in ((0, 0), (1, 4), (2, 4)):
        weights = Draw(11, _WEIGHTS, y).normal(6, 5)
        scores = points[copy] @ weights
        wanted = np.exp(scores) * (np.arange(5) != y)
        wanted *= 0.4 / wanted.sum()
        wanted[y] = 0.6
        seen = np.bincount(noisy.labels[which == copy], minlength=5) / 20000
        assert np.abs(seen - wanted).max() < 5 * math.sqrt(0.25 / 20000), (seen, wanted)


@pytest.mark.parametrize("options", ["", ", kind=projection", ", scaling=standardised"])
def test_targets_are_those_of_a_plain_loop(options: str) -> None:
    noisy = make(f"instance(0.3{options})", LABELS, 10, features=IMAGES, seed=5)
    pixels = IMAGES.reshape(len(IMAGES), 3, -1).astype(float)
    if options:
        mean, std = pixels.mean((0, 2), keepdims=True), pixels.std((0, 2), keepdims=True)
        pixels = (pixels - mean) / std
    x, u = pixels.reshape(len(IMAGES), -1), Draw(5, _TARGETS).uniform(len(IMAGES))
    agree = []
    for i in np.flatnonzero(noisy.labels != LABELS)[:400]:
        y = int(LABELS[i])
        scores = x[i] @ Draw(5, _WEIGHTS, y).normal(60, 10)
        scores[y] = -np.inf
        p = np.exp(scores - scores.max())
        agree.append(noisy.labels[i] == np.searchsorted(np.cumsum(p / p.sum()), u[i], side="right"))
    # The inputs of the loop are not rounded, which may shift a bound between two classes by a little.
    assert np.mean(agree) > (0.99 if options else 0.9999)


def test_weights_are_standard_normal() -> None:
    from scipy.stats import kstest

    weights = Draw(2).normal(300, 999).ravel()
    assert kstest(weights, "norm").statistic < 1.63 / math.sqrt(len(weights))
    assert weights.std() == pytest.approx(1, abs=5 / math.sqrt(2 * len(weights)))
    assert np.abs(weights).max() < 8
    assert (weights * 2**16 % 1 == 0).all()
    assert np.abs(np.corrcoef(weights.reshape(4, -1))[~np.eye(4, dtype=bool)]).max() < 0.02


def test_the_layout_in_memory_does_not_matter() -> None:
    images = torch.from_numpy(IMAGES)
    last = images.to(memory_format=torch.channels_last)
    for spec in ("instance(0.3)", "instance(0.3, scaling=standardised)"):
        drawn = [make(spec, LABELS, 10, features=x).labels for x in (images, last, images.flatten(1))]
        assert np.array_equal(drawn[0], drawn[1])
        # A table has a scale for each column, images have one for each channel.
        assert np.array_equal(drawn[0], drawn[2]) == (spec == "instance(0.3)")


def test_projection_flips_exactly_its_rate() -> None:
    noisy = make("instance(0.37, kind=projection)", LABELS[:-7], 10, features=IMAGES[:-7])
    assert int((noisy.labels != noisy.clean).sum()) == rounded(0.37 * 5993)


def test_like_images_get_like_labels() -> None:
    # On bytes the softmax is nearly one-hot: flipped copies of an image go where its projection is largest.
    copies = np.repeat(IMAGES[:1], 500, axis=0)
    labels = make("instance(0.4)", np.zeros(500, dtype=int), 10, features=copies).labels
    assert set(np.unique(labels)) == {0, labels[labels != 0][0]}


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        IMAGES,
        torch.from_numpy(IMAGES).float() / 255,
        RNG.normal(size=(500, 40)) * np.logspace(-6, 6, 40) + 3,
        RNG.normal(size=(300, 7)).astype(np.float16),
        RNG.integers(-900, 70000, (300, 9)),
        np.concatenate([RNG.normal(size=(300, 3)), np.full((300, 1), 7.25), np.zeros((300, 1))], axis=1),
    ],
)
def test_products_are_exact_in_any_order(values: np.ndarray | torch.Tensor, standardised: bool) -> None:
    inputs = _Inputs(values, len(values), standardised=standardised)
    weights = Draw(1, _WEIGHTS, 0).normal(inputs.width, 3)
    rows = np.arange(0, len(values), 97)
    block = inputs[rows]
    product = block @ weights
    for i, j in np.ndindex(product.shape):
        # fsum rounds once, and exact sums not at all.
        assert product[i, j] == math.fsum(block[i] * weights[:, j])
    plain = np.asarray(values, dtype=float).reshape(len(values), len(values[0]), -1)
    if standardised:
        std = plain.std((0, 2), keepdims=True)
        plain = (plain - plain.mean((0, 2), keepdims=True)) / np.where(std > 1e-9, std, 1)
    plain = plain.reshape(len(values), -1)[rows]
    assert np.abs(block - plain).max() <= 2**-15 * np.abs(plain).max()


def test_memory_is_bounded() -> None:
    images = np.zeros((20000, 3, 32, 32), dtype=np.uint8)
    images[:, :, ::3] = 90
    for spec in ("instance(0.6)", "instance(0.6, scaling=standardised)"):
        tensor = torch.from_numpy(images).to(memory_format=torch.channels_last)
        tracemalloc.start()
        make(spec, np.arange(20000) % 100, 100, features=tensor)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # The inputs as float64 would be 491 MB, a product of all examples with all weights 49 GB.
        assert peak < 40e6, peak


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((5, 3)), "6000 rows of numbers"),
        (np.zeros(6000), "shape (6000,)"),
        (np.full((6000, 2), np.nan), "not finite"),
        (np.full((6000, 2), "a"), "rows of numbers"),
        (np.zeros((6000, 0)), "rows of numbers"),
    ],
)
def test_bad_features_are_explained(features: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=None) as caught:
        make("instance(0.2)", LABELS, 10, features=features)
    assert message in str(caught.value)
