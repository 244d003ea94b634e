"""How a model is trained: every number of it, by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self

from unswayed.spec import REQUIRED, Param, Reader, did_you_mean, read_named, write_named

_SCHEDULES: dict[str, tuple[Param, ...]] = {
    "constant": (),
    "cosine": (),
    "exponential": (Param("gamma", 0.97, "factor an epoch", low=0, high=1, open_low=True),),
    "milestones": (
        Param("epochs", REQUIRED, "after how many epochs the rate drops", kind="integers", low=1),
        Param("gamma", 0.1, "factor at each of them", low=0, high=1, open_low=True),
    ),
    "one_cycle": (
        Param("warmup", 0.2, "share of all steps in which the rate rises", low=0, high=1, open_high=True),
        Param("start", 0.1, "first rate, as a share of the highest", low=0, high=1),
        Param("final", 0.0, "last rate, as a share of the highest", low=0, high=1),
    ),
}
_GRAMMAR = "a schedule is constant, cosine, exponential(0.97), milestones([40, 80], 0.1) or one_cycle(warmup=0.2)"


@dataclass(frozen=True)
class Schedule:
    """The learning rate over time, as a factor.

    ``constant``; ``cosine`` (to 0, an epoch a step, as papers have it); ``exponential(gamma)`` an epoch;
    ``milestones(epochs, gamma)``; ``one_cycle(warmup, start, final)``: a straight rise and a cosine fall, each step.

    >>> schedule = Schedule.parse("milestones([5], 0.1)")
    >>> schedule.factor(4, 0, steps=10, epochs=10), schedule.factor(5, 0, steps=10, epochs=10)
    (1.0, 0.1)
    """

    name: str
    values: Mapping[str, Any]

    @classmethod
    def parse(cls, spec: str) -> Schedule:
        """Read a spec."""
        reader = Reader(spec, _GRAMMAR)
        name, values = read_named(reader, reader.tree, "schedule", _SCHEDULES)
        return cls(name, MappingProxyType(values))

    def __str__(self) -> str:
        return write_named(self.name, self.values, keywords=True)

    def factor(self, epoch: int, step: int, steps: int, epochs: int) -> float:
        """Return the factor at one step of one epoch, both counted from 0."""
        match self.name:
            case "cosine":
                return 0.5 * (1 + math.cos(math.pi * epoch / epochs))
            case "exponential":
                return float(self.values["gamma"] ** epoch)
            case "milestones":
                return float(self.values["gamma"] ** sum(epoch >= at for at in self.values["epochs"]))
            case "one_cycle":
                warmup, start, final = (self.values[key] for key in ("warmup", "start", "final"))
                done = (epoch * steps + step) / max(1, epochs * steps - 1)
                if done < warmup:
                    return float(start + (1 - start) * done / warmup)
                return float(final + (1 - final) * 0.5 * (1 + math.cos(math.pi * (done - warmup) / (1 - warmup))))
        return 1.0


_FIELDS = {
    p.name: p
    for p in (
        Param("epochs", 0, "passes over the data", kind="integer", low=1),
        Param("batch_size", 0, "examples a step, all devices together", kind="integer", low=1),
        Param("optimizer", "", "what makes the steps", kind="choice", choices=("sgd", "adamw")),
        Param("lr", 0, "highest learning rate", low=0, open_low=True),
        Param("momentum", 0, "of SGD; the first beta of AdamW", low=0, high=1, open_high=True),
        Param("nesterov", False, "Nesterov's momentum", kind="flag"),
        Param("weight_decay", 0, "L2", low=0),
        Param("l1", 0, "L1", low=0),
        Param("clip_norm", 0, "largest norm of the gradient; 0 is none", low=0),
        Param("precision", "", "arithmetic of the network", kind="choice", choices=("auto", "fp32", "bf16")),
        Param("average", 0, "decay a step", low=0, high=1, open_high=True),
    )
}


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    Args:
        epochs, batch_size: passes over the data; examples a step (on all devices together).
        optimizer: ``sgd`` or ``adamw``; ``momentum`` is the first beta of AdamW.
        lr, schedule: the highest learning rate, and a :class:`Schedule`.
        weight_decay: L2, as the optimiser has it (decoupled in AdamW).
        l1: weight of the sum of the absolute values of all parameters, in the loss, before clipping.
        clip_norm: the gradient's norm is clipped at this; 0 is no clipping.
        augment: as :func:`unswayed.data.augmentation` reads it.
        average: if not 0, the model that is evaluated is the exponential moving average of the weights with this decay
            a step.
        precision: of the network's arithmetic; the loss is always computed in fp32. ``auto`` is bf16 for networks with
            convolutions on hardware that is fast with it, else fp32.
        source: where it comes from; ``unstated`` names the fields that its paper does not state and public code has.

    >>> recipe("paper/cifar10").replace(lr=0.05).lr
    0.05
    """

    epochs: int = 100
    batch_size: int = 128
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    l1: float = 0.0
    schedule: str = "cosine"
    clip_norm: float = 5.0
    augment: str = "none"
    average: float = 0.0
    precision: str = "auto"
    source: str = ""
    unstated: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, param in _FIELDS.items():
            object.__setattr__(self, name, param.check("recipe", getattr(self, name)))
        object.__setattr__(self, "schedule", str(Schedule.parse(self.schedule)))
        if self.nesterov and (self.optimizer != "sgd" or self.momentum == 0):
            raise ValueError("recipe: nesterov=true needs optimizer='sgd' and momentum > 0")

    def replace(self, **changes: Any) -> Self:
        """Return the recipe with some fields changed."""
        _known(changes, [f.name for f in fields(self)])
        return replace(self, **changes)

    def set(self, assignment: str) -> Self:
        """Return the recipe with one field changed, as ``lr=0.05`` on the command line says it.

        >>> Recipe().set("schedule=one_cycle(warmup=0.3)").schedule
        'one_cycle(warmup=0.3, start=0.1, final=0)'
        """
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not text:
            raise ValueError(f"{assignment!r} is no setting; write NAME=VALUE, like lr=0.05")
        _known([name], self.settings)
        value: Any = text
        if name in _FIELDS and _FIELDS[name].kind != "choice":
            reader = Reader(text, f"recipe: {_FIELDS[name].range}")
            value = reader.value(reader.tree)
        return self.replace(**{name: value})

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the result: all fields but those that tell where the recipe comes from."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("source", "unstated")}


