"""Augmentations of batches against the same done to one image at a time, in plain words."""

from __future__ import annotations

import colorsys
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unswayed.data import augmentation
from unswayed.data.augment import STEPS, Draw, Frame, center_crop
from unswayed.spec import SpecError


def draw(n: int, epoch: int = 0, seed: int = 0, index: Tensor | None = None) -> Draw:
    generator = torch.Generator().manual_seed(1000 * seed + epoch)
    return Draw(torch.arange(n) if index is None else index, epoch, seed, generator)


def images(n: int, channels: int = 3, height: int = 7, width: int = 9, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (n, channels, height, width), dtype=torch.uint8, generator=generator)


def step(spec: str, n: int, **options: Any) -> tuple[Any, Tensor]:
    (only,) = augmentation(spec).steps
    return only, only.draw(draw(n, **options))


def changed(spec: str, x: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """Apply a single step to images (N, C, H, W); return them as (N, H, W, C), and what was drawn."""
    only, drawn = step(spec, len(x), **options)
    return only(x.permute(0, 2, 3, 1).contiguous(), drawn), drawn


SHAPES = {
    "n": st.integers(0, 5),
    "channels": st.sampled_from([1, 3, 4]),
    "height": st.integers(1, 8),
    "seed": st.integers(0, 99),
}


@settings(max_examples=40)
@given(pad=st.integers(1, 5), width=st.integers(1, 8), **SHAPES)
def test_crop(pad: int, n: int, channels: int, height: int, width: int, seed: int) -> None:
    x = images(n, channels, height, width, seed)
    out, drawn = changed(f"crop({pad})", x, seed=seed)
    assert out.dtype == torch.uint8
    for image, result, (down, right) in zip(x.permute(0, 2, 3, 1).numpy(), out.numpy(), drawn.tolist()):
        framed = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
        assert np.array_equal(result, framed[down : down + height, right : right + width])


@settings(max_examples=20)
@given(width=st.integers(1, 8), **SHAPES)
def test_flip(n: int, channels: int, height: int, width: int, seed: int) -> None:
    x = images(n, channels, height, width, seed)
    for spec in ("flip", "alternating_flip"):
        out, drawn = changed(spec, x, seed=seed)
        for image, result, (flipped,) in zip(x.permute(0, 2, 3, 1).numpy(), out.numpy(), drawn.tolist()):
            assert np.array_equal(result, image[:, ::-1] if flipped else image)


@settings(max_examples=15)
@given(degrees=st.floats(0, 180), width=st.integers(1, 8), **SHAPES)
def test_rotate(degrees: float, n: int, channels: int, height: int, width: int, seed: int) -> None:
    x = images(n, channels, height, width, seed)
    out, drawn = changed(f"rotate({degrees})", x, seed=seed)
    assert float(drawn.abs().max() if n else 0) <= math.radians(degrees) + 1e-6
    for image, result, (angle,) in zip(x.permute(0, 2, 3, 1).numpy(), out.numpy(), drawn.double().tolist()):
        for i in range(height):
            for j in range(width):
                across, down = j - (width - 1) / 2, i - (height - 1) / 2
                column = math.cos(angle) * across - math.sin(angle) * down + (width - 1) / 2
                row = math.sin(angle) * across + math.cos(angle) * down + (height - 1) / 2
                if min(abs(column % 1 - 0.5), abs(row % 1 - 0.5)) < 1e-4:
                    continue  # between two pixels, either is the nearest
                row, column = round(row), round(column)
                inside = 0 <= row < height and 0 <= column < width
                assert np.array_equal(result[i, j], image[row, column] if inside else np.zeros(channels))


@settings(max_examples=30)
@given(size=st.integers(1, 9), width=st.integers(1, 8), **SHAPES)
def test_cutout(size: int, n: int, channels: int, height: int, width: int, seed: int) -> None:
    x = images(n, channels, height, width, seed)
    out, drawn = changed(f"cutout({size})", x, seed=seed)
    for image, result, (down, right) in zip(x.permute(0, 2, 3, 1).numpy(), out.numpy(), drawn.tolist()):
        top, left = int(down * height) - size // 2, int(right * width) - size // 2
        expected = image.copy()
        expected[max(top, 0) : max(top + size, 0), max(left, 0) : max(left + size, 0)] = 0
        assert np.array_equal(result, expected)


def jittered(image: np.ndarray, amounts: list[float], order: tuple[int, ...]) -> np.ndarray:
    """One image (H, W, 3) with values from 0 to 1: brightness, contrast, saturation, hue, in the order given."""

    def grey(pixels: np.ndarray) -> np.ndarray:
        return pixels @ [0.299, 0.587, 0.114]

    for which in order:
        amount = amounts[which]
        if which == 0:
            image = image * amount
        elif which == 1:
            image = grey(image).mean() * (1 - amount) + image * amount
        elif which == 2:
            image = grey(image)[..., None] * (1 - amount) + image * amount
        else:
            hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in image.reshape(-1, 3)]
            rgb = [colorsys.hsv_to_rgb((h + amount) % 1, s, v) for h, s, v in hsv]
            image = np.array(rgb).reshape(image.shape)
        image = image.clip(0, 1)
    return image


