"""Residual networks: one definition, three kinds of blocks, two stems.

Layers have the names that torchvision gives them, but for the last one, ``head``.
"""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def _relu(x: Tensor) -> Tensor:
    # In place everywhere: what comes in is the output of a normalisation or a sum, which no backward pass reads.
    return F.relu(x, inplace=True)


class _Block(nn.Module):
    expansion: ClassVar[int] = 1
    preactivated: ClassVar[bool] = False

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            project = _conv(inputs, outputs, 1, stride)
            self.downsample = nn.Sequential(project, *[] if self.preactivated else [nn.BatchNorm2d(outputs)])

    def shortcut(self, x: Tensor) -> Tensor:
        return x if self.downsample is None else self.downsample(x)


class Basic(_Block):
    """Two 3x3 convolutions."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1, self.bn1 = _conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        out = _relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return _relu(out)


class Bottleneck(_Block):
    """A 3x3 convolution between two 1x1 ones; it has the stride, as in torchvision."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1, self.bn1 = _conv(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        out = _relu(self.bn1(self.conv1(x)))
        out = _relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += self.shortcut(x)
        return _relu(out)


class PreActivated(_Block):
    """Normalisation and ReLU before each of two 3x3 convolutions; the shortcut starts after the first ReLU."""

    preactivated = True

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), _conv(inputs, width, 3, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(width), _conv(width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        ready = _relu(self.bn1(x))
        out: Tensor = self.conv2(_relu(self.bn2(self.conv1(ready))))
        out += x if self.downsample is None else self.downsample(ready)
        return out


BLOCKS: dict[str, tuple[type[_Block], tuple[int, int, int, int]]] = {
    "resnet18": (Basic, (2, 2, 2, 2)),
    "resnet34": (Basic, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
    # As DivideMix has it: the stem is normalised too, and nothing is after the last block.
    "preact_resnet18": (PreActivated, (2, 2, 2, 2)),
}


class ResNet(nn.Module):
    """Four stages of residual blocks, the mean over positions, the classes.

    ``stem`` is ``"cifar"`` (a 3x3 convolution that keeps the size) or ``"imagenet"`` (7x7 and pooling: a quarter).

    >>> import torch
    >>> ResNet((3, 32, 32), 10, *BLOCKS["resnet18"])(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(
        self,
        in_shape: tuple[int, ...],
        num_classes: int,
        block: type[_Block],
        depths: tuple[int, int, int, int],
        stem: str = "cifar",
    ) -> None:
        super().__init__()
        self.large = stem == "imagenet"
        self.conv1 = _conv(in_shape[0], 64, 7, 2) if self.large else _conv(in_shape[0], 64, 3)
        self.bn1 = nn.BatchNorm2d(64)
        inputs, stages = 64, []
        for stage, depth in enumerate(depths):
            width, blocks = 64 << stage, []
            for place in range(depth):
                blocks.append(block(inputs, width, 2 if stage and not place else 1))
                inputs = width * block.expansion
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.head = nn.Linear(inputs, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits of images ``(N, C, H, W)``."""
        out = self.bn1(self.conv1(x))
        if self.large:
            out = F.max_pool2d(out, 3, 2, padding=1)
        out = _relu(out)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            out = stage(out)
        logits: Tensor = self.head(out.mean((2, 3)))
        return logits
