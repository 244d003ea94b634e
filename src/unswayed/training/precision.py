"""Which arithmetic the network is computed in; never the loss, which is always fp32."""

from __future__ import annotations

import torch
from torch import nn


def fast_bf16(device: torch.device) -> bool:
    """Whether bf16 is computed by instructions of its own on this device, and so faster than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        # Emulated bf16, as on older processors, is slower than fp32.
        native = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        return native is not None and bool(native())
    return False


def has_convolutions(model: nn.Module) -> bool:
    """Whether a network has two-dimensional convolutions, which decide about memory layout and precision."""
    return any(isinstance(module, nn.Conv2d) for module in model.modules())


def resolve(precision: str, model: nn.Module, device: torch.device) -> str:
    """Return ``fp32`` or ``bf16`` for a recipe's precision.

    >>> resolve("auto", nn.Linear(2, 2), torch.device("cpu"))
    'fp32'
    """
    if precision == "auto":
        return "bf16" if has_convolutions(model) and fast_bf16(device) else "fp32"
    return precision