def _known(names: Iterable[str], fields: Iterable[str]) -> None:
    for name in names:
        if name not in fields:
            raise ValueError(f"a recipe has no {name!r}{did_you_mean(name, fields)}; it has: {', '.join(fields)}")


_ANL = "public code of ANL, JAL and ALF"
_CIFAR = {"clip_norm": _ANL, "schedule": "to 0, a step an epoch: " + _ANL, "augment": "pad of 4 pixels: " + _ANL}
_PAPER = "VBL paper (AAAI 2026), appendix, experiment setting"

RECIPES = {
    "digits": Recipe(epochs=100, batch_size=128, lr=0.1, clip_norm=5, source="tried on the digits data"),
    "mnist": Recipe(
        epochs=50, batch_size=128, lr=0.01, weight_decay=1e-3, source=_ANL + "; the VBL paper trains on no MNIST",
    ),
    "features": Recipe(epochs=30, batch_size=128, lr=0.1, clip_norm=5, source="tried on embeddings of CIFAR-10"),
    "paper/cifar10": Recipe(
        epochs=120, batch_size=128, lr=0.01, l1=5e-5, augment="crop(4) + flip", source=_PAPER,
        unstated=_CIFAR,
    ),
    "paper/cifar100": Recipe(
        epochs=200, batch_size=128, lr=0.1, l1=5e-6, augment="crop(4) + flip + rotate(20)", source=_PAPER,
        unstated=_CIFAR | {"augment": "pad of 4 pixels and rotation by 20 degrees: " + _ANL},
    ),
    "paper/webvision": Recipe(
        epochs=250, batch_size=512, lr=0.4, nesterov=True, l1=6e-5, schedule="exponential(0.97)",
        augment="resized_crop(224) + flip + color_jitter(0.4, 0.4, 0.4, 0.2)", source=_PAPER,
        unstated={"clip_norm": _ANL, "augment": "kind of crop, strength of the colour jitter: " + _ANL},
    ),
    "paper/clothing1m": Recipe(
        epochs=10, batch_size=32, lr=1e-3, weight_decay=1e-3, schedule="milestones([5], 0.1)",
        augment="random_crop(224) + flip", clip_norm=0, source=_PAPER,
        unstated={"clip_norm": "off in public code of JAL", "augment": "kind of crop: public code of JAL"},
    ),
    "nls/cifar": Recipe(
        epochs=220, batch_size=128, lr=0.1, momentum=0, schedule="milestones([40, 80, 120, 120, 120], 0.1)",
        clip_norm=0, augment="crop(4) + flip", source="public code of negative label smoothing",
        unstated={"momentum": "0.9, Nesterov, and weight decay 1e-4 from epoch 120 on, where the rate is 1e-6"},
    ),
}  # fmt: skip


def recipe(name: str) -> Recipe:
    """Return a recipe by its name.

    >>> recipe("paper/webvision").schedule
    'exponential(gamma=0.97)'
    """
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}{did_you_mean(name, RECIPES)}; known: {', '.join(RECIPES)}")
    return RECIPES[name]
