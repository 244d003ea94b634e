"""Times of loading and of augmentation, each beside something of the same run.

    python benchmarks/data.py                      augmentation of a batch of 128 images of 3 x 32 x 32
    python benchmarks/data.py --cifar10 FOLDER     also CIFAR-10 from FOLDER, decoded and from its cache

Times are the best of several. With other work on the machine, trust the ratios.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch

from unswayed.data import Loader, Split, augmentation, load
from unswayed.models import build


def best(call: Callable[[], object], times: int) -> float:
    """Return the seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def one_by_one(images: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Crop, flip and normalise one image after the other, as transforms of single images do."""
    mean, std = torch.tensor([0.5, 0.5, 0.5]).view(3, 1, 1), torch.tensor([0.25, 0.25, 0.25]).view(3, 1, 1)
    done = []
    for image in images:
        down, right = rng.integers(0, 9, 2)
        framed = torch.nn.functional.pad(image, (4, 4, 4, 4))[:, down : down + 32, right : right + 32]
        framed = framed.flip(2) if rng.random() < 0.5 else framed
        done.append((framed.float() / 255 - mean) / std)
    return torch.stack(done)


def augmentations(size: int = 128, images: int = 8192) -> None:
    """Print the time of a batch for several augmentations, and those it is compared with."""
    x = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8)
    split = Split(np.zeros(images, dtype=np.int64), x)
    scale = {"mean": (0.5,) * 3, "std": (0.25,) * 3}

    def step(spec: str) -> Callable[[], object]:
        loader = Loader(split, size, augment=augmentation(spec, **scale))
        batches = itertools.chain.from_iterable(loader.epoch(epoch) for epoch in itertools.count())
        return lambda: next(batches)

    rng = np.random.default_rng(0)
    net = build("cnn8", num_classes=10, in_shape=(3, 32, 32)).to(memory_format=torch.channels_last)
    batch = next(Loader(split, size).epoch(0))[0]
    rows = {
        "gather and normalise": best(step("none"), 200),
        "+ flip": best(step("flip"), 200),
        "+ crop(4) + flip": best(step("crop(4) + flip"), 200),
        "+ crop(4) + flip + rotate(20)": best(step("crop(4) + flip + rotate(20)"), 200),
        "crop, flip, normalise image by image": best(lambda: one_by_one(x[:size], rng), 30),
        "cnn8, forward and backward": best(lambda: net(batch).sum().backward(), 3),
    }
    unit = rows["+ crop(4) + flip"]
    print(f"batches of {size} images of 3 x 32 x 32, {torch.get_num_threads()} threads")
    for name, seconds in rows.items():
        print(f"  {name:<38} {1000 * seconds:8.2f} ms {size / seconds:12,.0f} images/s {seconds / unit:8.2f} times")


def cifar10(folder: str) -> None:
    """Print the time to load CIFAR-10 without and with its cache."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["UNSWAYED_CACHE"] = cache
        for name in ("first time (decoded)", "from the cache"):
            start = time.perf_counter(), time.process_time()
            data = load("cifar10", folder)
            print(f"  {name:<38} {time.perf_counter() - start[0]:8.2f} s, CPU {time.process_time() - start[1]:.2f} s")
        print(f"  {data.layout}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", metavar="FOLDER")
    given = parser.parse_args()
    augmentations()
    if given.cifar10:
        cifar10(given.cifar10)
