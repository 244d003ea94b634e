"""What can be said about one loss: its formula, its parameters and its properties."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unswayed.spec import REQUIRED, Param, did_you_mean, write

if TYPE_CHECKING:
    from unswayed.losses.base import Loss


@dataclass(frozen=True)
class LossInfo:
    """What is known about one loss.

    ``formula`` writes it in plain signs with ``u`` for the probability of the given class, ``latex`` for papers;
    ``symmetric``, ``asymmetric`` and ``bounded`` are the properties that papers prove, for the default parameters (a
    loss around a loss that is not ``bounded`` itself is so if the loss inside is); ``ratio`` is the variation ratio
    as a formula and ``ratio_of`` computes it from the parameters (``None``: the loss is no function of ``u`` alone, or
    there is no closed form). ``wants`` names what a call in training must say besides: ``index``, ``epoch``, ``lr``.

    >>> from unswayed import info
    >>> info("vce").ratio_of({"a": 4.0})
    1.25
    """

    name: str
    title: str
    home: str
    formula: str
    latex: str
    paper: str
    params: tuple[Param, ...] = ()
    symmetric: bool = False
    asymmetric: str = "no"
    bounded: bool = True
    ratio: str = "not a function of u alone"
    ratio_of: Callable[[Mapping[str, Any]], float] | None = None
    pointwise: bool = True
    wrapper: bool = False
    wants: tuple[str, ...] = ()
    smooth: bool = True
    reduces_to: tuple[str, ...] = ()
    why_default: str = ""
    _cls: list[type[Loss]] = field(default_factory=list, repr=False, compare=False)

    @property
    def cls(self) -> type[Loss]:
        """The class of the loss (imports torch).

        >>> from unswayed import info
        >>> info("vce").cls
        <class 'unswayed.losses.bounded.VCE'>
        """
        if not self._cls:
            module, _, attribute = self.home.partition(":")
            self._cls.append(getattr(importlib.import_module(module), attribute))
        return self._cls[0]

    @property
    def defaults(self) -> dict[str, Any]:
        """Parameter names and defaults, without the required ones.

        >>> from unswayed import info
        >>> info("agce").defaults
        {'a': 0.6, 'q': 0.6}
        """
        return {p.name: p.default for p in self.params if p.default is not REQUIRED}

    @property
    def signature(self) -> str:
        """The spec with all defaults written out.

        >>> from unswayed import info
        >>> info("agce").signature
        'agce(a=0.6, q=0.6)'
        """
        shown = [p.name if p.default is REQUIRED else f"{p.name}={write(p.default, p.kind)}" for p in self.params]
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    def check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters in order, checked against their ranges."""
        names = [p.name for p in self.params]
        for name in params:
            if name not in names:
                takes = f"it takes {', '.join(names)}" if names else "it takes none"
                raise TypeError(f"{self.name} has no parameter {name!r}{did_you_mean(name, names)}; {takes}")
        return {p.name: p.check(self.name, params[p.name]) for p in self.params}
