"""Networks by name: ``"cnn8"``, ``"mlp(hidden=512, depth=2)"``, ``"timm:NAME"``, ``"package.module:callable"``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from unswayed.spec import Param, Reader, SpecError, read_named, write_named


def _stem(default: str) -> Param:
    return Param(
        "stem", default, "first layers: for small images, or for large", "choice", choices=("cifar", "imagenet")
    )


NETWORKS: dict[str, tuple[Param, ...]] = {
    "cnn8": (),
    "cnn4": (),
    "resnet18": (_stem("cifar"),),
    "resnet34": (_stem("cifar"),),
    "resnet50": (_stem("imagenet"),),
    "preact_resnet18": (),
    "mlp": (
        Param("hidden", 512, "width of the hidden layers", kind="integer", low=1),
        Param("depth", 1, "number of hidden layers", kind="integer", low=1),
    ),
    "linear": (),
}
GRAMMAR = (
    f"a model is one of {', '.join(NETWORKS)}, with parameters like mlp(hidden=512, depth=2); "
    f"or timm:NAME; or package.module:callable of your own"
)
_ELSEWHERE = re.compile(r"\s*([^\s:()]+:[^\s()]+)")
_OWN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class ModelSpec:
    """A network by name, with its parameters. ``str`` writes it so that it reads back to the same.

    A stem is written only where it is not the network's usual one.

    >>> str(ModelSpec.parse("MLP(64)")), str(ModelSpec.parse("resnet50(cifar)")), str(ModelSpec.parse("timm:vit_tiny"))
    ('mlp(hidden=64, depth=1)', 'resnet50(stem="cifar")', 'timm:vit_tiny')
    """

    name: str
    values: Mapping[str, Any] = field(hash=False)

    @classmethod
    def parse(cls, spec: str | ModelSpec) -> ModelSpec:
        """Read a spec."""
        if isinstance(spec, ModelSpec):
            return spec
        target = _ELSEWHERE.match(spec) if isinstance(spec, str) else None
        if target is not None:
            return _elsewhere(spec, target)
        reader = Reader(spec, GRAMMAR)
        name, values = read_named(reader, reader.tree, "model", NETWORKS)
        return cls(name, MappingProxyType(values))

    def __str__(self) -> str:
        usual = {param.name: param.default for param in NETWORKS.get(self.name, ()) if param.name == "stem"}
        shown = {key: value for key, value in self.values.items() if usual.get(key) != value}
        return write_named(self.name, shown, keywords=True)

    @property
    def builtin(self) -> bool:
        """Whether it is a network of this package."""
        return self.name in NETWORKS


def _elsewhere(spec: str, target: re.Match[str]) -> ModelSpec:
    """Read ``timm:NAME(...)`` and ``package.module:callable(...)``, whose parameters nobody here knows."""
    name = target[1]
    if not name.startswith("timm:") and not _OWN.fullmatch(name):
        raise SpecError(f"{name!r} is no place of a network", spec, target.start(1), GRAMMAR)
    values: dict[str, Any] = {}
    try:
        # A name of the same length, which Python can read.
        reader = Reader(" " * target.start(1) + "x" * len(name) + spec[target.end() :], GRAMMAR)
        call = reader.call(reader.tree)
        if call is None:
            raise reader.fail(reader.tree, "this is not a spec", GRAMMAR)
        for arg in call[1]:
            raise reader.fail(arg, f"arguments for {name} are given by name: KEY=VALUE")
        for keyword in call[2]:
            if keyword.arg is None or keyword.arg in values:
                raise reader.fail(keyword, "each argument is given once, as KEY=VALUE")
            values[keyword.arg] = reader.value(keyword.value)
    except SpecError as error:
        raise error.about(spec) from None
    return ModelSpec(name, MappingProxyType(dict(sorted(values.items()))))
