"""What OGC costs: its mixture fit and its bookkeeping, as shares of a training step of cnn8.

    python benchmarks/ogc.py                    # batches of 128 made-up images of CIFAR-10's shape, about a minute
    python benchmarks/ogc.py --steps 5          # shorter
    python benchmarks/ogc.py --device cuda

All is timed within one run, in turns, and medians are compared: a step of the network with cross entropy (forward,
loss, backward, SGD), a call of each loss with its backward pass, and a fit of the mixture with the search for the
threshold, of which there is one every 32 steps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import unswayed
from unswayed.losses.adaptive import clip_point
from unswayed.losses.mixture import fit
from unswayed.models import build
from unswayed.training.precision import resolve


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="how often each is timed")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(0)

    net = build("cnn8", num_classes=10, in_shape=(3, 32, 32), seed=0).to(device, memory_format=torch.channels_last)
    bf16 = resolve("auto", net, device) == "bf16"
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(128, 3, 32, 32, device=device).contiguous(memory_format=torch.channels_last)
    target = torch.randint(10, (128,), device=device)
    logits = 3 * torch.randn(128, 10, device=device)
    ce, ogc = unswayed.loss("ce"), unswayed.loss("ogc(budget=20)").to(device)
    losses = torch.cat([torch.rand(2500).double() ** 4, 3 + torch.randn(1596).double()]).clamp(1e-7, 16).numpy()

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            out = net(x)
        ce(out.float(), target).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        optimizer.step()
        optimizer.zero_grad()

    def call(loss: unswayed.Loss) -> Callable[[], None]:
        def act() -> None:
            # So that no call falls on a fit, which is timed alone.
            if loss is ogc:
                ogc._steps = 0
            loss(logits.clone().requires_grad_(), target, lr=0.1).backward()

        return act

    def refit() -> None:
        clip_point(ce, *fit(losses), 3.0)

    for _ in range(40):
        call(ogc)()
    for act in (step, call(ce), refit):
        act()
    spent: dict[str, list[float]] = {"step": [], "ce": [], "ogc": [], "fit": []}
    for _ in range(options.steps):
        spent["step"].append(seconds(step, device))
        for name, act in (("ce", call(ce)), ("ogc", call(ogc)), ("fit", refit)):
            spent[name].append(seconds(act, device, times=10))
    medians = {name: statistics.median(values) for name, values in spent.items()}
    kept = (medians["ogc"] - medians["ce"]) / medians["step"]
    fitted = medians["fit"] / ogc.every / medians["step"]
    print(f"{device}, {torch.get_num_threads()} threads, {'bf16' if bf16 else 'fp32'}, batches of 128")
    for name, value in medians.items():
        print(f"  {name:<6}{1000 * value:9.3f} ms")
    print(
        f"a fit every {ogc.every} steps is {100 * fitted:.3f} % of the steps; the rest of the loss {100 * kept:.3f} %"
    )


def seconds(act: Callable[[], None], device: torch.device, times: int = 1) -> float:
    """Return how long one call takes."""
    started = time.perf_counter()
    for _ in range(times):
        act()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / times


if __name__ == "__main__":
    main()
