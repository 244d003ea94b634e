"""How fast the training loop is, against a loop as papers write it, and what it spends outside the arithmetic.

    python benchmarks/training.py                          # cnn8 on made-up images of CIFAR-10's shape, some minutes
    python benchmarks/training.py --data cifar10=DIR       # on the real ones, which is as fast
    python benchmarks/training.py --turns 3 --steps 8      # shorter

The two loops take turns, a short epoch each, and medians are compared, so that whatever else the machine does meets
both alike. The plain loop is a PyTorch DataLoader that crops, flips and normalises image by image (PIL, as
torchvision does), a network in fp32, the loss as softmax, clamp and one-hot matrix, SGD, L1 over all parameters and
gradient clipping, as the recipe ``paper/cifar10`` has them. "outside" is the share of an epoch's time that is in none
of: the network's forward pass, the loss, the backward pass, the optimiser's step.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import unswayed
from unswayed.data import Data, Split, load
from unswayed.models import build
from unswayed.training import Progress, recipe, train

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Images(Dataset[tuple[Tensor, int]]):
    """What papers' code does for each image."""

    def __init__(self, pixels: Tensor, labels: Any) -> None:
        self.images = [Image.fromarray(image) for image in pixels.permute(0, 2, 3, 1).numpy()]
        self.labels = labels
        self.mean, self.std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        image = ImageOps.expand(self.images[row], 4)
        left, top = random.randint(0, 8), random.randint(0, 8)
        image = image.crop((left, top, left + 32, top + 32))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        x = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return x.sub_(self.mean).div_(self.std), int(self.labels[row])


def nce_and_vce(logits: Tensor, target: Tensor) -> Tensor:
    """Return NCE + 10 VCE(4), written out."""
    label = F.one_hot(target, logits.shape[1]).float()
    log_p = F.log_softmax(logits, dim=1)
    nce = -torch.sum(label * log_p, dim=1) / -log_p.sum(dim=1)
    p = F.softmax(logits, dim=1).clamp(min=1e-7, max=1.0)
    return nce.mean() + 10 * -torch.log(torch.sum(label * p, dim=1) + 4).mean()


def plain(model: nn.Module, loader: DataLoader[tuple[Tensor, int]]) -> Callable[[], float]:
    """Return what trains an epoch as papers do, and tells the seconds."""
    plan = recipe("paper/cifar10")
    optimizer = torch.optim.SGD(model.parameters(), lr=plan.lr, momentum=plan.momentum)

    def epoch() -> float:
        started = time.perf_counter()
        model.train()
        total, right = 0.0, 0
        for x, target in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = nce_and_vce(logits, target) + plan.l1 * sum(p.abs().sum() for p in model.parameters())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
            optimizer.step()
            total += loss.item()
            right += int((logits.argmax(1) == target).sum())
        return time.perf_counter() - started

    return epoch


@contextmanager
def timed(spent: Counter[str], *places: tuple[Any, str]) -> Iterator[None]:
    """Count the seconds spent in some methods."""
    before = [(owner, name, getattr(owner, name)) for owner, name in places]

    def wrap(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timer(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent[name] += time.perf_counter() - started

        return timer

    for owner, name, call in before:
        setattr(owner, name, wrap(name, call))
    try:
        yield
    finally:
        for owner, name, call in before:
            setattr(owner, name, call)


class Turns(Progress):
    """After each epoch of our loop, an epoch of the other."""

    def __init__(self, other: Callable[[], float], spent: Counter[str]) -> None:
        super().__init__(quiet=True)
        self.other, self.spent = other, spent
        self.ours: list[float] = []
        self.theirs: list[float] = []
        self.inside: list[float] = []

    def epoch(self, record: dict[str, Any], epochs: int) -> None:
        """Note the times."""
        self.ours.append(record["seconds"])
        self.inside.append(sum(self.spent.values()) / record["seconds"])
        self.theirs.append(self.other())
        self.spent.clear()


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="cifar10=DIR")
    parser.add_argument("--model", default="cnn8")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12, help="steps of 128 images a turn")
    parser.add_argument("--workers", type=int, default=0, help="of the plain loop's DataLoader")
    parser.add_argument("--precision", default="auto")
    args = parser.parse_args()
    n = 128 * args.steps
    if args.data:
        whole = load(*args.data.split("=")).train
        pixels, labels = whole.inputs[:n].contiguous(), whole.labels[:n]
    else:
        pixels, labels = torch.randint(256, (n, 3, 32, 32), dtype=torch.uint8), np.arange(n) % 10
    data = Data("cifar10", Split(labels, pixels), {}, 10, (3, 32, 32), tuple("abcdefghij"))
    nets = [build(args.model, num_classes=10, in_shape=(3, 32, 32)) for _ in range(2)]
    loader = DataLoader(Images(pixels, labels), 128, shuffle=True, num_workers=args.workers)
    spent: Counter[str] = Counter()
    turns = Turns(plain(nets[0], loader), spent)
    criterion = unswayed.loss("nce + 10*vce(a=4)")
    plan = recipe("paper/cifar10").replace(epochs=args.turns + 1, precision=args.precision)
    places = ((type(nets[1]), "forward"), (type(criterion), "forward"), (Fabric, "backward"), (torch.optim.SGD, "step"))
    with timed(spent, *places):
        train(nets[1], data, criterion, plan, noise="symmetric(0.8)", progress=turns)
    # The first turn is for warming up.
    ours, theirs, inside = (statistics.median(values[1:]) for values in (turns.ours, turns.theirs, turns.inside))
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {args.model}, {args.turns} x {args.steps} steps"
    )
    print(f"plain loop     {n / theirs:7.0f} images/s")
    print(f"unswayed       {n / ours:7.0f} images/s, {theirs / ours:.2f} times as many")
    print(f"outside forward, loss, backward and optimiser: {1 - inside:.1%} of the time")


if __name__ == "__main__":
    main()
