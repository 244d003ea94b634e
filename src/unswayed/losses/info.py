"""What can be said about one loss: its parameters with their ranges, its formula and its properties."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unswayed.losses.base import Loss

REQUIRED: Any = object()


@dataclass(frozen=True)
class Param:
    """One parameter of a loss: its default, its allowed range and its meaning.

    ``kind`` is ``number``, ``integer``, ``flag``, ``choice``, ``loss`` or ``matrix``. ``low`` and ``high`` bound a
    number, and ``open_low`` / ``open_high`` exclude the bound itself. A required parameter has no default.

    >>> Param("a", 1.0, "shift", low=0.0).check("vce", 2)
    2.0
    """

    name: str
    default: Any
    meaning: str
    kind: str = "number"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The allowed values, in words that an error message can use.

        >>> Param("q", 0.7, "exponent", low=0, high=1, open_low=True).range
        '0 < q <= 1'
        """
        if self.kind == "flag":
            return f"{self.name} is true or false"
        if self.kind == "choice":
            return f"{self.name} is one of " + ", ".join(repr(c) for c in self.choices)
        if self.kind == "loss":
            return f"{self.name} is a loss, or the spec of one"
        if self.kind == "matrix":
            return f"{self.name} is a row-stochastic K x K matrix, or a .csv or .npy file of one"
        left = f"{self.low:g} {'<' if self.open_low else '<='} " if math.isfinite(self.low) else ""
        right = f" {'<' if self.open_high else '<='} {self.high:g}" if math.isfinite(self.high) else ""
        if left and not right:
            left, right = "", f" {'>' if self.open_low else '>='} {self.low:g}"
        words = "a whole number" if self.kind == "integer" else "a finite number"
        return f"{left}{self.name}{right}" if left or right else f"{self.name} is {words}"

    def check(self, owner: str, value: Any) -> Any:
        """Return ``value`` in its proper type, or raise a ``ValueError`` that names the allowed range."""
        wrong = f"{owner}: {self.name}={value!r} is not allowed; {self.range}"
        if self.kind == "flag":
            if value is not True and value is not False:
                raise ValueError(wrong)
            return value
        if self.kind == "choice":
            if value not in self.choices:
                raise ValueError(wrong + did_you_mean(str(value), self.choices))
            return value
        if self.kind in ("loss", "matrix"):
            return value
        if isinstance(value, (bool, str)):
            raise ValueError(wrong)
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(wrong) from None
        below = number <= self.low if self.open_low else number < self.low
        above = number >= self.high if self.open_high else number > self.high
        if not math.isfinite(number) or below or above:
            raise ValueError(wrong)
        if self.kind == "integer":
            if number != int(number):
                raise ValueError(f"{wrong}, a whole number")
            return int(number)
        return number


@dataclass(frozen=True)
class LossInfo:
    """What is known about one loss.

    ``formula`` writes it in plain signs with ``u`` for the probability of the given class, ``latex`` for papers;
    ``symmetric``, ``asymmetric`` and ``bounded`` are the properties that papers prove; ``ratio`` is the variation ratio
    as a formula and ``ratio_of`` computes it from the parameters (``None``: the loss is no function of ``u`` alone, or
    there is no closed form). ``shape`` is ``convex``, ``strictly convex``, ``linear``, ``concave`` or ``""`` as a
    function of ``u``, for the parameters given to ``shape_of`` where it depends on them.

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
    shape_of: Callable[[Mapping[str, Any]], str] | None = None
    pointwise: bool = True
    wrapper: bool = False
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


def write(value: Any, kind: str = "number") -> str:
    """Write a parameter as the spec language does, so that it reads back to the same value.

    >>> write(4.0), write(1e-07), write(True), write("linear", "choice"), write([[0.5, 0.5]], "matrix")
    ('4', '1e-07', 'true', '"linear"', '[[0.5, 0.5]]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(write(v) for v in value) + "]"
    if isinstance(value, (int, float)):
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    if kind in ("choice", "matrix"):
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def did_you_mean(word: str, known: Iterator[str] | tuple[str, ...] | list[str]) -> str:
    """Return '; did you mean ...?' for the nearest known word, or nothing.

    >>> did_you_mean("vcee", ["vce", "mae"])
    "; did you mean 'vce'?"
    """
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
