"""How fast instance noise is drawn, against a loop over the examples, and in how much memory; measured in one run.

    OMP_NUM_THREADS=1 python benchmarks/noise.py      # 50,000 random byte images 3 x 32 x 32, K = 10 and K = 100
    python benchmarks/noise.py "instance(0.2)" "instance(0.4, kind=projection)" --classes 10

The plain version goes about it as the authors' code does, example by example, in torch: project with the weights of
the example's class, softmax over the other classes, mix with the chance to stay right, and draw with numpy's choice. It
is timed on some of the examples and scaled to all of them; its weights, which it draws once, are timed whole. "bare" is
the same loop in numpy, without whatever can be left out of it. All take turns in every round, and the fastest round of
each counts, in seconds of processor time, in which other work on the machine does not count. "memory" is the peak of
what is allocated on top of the images, from tracemalloc, which numpy reports to, in a round of its own.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from unswayed.noise import NoiseSpec, make

MEAN, STD = 120.0, 70.0


def rates(spec: NoiseSpec, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return each example's chance of a wrong label."""
    if spec.values["kind"] == "projection":
        return np.full(n, spec.values["rate"])
    drawn = rng.normal(spec.values["rate"], 0.1, 2 * n)
    return drawn[(drawn >= 0) & (drawn <= 1)][:n]


def plain(spec: NoiseSpec, labels: np.ndarray, images: np.ndarray, classes: int, some: int) -> float:
    """Return the seconds that the authors' loop takes for all examples, timed on ``some`` of them."""
    start, rng = time.process_time(), np.random.default_rng(0)
    weights = torch.randn(classes, images[0].size, classes)
    flip = torch.from_numpy(rates(spec, len(labels), rng)).float()
    pixels, targets = torch.from_numpy(images), torch.from_numpy(labels)
    fixed = time.process_time() - start
    start, rows = time.process_time(), []
    for i in range(some):
        x, y = pixels[i].float(), targets[i]
        if spec.values["scaling"] == "standardised":
            x = (x - MEAN) / STD
        scores = x.view(1, -1).mm(weights[y]).squeeze(0)
        scores[y] = -torch.inf
        row = flip[i] * F.softmax(scores, dim=0)
        row[y] += 1 - flip[i]
        rows.append(row)
    table, every = torch.stack(rows).double().numpy(), list(range(classes))
    np.array([np.random.choice(every, p=row / row.sum()) for row in table])  # noqa: NPY002
    return fixed + (time.process_time() - start) * len(labels) / some


def bare(spec: NoiseSpec, labels: np.ndarray, images: np.ndarray, classes: int, some: int) -> float:
    """Return the seconds of a loop that does as little as it can for an example."""
    start, rng = time.process_time(), np.random.default_rng(0)
    flat, noisy = images.reshape(len(images), -1), labels.copy()
    weights = rng.standard_normal((classes, flat.shape[1], classes), dtype=np.float32)
    flip, u = rates(spec, len(labels), rng), rng.random(len(labels))
    fixed = time.process_time() - start
    start = time.process_time()
    for i in range(some):
        y, x = labels[i], flat[i].astype(np.float32)
        if spec.values["scaling"] == "standardised":
            x = (x - np.float32(MEAN)) / np.float32(STD)
        scores = x @ weights[y]
        scores[y] = -np.inf
        p = np.exp(scores - scores.max(), dtype=np.float64)
        p *= flip[i] / p.sum()
        p[y] = 1 - flip[i]
        noisy[i] = min(np.searchsorted(p.cumsum(), u[i], side="right"), classes - 1)
    return fixed + (time.process_time() - start) * len(labels) / some


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of processor time that a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    """Print one line for each spec and number of classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", default=["instance(0.2)", "instance(0.4)"])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--examples", type=int, default=50000)
    parser.add_argument("--some", type=int, default=2500, help="examples that the plain version is timed on")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (args.examples, 3, 32, 32), dtype=np.uint8)
    print(f"{args.examples:,} images, {images.nbytes / 2**20:.0f} MiB; loops timed on {args.some:,} and scaled")
    titles = ("spec", "K", "plain s", "bare s", "here s", "plain/here", "bare/here", "memory MiB")
    print("{:<38} {:>3} {:>8} {:>7} {:>7} {:>11} {:>10} {:>11}".format(*titles))
    for classes in args.classes:
        labels = rng.permutation(np.arange(args.examples) % classes)
        for spec in map(NoiseSpec.parse, args.specs):
            loops: dict[str, list[float]] = {"plain": [], "bare": []}
            here = []
            for _ in range(args.rounds):
                for name, loop in (("plain", plain), ("bare", bare)):
                    loops[name].append(loop(spec, labels, images, classes, args.some))
                here.append(timed(lambda: make(spec, labels, classes, features=images)))  # noqa: B023
            tracemalloc.start()
            make(spec, labels, classes, features=images)
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            slow, spare, fast = min(loops["plain"]), min(loops["bare"]), min(here)
            print(
                f"{spec!s:<38} {classes:>3} {slow:>8.2f} {spare:>7.2f} {fast:>7.3f} {slow / fast:>11.1f} "
                f"{spare / fast:>10.1f} {peak:>11.0f}"
            )


if __name__ == "__main__":
    main()
