"""Fully connected networks, for features and for very small images."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import Tensor, nn


class MLP(nn.Module):
    """``depth`` hidden layers with ReLU, then the classes; with ``depth=0`` a linear classifier.

    >>> import torch
    >>> MLP((1, 8, 8), num_classes=10, hidden=32)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(self, in_shape: tuple[int, ...], num_classes: int, *, hidden: int = 512, depth: int = 1) -> None:
        super().__init__()
        widths = [math.prod(in_shape), *[hidden] * depth]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1], num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits of inputs of any shape."""
        out: Tensor = self.head(self.body(x))
        return out
