"""The plain convolutional networks of the label-noise papers."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

WIDTHS = {
    # Blocks of convolutions, each block closed by a pooling; then the hidden layer.
    "cnn8": (((64, 64), (128, 128), (196, 196)), 256),
    "cnn4": (((32,), (64,)), 128),
}


class CNN(nn.Module):
    """Blocks of 3x3 convolutions with batch normalisation, one hidden layer, the classes.

    >>> import torch
    >>> CNN((1, 28, 28), 10, *WIDTHS["cnn4"])(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, in_shape: tuple[int, ...], num_classes: int, blocks: Sequence[Sequence[int]], hidden: int
    ) -> None:
        super().__init__()
        inputs, height, width = in_shape
        layers: list[nn.Module] = []
        for block in blocks:
            for outputs in block:
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
                inputs = outputs
            # The largest of four, then ReLU, is the same as the other way round and touches a quarter of the values.
            layers.insert(-1, nn.MaxPool2d(2))
            height, width = height // 2, width // 2
        layers += [nn.Flatten(), nn.Linear(inputs * height * width, hidden)]
        layers += [nn.BatchNorm1d(hidden), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits of images ``(N, C, H, W)``."""
        out: Tensor = self.head(self.body(x))
        return out
