"""The arithmetic of the network is chosen by what the hardware is fast at."""

import pytest
import torch
from torch import nn

from unswayed.training import precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "fp32")])
def test_auto_is_bf16_for_convolutions_where_it_is_native(
    native: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native, raising=False)
    assert precision.resolve("auto", nn.Sequential(nn.Conv2d(3, 4, 3)), CPU) == expected
    assert precision.resolve("auto", nn.Linear(3, 4), CPU) == "fp32"


def test_a_wish_is_a_wish() -> None:
    assert precision.resolve("bf16", nn.Linear(3, 4), CPU) == "bf16"
    assert precision.resolve("fp32", nn.Conv2d(3, 4, 3), CPU) == "fp32"


def test_a_torch_that_cannot_tell_means_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert not precision.fast_bf16(CPU)
    assert not precision.fast_bf16(torch.device("meta"))
