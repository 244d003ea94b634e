"""Batches hang on seed, epoch and step alone: not on where one begins, how many share the work, or what was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unswayed.data import BadImage, Loader, Split, augmentation

N = 23
IMAGES = torch.randint(0, 256, (N, 3, 6, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
LABELS = np.arange(N, dtype=np.int64) % 3
MEMORY = Split(LABELS, IMAGES)
FEATURES = Split(LABELS, torch.randn(N, 4, generator=torch.Generator().manual_seed(1)))


@dataclass(frozen=True)
class Disk:
    """Reads images of many sizes, some of which are broken."""

    broken: frozenset[int] = frozenset()
    larger: bool = False

    def __call__(self, row: int) -> Tensor:
        if row in self.broken:
            raise BadImage(f"{row}.png", "broken")
        return IMAGES[row].repeat(1, 1 + row % 3, 1 + row % 2) if self.larger else IMAGES[row]


STREAM = Split(LABELS, read=Disk())
SIZES = Split(LABELS, read=Disk(larger=True), size=6)
CASES = {
    "memory": (MEMORY, "crop(1) + flip + cutout(2)"),
    "features": (FEATURES, "none"),
    "stream": (STREAM, "crop(1) + alternating_flip"),
    "sizes": (SIZES, "resized_crop(5) + flip + color_jitter(0.2)"),
}

Batches = list[tuple[Tensor, Tensor]]


def loader(case: str, size: int = 5, **options: Any) -> Loader:
    split, augment = CASES[case]
    return Loader(split, size, augment=augmentation(augment), **({"seed": 7} | options))


def batches(of: Loader, epoch: int = 0, start: int = 0) -> Batches:
    return list(of.epoch(epoch, start))


def same(a: Batches, b: Batches) -> bool:
    return len(a) == len(b) and all(
        torch.equal(x, other) and torch.equal(i, j) for (x, i), (other, j) in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_the_same_each_time_and_another_with_each_epoch_and_seed(case: str) -> None:
    first = batches(loader(case), 2)
    torch.manual_seed(5)
    again = loader(case)
    batches(again, 0)
    assert same(batches(again, 2), first)
    for other in (batches(loader(case), 3), batches(loader(case, seed=8), 2)):
        assert not torch.equal(other[0][1], first[0][1])
    # Not the order alone: what is done to one and the same example differs too.
    if case != "features":
        fixed = [batches(loader(case, shuffle=False), epoch) for epoch in (0, 1)]
        assert torch.equal(fixed[0][0][1], fixed[1][0][1])
        assert not torch.equal(fixed[0][0][0], fixed[1][0][0])


@settings(max_examples=25, deadline=None)
@given(
    case=st.sampled_from(list(CASES)), size=st.integers(1, N + 2), epoch=st.integers(0, 3), seed=st.integers(0, 2**63),
    data=st.data(),
)  # fmt: skip
def test_a_restart_goes_on_as_if_nothing_had_been(case: str, size: int, epoch: int, seed: int, data: Any) -> None:
    of = loader(case, size, seed=seed)
    whole = batches(of, epoch)
    assert len(whole) == len(of) == -(-N // size)
    assert sorted(torch.cat([index for _, index in whole]).tolist()) == list(range(N))
    start = data.draw(st.integers(0, len(of)))
    assert same(batches(loader(case, size, seed=seed), epoch, start), whole[start:])


@settings(max_examples=20, deadline=None)
@given(case=st.sampled_from(list(CASES)), size=st.integers(1, 12), world=st.integers(1, 4))
def test_processes_share_the_batch_of_one(case: str, size: int, world: int) -> None:
    whole = batches(loader(case, size))
    shares = [batches(loader(case, size, rank=rank, world=world)) for rank in range(world)]
    for step, (x, index) in enumerate(whole):
        for rank in range(world):
            assert torch.equal(shares[rank][step][1], index[rank::world])
            assert torch.equal(shares[rank][step][0], x[rank::world])


@pytest.mark.parametrize("case", ["stream", "sizes"])
def test_worker_processes_change_nothing(case: str) -> None:
    assert same(batches(loader(case, workers=2), 1), batches(loader(case), 1))


def test_streams_are_what_memory_is() -> None:
    augment = augmentation("crop(2) + flip + cutout(3)", mean=(0.5,) * 3, std=(0.2,) * 3)
    assert same(*(batches(Loader(split, 4, seed=1, augment=augment), 1) for split in (MEMORY, STREAM)))


def test_in_order_and_plain() -> None:
    for split in (MEMORY, STREAM):
        x, index = (torch.cat(each) for each in zip(*Loader(split, 4, shuffle=False).epoch(0)))
        assert index.tolist() == list(range(N))
        assert torch.allclose(x, IMAGES.float() / 255)
        assert x.is_contiguous(memory_format=torch.channels_last)
    x, _ = next(Loader(FEATURES, N, shuffle=False).epoch(0))
    assert torch.equal(x, FEATURES.inputs)


def test_channels_last_in_memory_is_the_same() -> None:
    assert IMAGES.is_contiguous()
    other = Split(LABELS, IMAGES.contiguous(memory_format=torch.channels_last))
    augment = augmentation("crop(1) + rotate(30)")
    assert same(*(batches(Loader(split, 4, augment=augment)) for split in (MEMORY, other)))


def test_rows_of_the_split() -> None:
    rows = np.array([20, 3, 8, 9, 1])
    for split in (MEMORY, STREAM):
        of = Loader(split, 2, rows=rows)
        assert (of.size, len(of)) == (5, 3)
        x, index = (torch.cat(each) for each in zip(*of.epoch(1)))
        assert sorted(index.tolist()) == sorted(rows.tolist())
        assert torch.allclose(x, IMAGES[index].float() / 255)


@pytest.mark.parametrize("augment", ["none", "resized_crop(4) + flip"])
def test_a_batch_of_broken_images_is_empty(augment: str) -> None:
    split = Split(LABELS, read=Disk(frozenset(range(5))), on_bad_image="skip", size=6)
    of = Loader(split, 4, shuffle=False, augment=augmentation(augment))
    with pytest.warns(UserWarning, match="it is left out") as told:
        found = batches(of)
    assert len(told) == 5
    assert [len(index) for _, index in found] == [0, 3, 4, 4, 4, 3]
    assert found[0][0].shape == (0, *found[1][0].shape[1:])
    assert torch.cat([index for _, index in found]).tolist() == list(range(5, N))


def test_nothing_but_broken_images() -> None:
    split = Split(LABELS, read=Disk(frozenset(range(N))), on_bad_image="skip")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match="none of the images can be read"):
        batches(Loader(split, N))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_ends_the_run(workers: int) -> None:
    split = Split(LABELS, read=Disk(frozenset([13])))
    with pytest.raises(BadImage, match=r"'13\.png' cannot be read as an image: broken"):
        batches(Loader(split, 4, workers=workers))


def test_draws_of_streams_are_made_as_they_are_needed() -> None:
    """An epoch of a million images must not begin with a million draws."""
    of = loader("sizes", 2)
    made = []
    real = of._draw
    of._draw = lambda *args: made.append(args) or real(*args)  # type: ignore[func-returns-value,method-assign]
    steps = of.epoch(0)
    next(steps)
    assert len(made) <= 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 0}, "batch_size=0 is not allowed; batch_size >= 1"),
        ({"seed": -1}, "seed=-1 is not allowed"),
        ({"workers": -1}, "workers=-1 is not allowed"),
        ({"rank": 2, "world": 2}, "rank=2 is not allowed; 0 <= rank < world=2"),
        ({"rows": np.array([], dtype=int)}, "there are no rows to give"),
        ({"rows": np.array([N])}, f"rows are 0 to {N - 1}, not {N} to {N}"),
        ({"augment": augmentation("resized_crop(4)")}, "cuts images of different sizes; these have one size"),
        ({"split": FEATURES, "augment": augmentation("flip")}, "is for images; these inputs have shape (4,)"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        Loader(**({"split": MEMORY, "batch_size": 4} | options))
    assert says in str(caught.value)


def test_mistakes_that_show_later() -> None:
    for epoch, start in ((-1, 0), (0, -1), (0, 7)):
        with pytest.raises(ValueError, match="is not allowed; epoch >= 0, 0 <= start <= 6"):
            batches(Loader(MEMORY, 4), epoch, start)
    features = FEATURES.inputs
    assert features is not None
    split = Split(LABELS, read=features.__getitem__)
    with pytest.raises(ValueError, match=r"augment='flip' is for images; these inputs have shape \(4,\)"):
        batches(Loader(split, 4, augment=augmentation("flip")))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("world", [1, 2])
def test_several_views_are_several_augmentations_of_the_same_examples(case: str, world: int) -> None:
    for rank in range(world):
        shared = {"rank": rank, "world": world}
        for (one, rows), (three, same_rows) in zip(
            batches(loader(case, **shared), 2), batches(loader(case, views=3, **shared), 2), strict=True
        ):
            assert torch.equal(rows, same_rows)
            assert len(three) == 3 * len(rows)
            first, second, third = three.unflatten(0, (3, len(rows))).unbind(0)
            assert torch.equal(first, one)
            if len(rows) > 1 and case in ("memory", "sizes"):
                assert not torch.equal(first, second)
                assert not torch.equal(second, third)
            if case == "features":
                assert torch.equal(first, third)
    whole = batches(loader(case, views=2), 1)
    resumed = batches(loader(case, views=2), 1, start=2)
    assert same(whole[2:], resumed)


@dataclass(frozen=True)
class Flaky:
    """Fails at every seventh reading, so that one view of an example may be there without the other."""

    count: list[int]

    def __call__(self, row: int) -> Tensor:
        self.count[0] += 1
        if self.count[0] % 7 == 0:
            raise BadImage(f"{row}.png", "out of reach")
        return IMAGES[row]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_an_example_of_which_one_view_is_missing_is_left_out() -> None:
    split = Split(LABELS, read=Flaky([0]), on_bad_image="skip")
    seen = 0
    for x, rows in Loader(split, 5, views=2, augment=augmentation("none"), seed=7).epoch(0):
        for view in x.unflatten(0, (2, len(rows))):
            assert torch.equal(view, IMAGES[rows].float() / 255)
        seen += len(rows)
    assert seen == N - 2 * N // 7
