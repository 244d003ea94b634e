"""How long an estimate of noise takes with many classes, and in how much memory.

    OMP_NUM_THREADS=1 python benchmarks/estimate.py                      # 200,000 examples, 1,000 classes
    python benchmarks/estimate.py --examples 50000 --classes 10 100 5000

The probabilities are made up: float32, of a classifier that is wrong on some examples; 30 % of the labels are wrong.
"peak" is the most memory that the process held, the table of probabilities ("table") included, each size in a process
of its own; "dense" is what one transition matrix for each of the resamples would take.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from unswayed.noise import estimate, make


def table(n: int, k: int, true: np.ndarray) -> np.ndarray:
    """Return probabilities, made in place and in parts."""
    rng = np.random.default_rng(0)
    p = np.empty((n, k), np.float32)
    for at in range(0, n, 4096):
        part = p[at : at + 4096]
        rng.standard_normal(out=part, dtype=np.float32)
        part *= 1.6
        part[np.arange(len(part)), true[at : at + len(part)]] += 8
        np.exp(part, out=part)
        part /= part.sum(1, keepdims=True)
    return p


def one(n: int, k: int, resamples: int) -> None:
    """Measure one size, and print a line."""
    true = np.random.default_rng(1).integers(k, size=n)
    p, given = table(n, k, true), make("symmetric(0.3)", true, k).labels
    wall, processor = time.perf_counter(), time.process_time()
    found = estimate(given, p, resamples=resamples)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n:>9,} {k:>7,} {wall:>7.1f} {processor:>11.1f} {p.nbytes / 2**30:>10.2f} {peak:>9.2f} "
        f"{8 * k * k * resamples / 2**30:>10.2f} {(p.argmax(1) != true).mean():>9.3f} {found.rate:>9.4f} "
        f"[{found.low:.4f}, {found.high:.4f}]",
        flush=True,
    )


def main() -> None:
    """Print one line for each number of classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200_000)
    parser.add_argument("--classes", type=int, nargs="+", default=[1000])
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.examples, args.classes[0], args.resamples)
        return
    print(" examples classes  wall s processor s  table GiB  peak GiB  dense GiB  its errors  rate (true 0.3)")
    for k in args.classes:
        command = [sys.executable, __file__, "--one", "--examples", args.examples, "--classes", k]
        subprocess.run([*map(str, command), "--resamples", str(args.resamples)], check=True)


if __name__ == "__main__":
    main()