def test_color_jitter() -> None:
    x = images(6)
    orders = set()
    for epoch in range(12):
        out, drawn = changed("color_jitter(0.4, 0.3, 0.5, 0.2)", x, epoch=epoch)
        (order,) = {STEPS["color_jitter"]._ORDERS[int(row[4])] for row in drawn}
        orders.add(order)
        low, high = torch.tensor([0.6, 0.7, 0.5, -0.2]), torch.tensor([1.4, 1.3, 1.5, 0.2])
        assert bool(((drawn[:, :4] >= low) & (drawn[:, :4] <= high)).all())
        for image, result, row in zip(x.permute(0, 2, 3, 1).numpy() / 255, out, drawn.tolist()):
            assert np.allclose(result, jittered(image, row[:4], order), atol=2e-5)
    assert len(orders) > 6
    grey, _ = changed("color_jitter(0.4, 0.3, 0.5, 0.2)", images(3, channels=1))
    assert grey.shape == (3, 7, 9, 1)
    with pytest.raises(ValueError, match="images with 1 or 3 channels, not 4"):
        changed("color_jitter(0.1)", images(1, channels=4))


def test_crops_are_uniform() -> None:
    n = 20000
    _, drawn = step("crop(2)", n)
    counts = torch.bincount(drawn[:, 0] * 5 + drawn[:, 1], minlength=25)
    assert len(counts) == 25
    # 25 places with 800 each; five standard deviations.
    assert bool(((counts - n / 25).abs() < 5 * math.sqrt(n / 25)).all())


def test_half_is_flipped() -> None:
    n = 20000
    for spec in ("flip", "alternating_flip"):
        for seed in range(3):
            _, drawn = step(spec, n, seed=seed)
            assert abs(float(drawn.float().mean()) - 0.5) < 5 * 0.5 / math.sqrt(n)
    _, first = step("flip", n)
    _, second = step("flip", n, epoch=1)
    assert abs(float((first == second).float().mean()) - 0.5) < 0.02


def test_alternating_flips_turn_over_each_epoch_whatever_the_batch() -> None:
    index = torch.randperm(1000, generator=torch.Generator().manual_seed(0))
    _, first = step("alternating_flip", 1000, index=index)
    for epoch in range(1, 5):
        _, now = step("alternating_flip", 1000, epoch=epoch, index=index)
        assert torch.equal(now, first if epoch % 2 == 0 else ~first)
    _, part = step("alternating_flip", 10, index=index[:10])
    assert torch.equal(part, first[:10])
    _, other = step("alternating_flip", 1000, seed=1, index=index)
    assert 0.4 < float((other == first).float().mean()) < 0.6


