"""Losses under torch.compile, torch.func, copying, saving and moving."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import unswayed
from losses_cases import DEFAULTS, DEVICES, SPECS, build, draw, grad, labels
from unswayed import functional

WEIGHT = [1.0, 2.0, 0.5, 3.0]
SUMS = ["nce + 10*vce(a=4)", "ce - 0.5*mae(scale=1)"]
CORRECTIONS = ("forward_correction", "backward_correction")
"""Their functions check the matrix on every call, which no graph can hold; the modules compile."""


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()


def same_compiled(loss: Callable[[Tensor, Tensor], Tensor], backend: str) -> None:
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    logits, target = draw(6, 4, dtype=torch.float32), labels(6, classes=4)
    target[0] = -100
    torch.testing.assert_close(compiled(logits, target), loss(logits, target))
    torch.testing.assert_close(grad(lambda z: compiled(z, target), logits), grad(lambda z: loss(z, target), logits))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("spec", [*DEFAULTS.values(), *SUMS])
def test_modules_compile_as_one_graph(spec: str) -> None:
    same_compiled(build(spec, 4, weight=WEIGHT), "aot_eager")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in DEFAULTS if name not in CORRECTIONS])
def test_functions_compile_as_one_graph_where_losses_inside_are_built(name: str) -> None:
    twin: Callable[..., Tensor] = getattr(functional, name)
    inside = {"loss": unswayed.VCE(a=1)} if unswayed.info(name).wrapper else {}
    same_compiled(lambda logits, target: twin(logits, target, **inside), "aot_eager")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "spec",
    [
        "nce + 10*vce(a=4)",
        *(pytest.param(spec, marks=pytest.mark.slow) for spec in DEFAULTS.values()),
    ],
)
def test_modules_compile_with_inductor(spec: str) -> None:
    same_compiled(build(spec, 4, weight=WEIGHT), "inductor")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_loss_takes_sample_weights_soft_labels_and_large_batches() -> None:
    loss = unswayed.loss("nce + 10*vce(a=4)")
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    logits = draw(2, 1 << 17, dtype=torch.float32)
    soft, share = logits.softmax(1), torch.tensor([1.0, 3.0])
    target = torch.tensor([0, 5])
    torch.testing.assert_close(compiled(logits, soft), loss(logits, soft))
    torch.testing.assert_close(compiled(logits, target, sample_weight=share), loss(logits, target, sample_weight=share))
    torch.testing.assert_close(
        grad(lambda z: compiled(z, target), logits), grad(lambda z: loss(z, target), logits), rtol=1e-4, atol=1e-9
    )


@pytest.mark.parametrize("spec", SPECS)
def test_vmap_over_single_examples_is_the_batch(spec: str) -> None:
    loss, logits, target = build(spec, 4), draw(5, 4), labels(5, classes=4)
    none = build(spec, 4, reduction="none")
    torch.testing.assert_close(torch.func.vmap(loss)(logits, target), none(logits, target))
    each = torch.func.vmap(torch.func.grad(loss))(logits, target)
    torch.testing.assert_close(each, grad(lambda z: none(z, target), logits))
    torch.testing.assert_close(torch.func.grad(loss)(logits, target), each / 5)


def test_vmap_over_models_of_one_batch() -> None:
    loss, logits, target = build("nce + 10*vce(a=4)", 4), draw(3, 5, 4), labels(5, classes=4)
    target[0] = -100
    stacked = torch.func.vmap(loss, in_dims=(0, None))(logits, target)
    torch.testing.assert_close(stacked, torch.stack([loss(z, target) for z in logits]))


@pytest.mark.parametrize("spec", SPECS)
def test_copies_and_pickles_are_the_same_loss(spec: str) -> None:
    loss = build(spec, 4, weight=WEIGHT, ignore_index=2, reduction="sum")
    logits, target = draw(5, 4), labels(5, classes=4)
    expected = loss(logits, target)
    file = io.BytesIO()
    torch.save(loss, file)
    file.seek(0)
    for other in (
        copy.deepcopy(loss),
        copy.copy(loss),
        pickle.loads(pickle.dumps(loss)),
        torch.load(file, weights_only=False),
    ):
        assert str(other) == str(loss)
        assert (other.ignore_index, other.reduction) == (2, "sum")
        assert torch.equal(other(logits, target), expected)


def test_errors_of_specs_survive_a_process_boundary() -> None:
    with pytest.raises(unswayed.SpecError) as caught:
        unswayed.loss("nce + vcee")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("spec", [*DEFAULTS.values(), *SUMS])
def test_state_dict_holds_the_class_weights_and_nothing_else(spec: str) -> None:
    loss, other = (build(spec, 4, weight=w, reduction="sum") for w in (WEIGHT, [1.0] * 4))
    assert list(loss.state_dict()) == ["weight"]
    assert build(spec, 4).state_dict() == {}
    other.load_state_dict(loss.state_dict())
    logits, target = draw(5, 4), labels(5, classes=4)
    assert torch.equal(other(logits, target), loss(logits, target))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("spec", [*DEFAULTS.values(), *SUMS])
def test_the_dtype_of_the_module_does_not_decide_that_of_the_computation(spec: str, dtype: torch.dtype) -> None:
    loss, logits, target = build(spec, 4, weight=WEIGHT), draw(5, 4), labels(5, classes=4)
    expected = [loss(logits.to(kind), target) for kind in (torch.float64, torch.float32)]
    moved = loss.to(dtype)
    rtol = 1e-2 if dtype == torch.bfloat16 and "{T}" in spec else 1e-6
    for kind, value in zip((torch.float64, torch.float32), expected, strict=True):
        result = moved(logits.to(kind), target)
        assert result.dtype == kind
        torch.testing.assert_close(result, value, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spec", [*DEFAULTS.values(), *SUMS])
def test_modules_move_with_their_weights(spec: str, device: str) -> None:
    logits, target = draw(5, 4, dtype=torch.float32), labels(5, classes=4)
    loss = build(spec, 4, weight=WEIGHT)
    expected = loss(logits, target)
    result = loss.to(device)(logits.to(device), target.to(device))
    assert result.device.type == device
    torch.testing.assert_close(result.cpu(), expected)


@pytest.mark.parametrize("spec", [s for s in SPECS if "{T}" not in s])
def test_losses_run_on_the_meta_device(spec: str) -> None:
    """Nothing of a loss stays behind on the CPU, and nothing looks at values."""
    loss: Any = build(spec, 4, weight=WEIGHT).to("meta")
    logits = torch.zeros(5, 4, device="meta", requires_grad=True)
    value = loss(logits, torch.zeros(5, dtype=torch.long, device="meta"))
    value.backward()
    assert value.device.type == "meta"
    assert logits.grad is not None
