"""The language of specs, read with :mod:`ast` and never evaluated; losses and noise share it.

A string is an identity: ``"nce + 10*vce(a=4)"``, ``"symmetric(0.8)"``.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


def write(value: Any, kind: str = "number") -> str:
    """Write a parameter as the spec language does, so that it reads back to the same value.

    >>> write(4.0), write(1e-07), write(True), write("linear", "choice"), write([[0.5, 0.5]], "matrix")
    ('4', '1e-07', 'true', '"linear"', '[[0.5, 0.5]]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(write(v, kind) for v in value) + "]"
    if isinstance(value, (int, float)):
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    if kind in ("choice", "matrix"):
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' for the nearest known word, or nothing.

    >>> did_you_mean("vcee", ["vce", "mae"])
    "; did you mean 'vce'?"
    """
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


_BLANK = re.compile(r"\s")
_STRING = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")


class SpecError(ValueError):
    """A spec that cannot be read: the message shows the place, what is allowed there, and what may have been meant.

    >>> import unswayed
    >>> unswayed.loss("nce + 10*vcee(a=4)")
    Traceback (most recent call last):
    unswayed.spec.SpecError: unknown loss 'vcee'; did you mean 'vce'?
      nce + 10*vcee(a=4)
               ^
    known: ce, mae, ...
    """

    def __init__(self, problem: str, spec: str, column: int, allowed: str = "") -> None:
        # A caret can only point into one line.
        line = _BLANK.sub(" ", spec)
        start = max(0, column - 80)
        shown = line[start : column + 80]
        self._parts = (problem, spec, column, allowed)
        super().__init__(f"{problem}\n  {shown}\n  {' ' * (column - start)}^" + (f"\n{allowed}" if allowed else ""))

    def about(self, spec: str) -> SpecError:
        """Return the same error about ``spec``, which has other words in the same columns."""
        problem, _, column, allowed = self._parts
        return SpecError(problem, spec, column, allowed)

    def __reduce__(self) -> tuple[type[SpecError], tuple[str, str, int, str]]:
        return type(self), self._parts


class Reader:
    """Walks the syntax tree of one spec; the two languages (losses, noise) differ in how they build a named thing."""

    def __init__(self, spec: str, grammar: str) -> None:
        self.spec, self.grammar = spec, grammar
        if not isinstance(spec, str):
            raise ValueError(f"a spec is a string, not {type(spec).__name__} ({spec!r}); {grammar}")
        if not spec.strip():
            raise SpecError("the spec is empty", spec, 0, grammar)
        # Line breaks mean nothing, and a comment would hide what follows it.
        self.line = _BLANK.sub(" ", spec)
        self.indent = len(self.line) - len(self.line.lstrip())
        hidden = _STRING.sub(lambda found: " " * len(found[0]), self.line).find("#")
        if hidden >= 0:
            raise SpecError("this is not a spec", spec, hidden, grammar)
        try:
            self.tree = ast.parse(self.line.strip(), mode="eval").body
        except SyntaxError as error:
            column = self.indent + max((error.offset or 1) - 1, 0)
            raise SpecError("this is not a spec", spec, min(column, len(spec)), grammar) from None
        except (ValueError, MemoryError, RecursionError) as error:
            raise SpecError(f"this is not a spec ({error})", spec, 0, grammar) from None

    def fail(self, node: ast.AST, problem: str, allowed: str = "") -> SpecError:
        """Return the error that points at ``node``."""
        before = self.line.strip().encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
        return SpecError(problem, self.spec, self.indent + len(before), allowed)

    def number(self, node: ast.expr) -> float | int | None:
        """Return the number that ``node`` writes (products and signs of numbers included), or ``None``."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.finite(node, value)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
                size = self.number(inner)
                return size if size is None or isinstance(sign, ast.UAdd) else -size
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self.number(left), self.number(right)
                return None if a is None or b is None else self.finite(node, a * b)
        return None

    def finite(self, node: ast.expr, value: float | int) -> float | int:
        """Return ``value``, which ``node`` writes, unless it is too large for a float."""
        if abs(value) > sys.float_info.max:
            raise self.fail(node, "this is too large a number")
        return value

    def value(self, node: ast.expr) -> Any:
        """Return the argument that ``node`` writes: number, word, string, flag or list of numbers."""
        number = self.number(node)
        if number is not None:
            return number
        match node:
            case ast.Constant(value=str() | bool() as value):
                return value
            case ast.Name(id="true" | "false" as word):
                return word == "true"
            case ast.Name(id=word):
                return word
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item) for item in items]
        raise self.fail(
            node, "this is no value", 'allowed: a number, a word, a "string", true, false, a list of numbers'
        )

    def call(self, node: ast.expr) -> tuple[str, list[ast.expr], list[ast.keyword]] | None:
        """Split ``name`` or ``name(...)``; ``None`` for anything else."""
        match node:
            case ast.Name(id=name):
                return name, [], []
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                return name, args, keywords
        return None

    def bind(
        self, node: ast.expr, name: str, names: list[str], args: Iterable[ast.expr], keywords: Iterable[ast.keyword]
    ) -> dict[str, ast.expr]:
        """Give each argument its parameter's name."""
        takes = f"{name} takes: {', '.join(names)}" if names else f"{name} takes no parameters"
        bound: dict[str, ast.expr] = {}
        for position, arg in enumerate(args):
            if isinstance(arg, ast.Starred) or position >= len(names):
                raise self.fail(arg, f"too many arguments for {name}", takes)
            bound[names[position]] = arg
        for keyword in keywords:
            if keyword.arg is None or keyword.arg not in names:
                word = keyword.arg or "**"
                raise self.fail(keyword, f"{name} has no parameter {word!r}{did_you_mean(word, names)}", takes)
            if keyword.arg in bound:
                raise self.fail(keyword, f"{keyword.arg} is given twice", takes)
            bound[keyword.arg] = keyword.value
        return bound