def test_batches_come_out_normalised_float_and_channels_last() -> None:
    x, mean, std = images(5), (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    whole = augmentation("crop(1) + flip + cutout(3)", mean=mean, std=std)
    drawn = whole.draw(draw(5))
    out = whole(x, drawn)
    assert out.dtype == torch.float32
    assert out.is_contiguous(memory_format=torch.channels_last)
    expected = x.permute(0, 2, 3, 1).contiguous()
    for each, numbers in zip(whole.steps[:2], drawn):
        expected = each(expected, numbers)
    expected = (expected.float() / 255 - torch.tensor(mean)) / torch.tensor(std)
    # What is cut out has the mean colour: 0 after normalisation.
    expected = whole.steps[2](expected, drawn[2])
    assert torch.allclose(out, expected.permute(0, 3, 1, 2), atol=1e-6)
    plain = augmentation("none", mean=mean, std=std)(x.float() / 255)
    assert torch.allclose(plain, augmentation("none", mean=mean, std=std)(x), atol=1e-6)
    assert torch.allclose(augmentation("none")(x), x.float() / 255)
    with pytest.raises(ValueError, match="mean and std are of 3 channels, but the images have 1"):
        augmentation("none", mean=mean, std=std)(images(1, channels=1))


def test_cutout_comes_last_wherever_it_is_written() -> None:
    assert [type(each).__name__ for each in augmentation("cutout(2) + crop(1) + flip").steps] == [
        "Crop",
        "Flip",
        "Cutout",
    ]


def published_area(rng: np.random.Generator, height: int, width: int) -> float:
    """RandomResizedCrop: the share of the area that it takes."""
    for _ in range(10):
        area, shape = rng.uniform(0.08, 1) * height * width, math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < w <= width and 0 < h <= height:
            return w * h / (height * width)
    return 1.0


def test_resized_crop_takes_a_part_of_the_published_size_and_shape() -> None:
    frame = augmentation("resized_crop(32)").frame
    assert isinstance(frame, Frame)
    # Each pixel tells where it is, so that the result tells which part it is of.
    height, width, n = 200, 160, 600
    ramps = torch.stack([torch.arange(height)[:, None].expand(-1, width), torch.arange(width).expand(height, -1)])
    areas = []
    for numbers in frame.draw(draw(n)):
        out = frame.frame(ramps.to(torch.uint8), numbers).double()
        down, right = out[0].mean(1), out[1].mean(0)
        tall, wide = 2 * float(down[24] - down[8]), 2 * float(right[24] - right[8])
        areas.append(tall * wide / (height * width))
        assert 0.7 < wide / tall < 1.43
    rng = np.random.default_rng(0)
    expected = [published_area(rng, height, width) for _ in range(20000)]
    error = 5 * np.std(expected) / math.sqrt(n)
    assert abs(np.mean(areas) - np.mean(expected)) < error
    assert np.quantile(areas, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(expected, [0.1, 0.5, 0.9]), abs=0.08)
    # Where no part fits, the middle.
    flat = frame.frame(ramps[:, :2].to(torch.uint8), torch.full((22,), 0.999))
    assert flat.shape == (2, 32, 32)


def test_random_crop_and_the_middle() -> None:
    frame = augmentation("random_crop(6, resize=8)").frame
    assert isinstance(frame, Frame)
    image = images(1, height=8, width=8)[0]
    seen = set()
    for numbers in frame.draw(draw(200)):
        out = frame.frame(image, numbers)
        (place,) = [(i, j) for i in range(3) for j in range(3) if torch.equal(out, image[:, i : i + 6, j : j + 6])]
        seen.add(place)
    assert len(seen) == 9
    assert torch.equal(center_crop(image, 8), image)
    # 8/7 of 7 is 8: nothing is scaled.
    assert torch.equal(center_crop(image, 7), image[:, :7, :7])
    assert center_crop(images(1, height=500, width=300)[0], 224).shape == (3, 224, 224)
    assert center_crop(images(1, height=3, width=50)[0], 20).shape == (3, 20, 20)


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        ("none", "none"),
        ("Crop(4)+FLIP", "crop(4) + flip"),
        ("crop(pad=4) + rotate(20) + cutout(8)", "crop(4) + rotate(20) + cutout(8)"),
        ("resized_crop(224) + flip", "resized_crop(224) + flip"),
        ("random_crop(224)", "random_crop(size=224, resize=256)"),
        ("color_jitter(0.4)", "color_jitter(brightness=0.4, contrast=0, saturation=0, hue=0)"),
    ],
)
def test_specs_read_back(spec: str, written: str) -> None:
    assert str(augmentation(spec)) == written
    assert str(augmentation(written)) == written


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("crop", "crop needs pad"),
        ("crop(0)", "pad=0 is not allowed; pad >= 1"),
        ("flop", "unknown augmentation 'flop'; did you mean 'flip'?"),
        ("none + flip", "none stands alone"),
        ("flip * 2", "the name of a augmentation is expected here"),
        ("random_crop(300)", "size=300 is more than resize=256"),
        ("rotate(200)", "0 <= degrees <= 180"),
    ],
)
def test_mistakes_in_specs(spec: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        augmentation(spec)
    assert says in str(caught.value)


def test_other_mistakes() -> None:
    with pytest.raises(ValueError, match="write one of them, and first"):
        augmentation("flip + resized_crop(8)")
    with pytest.raises(ValueError, match="belong together"):
        augmentation("none", mean=(0.5,))
    with pytest.raises(ValueError, match="std > 0"):
        augmentation("none", mean=(0.5,), std=(0.0,))
