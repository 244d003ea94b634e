"""How fast many small models are trained at once, against one by one: ratios measured in one run, on one thread.

    python benchmarks/stacked.py                        # the table of docs/stacked.md, about two minutes
    python benchmarks/stacked.py --runs 8 --quick       # fewer

Each round trains all runs one by one and then stacked, and medians over the rounds are compared. "One by one" is the
faster of two: the plain loop below, as papers write it (modules, autograd, ``clip_grad_norm_``, torch's fused SGD;
inputs in memory), and ``unswayed.training.train``. Nothing is evaluated, so that training alone is timed. The runs
differ in seed and noise, and have one loss with as many parameters as there are runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import unswayed
from unswayed.data import Data, Split
from unswayed.training import Experiment, Recipe, experiment_of, train, train_stacked
from unswayed.training.run import make_noise

# Model, features, classes, batch; examples and epochs, so that a round takes seconds.
CASES = (
    ("linear", 64, 10, 64, 6400, 4),
    ("linear", 256, 10, 128, 12800, 2),
    ("linear", 256, 100, 512, 12800, 2),
    ("mlp(hidden=512, depth=1)", 256, 10, 128, 6400, 1),
)


def random_data(features: int, classes: int, n: int) -> Data:
    """Return random examples in clusters."""
    drawn = np.random.default_rng(0)
    labels = drawn.integers(0, classes, n)
    inputs = drawn.normal(size=(n, features)) + drawn.normal(size=(classes, features))[labels]
    split = Split(labels.astype(np.int64), torch.tensor(inputs, dtype=torch.float32))
    return Data("random", split, {}, classes, (features,), tuple(str(k) for k in range(classes)))


def plain(experiment: Experiment, data: Data) -> nn.Module:
    """Train one model as papers do."""
    recipe, x = experiment.recipe, data.train.inputs
    assert x is not None
    y = torch.tensor(make_noise(data, experiment.noise, experiment.seed).labels)
    model = unswayed.models.build(experiment.model, num_classes=data.num_classes, in_shape=data.in_shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=recipe.lr, momentum=recipe.momentum, fused=True)
    loss = unswayed.loss(experiment.loss)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(x)).split(recipe.batch_size):
            value = loss(model(x[batch]), y[batch])
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            optimizer.step()
            optimizer.zero_grad()
    return model


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes of the one thread's time, which other programs on the machine leave alone."""
    start = time.process_time()
    call()
    return time.process_time() - start


def calls(model: str, data: Data, recipe: Recipe, runs: int) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""
    noise = "symmetric(0.4)"
    specs = [f"vce(a={1 + i / 10})" for i in range(runs)]
    own = [experiment_of(model, data, spec, recipe, noise=noise, seed=i) for i, spec in enumerate(specs)]
    one = [experiment_of(model, data, e.loss, recipe, noise=noise, seed=e.seed, order_seed=0) for e in own]
    return {
        "plain loop": lambda: [plain(e, data) for e in own],
        "train()": lambda: [train(model, data, e.loss, recipe, noise=noise, seed=e.seed, device="cpu") for e in own],
        "own": lambda: train_stacked(own, data, device="cpu"),
        "one": lambda: train_stacked(one, data, device="cpu"),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--only", default="", help="cases whose text has this, like '256 to 100'")
    parser.add_argument("--quick", action="store_true", help="one round instead of three")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, runs: {args.runs}\n")
    print("| model | batch | one by one, runs/s | by | own orders, runs/s | x | one order, runs/s | x |")
    print("|---|---|---|---|---|---|---|---|")
    for model, features, classes, batch, n, epochs in CASES:
        title = f"{model}, {features} to {classes}"
        if args.only not in title:
            continue
        data = random_data(features, classes, n)
        recipe = Recipe(epochs=epochs, batch_size=batch, clip_norm=5)
        times: dict[str, list[float]] = {}
        for _ in range(1 if args.quick else 3):
            for name, call in calls(model, data, recipe, args.runs).items():
                times.setdefault(name, []).append(seconds(call))
        rate = {name: args.runs / statistics.median(values) for name, values in times.items()}
        by = max("plain loop", "train()", key=rate.__getitem__)
        stacked = " | ".join(f"{rate[name]:.1f} | {rate[name] / rate[by]:.1f}" for name in ("own", "one"))
        print(f"| {title} | {batch} | {rate[by]:.2f} | {by} | {stacked} |", flush=True)


if __name__ == "__main__":
    main()