REQUIRED: Any = object()


@dataclass(frozen=True)
class Param:
    """One parameter of a loss or a kind of noise: its default, its allowed range and its meaning.

    ``kind`` is ``number``, ``integer``, ``integers``, ``flag``, ``choice``, ``file``, ``loss`` or ``matrix``. ``low``
    and ``high`` bound a number, and ``open_low`` / ``open_high`` exclude the bound itself. A required parameter has no
    default.

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
        if self.kind == "file":
            return f"{self.name} is the name of a file"
        if self.kind == "loss":
            return f"{self.name} is a loss, or the spec of one"
        if self.kind == "matrix":
            return f"{self.name} is a row-stochastic K x K matrix, or a .csv or .npy file of one"
        if self.kind == "integers":
            return f"{self.name} is a list of whole numbers >= {self.low:g}, like [40, 80]"
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
        if self.kind == "file":
            if not isinstance(value, str) or not value:
                raise ValueError(wrong)
            return value
        if self.kind in ("loss", "matrix"):
            return value
        if self.kind == "integers":
            try:
                return [replace(self, kind="integer").check(owner, each) for each in value]
            except (TypeError, ValueError):
                raise ValueError(wrong) from None
        if isinstance(value, (bool, str)):
            raise ValueError(wrong)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise ValueError(wrong) from None
        below = number <= self.low if self.open_low else number < self.low
        above = number >= self.high if self.open_high else number > self.high
        if not math.isfinite(number) or below or above:
            raise ValueError(wrong)
        if self.kind == "integer":
            if number != int(number):
                raise ValueError(f"{wrong}, a whole number")
            return int(number)
        return number + 0.0  # -0 is written as 0


def read_named(
    reader: Reader, node: ast.expr, what: str, known: Mapping[str, Sequence[Param]]
) -> tuple[str, dict[str, Any]]:
    """Read ``name`` or ``name(...)``, where ``known`` lists the parameters of each name.

    Returns the name and the value of every parameter, checked, with defaults filled in. ``what`` is what the named
    things are called, like "model".

    >>> reader = Reader("Crop(4)", "write crop(4)")
    >>> read_named(reader, reader.tree, "augmentation", {"crop": [Param("pad", REQUIRED, "pixels", kind="integer")]})
    ('crop', {'pad': 4})
    """
    call = reader.call(node)
    if call is None:
        raise reader.fail(node, f"the name of a {what} is expected here", reader.grammar)
    name, args, keywords = call
    if name.lower() not in known:
        allowed = f"known: {', '.join(known)}"
        raise reader.fail(node, f"unknown {what} {name!r}{did_you_mean(name, known)}", allowed)
    name = name.lower()
    params = known[name]
    bound = reader.bind(node, name, [param.name for param in params], args, keywords)
    values = {}
    for param in params:
        if param.name not in bound:
            if param.default is REQUIRED:
                raise reader.fail(node, f"{name} needs {param.name}", f"{param.name}: {param.meaning}")
            values[param.name] = param.default
            continue
        given = reader.value(bound[param.name])
        try:
            values[param.name] = param.check(name, given)
        except ValueError as error:
            raise reader.fail(bound[param.name], str(error)) from None
    return name, values


def write_named(name: str, values: Mapping[str, Any], *, keywords: bool = False) -> str:
    """Write what :func:`read_named` reads; a single parameter stands without its name, unless ``keywords``.

    >>> write_named("crop", {"pad": 4}), write_named("mlp", {"hidden": 64, "norm": True}), write_named("flip", {})
    ('crop(4)', 'mlp(hidden=64, norm=true)', 'flip')
    """
    bare = len(values) == 1 and not keywords
    written = [("" if bare else f"{key}=") + write(value, "choice") for key, value in values.items()]
    return f"{name}({', '.join(written)})" if written else name
