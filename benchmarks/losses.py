"""How fast the losses are, forward and backward: ratios to ``F.cross_entropy``, measured in one run.

    python benchmarks/losses.py                 # the table of the README, a few minutes
    python benchmarks/losses.py --quick         # fewer repetitions
    python benchmarks/losses.py --cpu           # CPU time of one thread, for a machine that has other things to do
    python benchmarks/losses.py vce "nce + 10*vce(a=4)" --shape 4096x1000

Every loss takes its turn in every round (one step to settle the allocator, one step that is timed), and medians are
compared, so that whatever else the machine does meets all alike. "one-hot way" is the loss written as papers write
it: softmax, one-hot matrix, clamp. "peak memory" is what a forward and backward pass allocates on top of the logits,
in matrices of the logits' size.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

import unswayed

SHAPES = ((128, 10), (128, 100), (4096, 1000), (2048, 32000))
SPECS = ("ce", "gce(q=0.7)", "agce(a=0.6, q=0.6)", "vce(a=4)", "vel(a=2)", "vsl(a=0.28)", "nce", "nce + 10*vce(a=4)")
Call = Callable[[Tensor, Tensor], Tensor]


def one_hot(spec: str) -> Call | None:
    """Return the loss as papers write it, or None where this file has no such version."""

    def parts(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        label = F.one_hot(target, logits.shape[1]).float()
        p = F.softmax(logits, dim=1).clamp(min=1e-7, max=1.0)
        return label, p

    def of_u(formula: Callable[[Tensor], Tensor]) -> Call:
        def call(logits: Tensor, target: Tensor) -> Tensor:
            label, p = parts(logits, target)
            return formula(torch.sum(label * p, dim=1)).mean()

        return call

    def nce(logits: Tensor, target: Tensor) -> Tensor:
        log_p = F.log_softmax(logits, dim=1)
        label = F.one_hot(target, logits.shape[1]).float()
        return (-torch.sum(label * log_p, dim=1) / -log_p.sum(dim=1)).mean()

    vce = of_u(lambda u: -torch.log(u + 4))
    log2 = torch.log(torch.tensor(2.0))
    return {
        "ce": of_u(lambda u: -torch.log(u)),
        "gce(q=0.7)": of_u(lambda u: (1 - u**0.7) / 0.7),
        "agce(a=0.6, q=0.6)": of_u(lambda u: (1.6**0.6 - (0.6 + u) ** 0.6) / 0.6),
        "vce(a=4)": vce,
        "vel(a=2)": of_u(lambda u: 2 ** (-u)),
        "vsl(a=0.28)": of_u(lambda u: (torch.log(0.28 * u + 1) - log2) ** 2 / 0.28),
        "nce": nce,
        "nce + 10*vce(a=4)": lambda logits, target: nce(logits, target) + 10 * vce(logits, target),
    }.get(spec)


def step(call: Call, logits: Tensor, target: Tensor) -> None:
    """Run one forward and backward pass."""
    logits.grad = None
    call(logits, target).backward()


def medians(
    calls: dict[str, Call], logits: Tensor, target: Tensor, rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the median seconds of each, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name, call in calls.items():
            # The memory that the call before gave back to the system, or kept, must not be this one's affair.
            step(call, logits, target)
            start = clock()
            step(call, logits, target)
            if turn >= 2:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_matrices(call: Call, logits: Tensor, target: Tensor) -> float:
    """Return the peak of what one step holds at once, the gradient included, in matrices of the logits' size."""
    step(call, logits, target)
    logits.grad = None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        step(call, logits, target)
    held = peak = 0
    events = profiler.profiler.kineto_results.events()
    for event in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / (logits.numel() * logits.element_size())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--shape", action="append", help="like 4096x1000; may be repeated")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="CPU time of one thread instead of time")
    args = parser.parse_args()
    if args.cpu:
        torch.set_num_threads(1)
    kind = "CPU time" if args.cpu else "time"
    shapes = [tuple(map(int, s.split("x"))) for s in args.shape] if args.shape else SHAPES
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, fp32, forward and backward, median {kind}\n")
    print("| loss | logits | ms | x F.cross_entropy | one-hot way, x | faster by | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for n, k in shapes:
        logits, target = torch.randn(n, k, requires_grad=True), torch.randint(k, (n,))
        calls: dict[str, Call] = {"torch": F.cross_entropy}
        for spec in args.specs:
            calls[spec] = unswayed.loss(spec)
            if (way := one_hot(spec)) is not None:
                calls[f"one-hot {spec}"] = way
        size = n * k
        rounds = (500 if size < 1e5 else 15 if size < 1e7 else 7) // (3 if args.quick else 1)
        taken = medians(calls, logits, target, rounds, time.process_time if args.cpu else time.perf_counter)
        base = taken["torch"]
        reference = peak_matrices(F.cross_entropy, logits, target)
        print(f"| F.cross_entropy | {n} x {k} | {base * 1e3:.3g} | 1 | | | {reference:.2f} |")
        for spec in args.specs:
            slow = taken.get(f"one-hot {spec}")
            versus = "| | " if slow is None else f"| {slow / base:.2f} | {slow / taken[spec]:.1f} "
            memory = peak_matrices(calls[spec], logits, target)
            ms, ratio = taken[spec] * 1e3, taken[spec] / base
            print(
                f"| {spec} | {n} x {k} | {ms:.3g} | {ratio:.2f} {versus}| {memory:.2f} ({reference:.2f}) |", flush=True
            )


if __name__ == "__main__":
    main()
