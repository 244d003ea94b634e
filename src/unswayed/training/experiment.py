"""What was trained on what, and how: one record, from which the name of its folder follows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from unswayed.spec import Param
from unswayed.training.recipes import Recipe

_FIELDS = (
    Param("seed", 0, "initialisation, order, augmentation", kind="integer", low=0, high=2**32 - 1),
    Param("noise_seed", 0, "draw of the noise", kind="integer", low=0, high=2**32 - 1),
    Param("order_seed", None, "order, augmentation, dropout", kind="integer", low=0, high=2**32 - 1),
    Param("validation", 0, "share of the training examples held out", low=0, high=0.5),
)


@dataclass(frozen=True)
class Experiment:
    """One run: data, noise, model, loss, recipe and seeds, all but the recipe as specs.

    ``validation`` is the share of the training examples, with their noisy labels, that is held out to choose an epoch.
    ``noise_seed`` draws the noise and that share; it is ``seed`` unless given. ``order_seed`` is for runs that are to
    see the examples in the order of another seed (so that many can share their batches); it is recorded where given.

    >>> Experiment("digits", "symmetric(rate=0.4)", "mlp", "vce(a=1)").id
    '...'
    """

    data: str
    noise: str
    model: str
    loss: str
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0
    noise_seed: int | None = None
    order_seed: int | None = None
    validation: float = 0.0

    def __post_init__(self) -> None:
        if self.noise_seed is None:
            object.__setattr__(self, "noise_seed", self.seed)
        if self.order_seed == self.seed:
            object.__setattr__(self, "order_seed", None)
        for param in _FIELDS:
            if param.default is None and getattr(self, param.name) is None:
                continue
            object.__setattr__(self, param.name, param.check("experiment", getattr(self, param.name)))

    @property
    def order(self) -> int:
        """The seed of order, augmentation and dropout."""
        return self.seed if self.order_seed is None else self.order_seed

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the result, as plain values."""
        names = ("data", "noise", "model", "loss", "seed", "noise_seed", "validation")
        own_order = {} if self.order_seed is None else {"order_seed": self.order_seed}
        return {name: getattr(self, name) for name in names} | own_order | {"recipe": self.recipe.settings}

    @property
    def id(self) -> str:
        """A short hash of the settings."""
        text = json.dumps(self.settings, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"{self.loss} on {self.data} with {self.noise} noise, {self.model}, seed {self.seed}"


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Return what differs between two settings, each as 'name: old, not new'.

    >>> differences({"seed": 1, "recipe": {"lr": 0.1}}, {"seed": 1, "recipe": {"lr": 0.2}})
    ['recipe.lr: 0.1, not 0.2']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        found = [differences(old.get(k), new.get(k), f"{path}.{k}" if path else k) for k in keys]
        return [line for lines in found for line in lines]
    return [] if old == new else [f"{path}: {old}, not {new}"]
