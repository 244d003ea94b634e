"""Build a network from its spec: sizes from the data, weights from a seed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unswayed.models.cnn import CNN, WIDTHS
from unswayed.models.mlp import MLP
from unswayed.models.resnet import BLOCKS, ResNet
from unswayed.models.spec import ModelSpec
from unswayed.spec import did_you_mean


def build(spec: str | ModelSpec, *, num_classes: int, in_shape: tuple[int, ...], seed: int = 0) -> nn.Module:
    """Build a network on the CPU; its weights hang on the spec, the shapes and ``seed`` alone.

    Torch's own random numbers go on as if nothing had been drawn. ``timm:NAME`` is called with ``num_classes`` and
    ``in_chans``, a ``module:callable`` with ``num_classes`` and ``in_shape`` where it takes them; both start as they
    initialise themselves, and are tried on one example.

    >>> net = build("cnn8", num_classes=10, in_shape=(3, 32, 32), seed=1)
    >>> sum(p.numel() for p in net.parameters())
    1639794
    """
    spec = ModelSpec.parse(spec)
    num_classes, in_shape = _checked(num_classes, in_shape)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        if spec.builtin:
            net = _builtin(spec, num_classes, in_shape)
            _initialise(spec, net)
            return net
        make = _timm if spec.name.startswith("timm:") else _own
        net = make(spec, num_classes, in_shape)
        _try(spec, net, num_classes, in_shape)
    return net


def features(model: nn.Module, x: Tensor) -> Tensor:
    """Return what the model's last linear layer sees, ``(N, d)``; for pictures of what a network has learned.

    >>> net = build("mlp(hidden=16)", num_classes=3, in_shape=(4,))
    >>> features(net, torch.zeros(5, 4)).shape
    torch.Size([5, 16])
    """
    seen: list[Tensor] = []
    handle = _head(model).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        model(x)
    finally:
        handle.remove()
    if not seen:
        raise ValueError(f"{type(model).__name__} does not call its last linear layer, so that it has no features")
    return seen[-1].flatten(1)


def _head(model: nn.Module) -> nn.Module:
    classifier = getattr(model, "get_classifier", None)  # timm's way to say it
    found = classifier() if callable(classifier) else None
    if isinstance(found, nn.Module) and not isinstance(found, nn.Identity):
        return found
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no linear layer, so that it has no features before it")
    return layers[-1]


def _checked(num_classes: Any, in_shape: Any) -> tuple[int, tuple[int, ...]]:
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(f"num_classes={num_classes!r} is not allowed; a classifier has 2 classes or more")
    shape = tuple(in_shape) if isinstance(in_shape, (tuple, list, torch.Size)) else ()
    if not shape or not all(isinstance(size, int) and size > 0 for size in shape):
        raise ValueError(
            f"in_shape={in_shape!r} is not allowed; it is the shape of one example, like (3, 32, 32) or (512,)"
        )
    return num_classes, shape


def _builtin(spec: ModelSpec, num_classes: int, in_shape: tuple[int, ...]) -> nn.Module:
    if spec.name == "linear":
        return MLP(in_shape, num_classes, depth=0)
    if spec.name == "mlp":
        return MLP(in_shape, num_classes, **spec.values)
    if spec.name in WIDTHS:
        blocks, hidden = WIDTHS[spec.name]
        _images(spec, in_shape, 1 << len(blocks))
        return CNN(in_shape, num_classes, blocks, hidden)
    stem = spec.values.get("stem", "cifar")
    _images(spec, in_shape, 32 if stem == "imagenet" else 8)
    return ResNet(in_shape, num_classes, *BLOCKS[spec.name], stem=stem)


def _images(spec: ModelSpec, in_shape: tuple[int, ...], least: int) -> None:
    if len(in_shape) != 3:
        raise ValueError(
            f"{spec} takes images (channels, height, width), not in_shape={in_shape}; for features use mlp or linear"
        )
    if min(in_shape[1:]) < least:
        hint = f", {spec.name}(stem=cifar)" if "stem" in spec.values and least > 8 else ""
        raise ValueError(
            f"{spec} takes images of {least} x {least} pixels or more, not in_shape={in_shape} "
            f"(channels, height, width); for smaller ones use mlp or linear{hint}"
        )


def _initialise(spec: ModelSpec, net: nn.Module) -> None:
    """Set the weights as the network's publication does; biases stay as PyTorch draws them."""
    if spec.name == "preact_resnet18":
        return
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            if spec.name == "resnet50":
                # torchvision's, which the papers take for WebVision and Clothing1M.
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            else:
                nn.init.kaiming_uniform_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.Linear) and spec.name != "resnet50":
            nn.init.xavier_uniform_(module.weight)


def _timm(spec: ModelSpec, num_classes: int, in_shape: tuple[int, ...]) -> nn.Module:
    try:
        timm: Any = importlib.import_module("timm")
    except ImportError as error:
        raise ImportError(f"{spec} needs timm: pip install timm ({error})") from None
    name = spec.name.removeprefix("timm:")
    if len(in_shape) != 3:
        raise ValueError(f"{spec} takes images (channels, height, width), not in_shape={in_shape}")
    if ":" not in name and name.partition(".")[0] not in (known := timm.list_models()):
        raise ValueError(f"timm has no model {name!r}{did_you_mean(name, known)}")
    return _called(spec, timm.create_model, {"num_classes": num_classes, "in_chans": in_shape[0]}, (name,))


def _own(spec: ModelSpec, num_classes: int, in_shape: tuple[int, ...]) -> nn.Module:
    module_name, _, path = spec.name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ImportError(
            f"{spec}: {error}; Python must find the module: install it, or set PYTHONPATH to the folder it is in"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            public = [name for name in dir(found) if not name.startswith("_")]
            raise ValueError(f"{spec}: {module_name} has no {path!r}{did_you_mean(part, public)}")
        found = getattr(found, part)
    if isinstance(found, nn.Module) or not callable(found):
        raise ValueError(
            f"{spec}: {path} is a {type(found).__name__}; give a class, or a function, that builds a network"
        )
    return _called(spec, found, _wanted(found, {"num_classes": num_classes, "in_shape": in_shape}))


def _wanted(make: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Return what ``make`` takes of ``offered``; ``**kwargs`` are taken to mean ``num_classes`` only."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return {}
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        names.add("num_classes")
    return {key: value for key, value in offered.items() if key in names}


def _called(spec: ModelSpec, make: Callable[..., Any], given: dict[str, Any], args: tuple[Any, ...] = ()) -> nn.Module:
    arguments = {**given, **spec.values}
    try:
        net = make(*args, **arguments)
    except Exception as error:
        shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise ValueError(f"{spec} cannot be built with {shown}: {type(error).__name__}: {error}") from error
    if not isinstance(net, nn.Module):
        raise ValueError(f"{spec} gave a {type(net).__name__}, not a torch.nn.Module")
    return net


def _try(spec: ModelSpec, net: nn.Module, num_classes: int, in_shape: tuple[int, ...]) -> None:
    """Give a network that nobody here knows one example; this also sets the sizes of lazy layers."""
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            out = net(torch.zeros(1, *in_shape))
    except Exception as error:
        raise ValueError(
            f"{spec} does not take examples of shape {in_shape}: {type(error).__name__}: {error}"
        ) from error
    net.train(training)
    if not isinstance(out, Tensor) or out.shape != (1, num_classes):
        got = f"logits of shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        raise ValueError(f"{spec} gives {got} for one example; {num_classes} classes need (1, {num_classes})")
