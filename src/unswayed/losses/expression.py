"""The language of specs: ``"nce + 10*vce(a=4)"``. A string is an identity, here and for noise."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from unswayed.losses.info import REQUIRED, did_you_mean
from unswayed.losses.registry import info, list_losses

if TYPE_CHECKING:
    from unswayed.losses.base import Loss


class SpecError(ValueError):
    """A spec that cannot be read: the message shows the place, what is allowed there, and what may have been meant.

    >>> loss("nce + 10*vcee(a=4)")
    Traceback (most recent call last):
    unswayed.losses.expression.SpecError: unknown loss 'vcee'; did you mean 'vce'?
      nce + 10*vcee(a=4)
               ^
    known: ce, mae, ...
    """

    def __init__(self, problem: str, spec: str, column: int, allowed: str = "") -> None:
        # A caret can only point into one line.
        line = " ".join(spec[:column].split("\n")) + " ".join(spec[column:].split("\n"))
        start = max(0, column - 80)
        shown = line[start : column + 80]
        super().__init__(f"{problem}\n  {shown}\n  {' ' * (column - start)}^" + (f"\n{allowed}" if allowed else ""))


class Reader:
    """Walks the syntax tree of one spec; the two languages (losses, noise) differ in how they build a named thing."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        if not isinstance(spec, str):
            raise ValueError(f"a spec is a string like 'nce + 10*vce(a=4)', not {type(spec).__name__}: {spec!r}")
        if not spec.strip():
            raise SpecError("the spec is empty", spec, 0)
        # Brackets allow line breaks inside, and keep Python's own messages about indentation away.
        try:
            self.tree = ast.parse(f"({spec}\n)", mode="eval").body
        except SyntaxError as error:
            line, offset = (error.lineno or 1) - 1, (error.offset or 1) - 1
            before = sum(len(part) + 1 for part in spec.split("\n")[:line])
            column = before + offset - (1 if line == 0 else 0)
            raise SpecError("this is not a spec", spec, min(max(column, 0), len(spec)), GRAMMAR) from None
        except (ValueError, MemoryError, RecursionError) as error:
            raise SpecError(f"this is not a spec ({error})", spec, 0, GRAMMAR) from None

    def fail(self, node: ast.AST, problem: str, allowed: str = "") -> SpecError:
        """Return the error that points at ``node``."""
        lines = f"({self.spec}".split("\n")
        row = getattr(node, "lineno", 1) - 1
        column = len(lines[row].encode()[: getattr(node, "col_offset", 1)].decode(errors="ignore"))
        return SpecError(problem, self.spec, max(sum(len(part) + 1 for part in lines[:row]) + column - 1, 0), allowed)

    def number(self, node: ast.expr) -> float | int | None:
        """Return the number that ``node`` writes (products and signs of numbers included), or ``None``."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if not math.isfinite(float(value)):
                    raise self.fail(node, f"{ast.unparse(node)} is too large a number")
                return value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
                size = self.number(inner)
                return size if size is None or isinstance(sign, ast.UAdd) else -size
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self.number(left), self.number(right)
                return None if a is None or b is None else a * b
        return None

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


GRAMMAR = "a spec is made of losses like vce(a=4), numbers, +, - and *: nce + 10*vce(a=4)"


def loss(spec: str | Loss, **options: Any) -> Loss:
    """Build a loss from its spec; ``weight``, ``ignore_index`` and ``reduction`` apply to the whole of it.

    The grammar: names of losses with positional or keyword arguments (numbers, nested losses, words, lists of
    numbers), and ``+``, ``-`` and ``*`` by numbers. Names are not case-sensitive. Nothing is evaluated. A loss instead
    of a spec is returned as it is.

    >>> loss("nce + 10*vce(4)")
    nce + 10*vce(a=4)
    >>> loss("label_smoothing(gce(q=0.5), r=-0.2)", reduction="none").reduction
    'none'
    """
    from unswayed.losses.base import Loss

    if isinstance(spec, Loss):
        if options:
            raise ValueError(f"{spec} is built already; options ({', '.join(options)}) go with a spec")
        return spec
    reader = Reader(spec)
    try:
        return _build(reader, reader.tree, options)
    except RecursionError:
        raise SpecError("the spec is nested too deeply", spec, 0, GRAMMAR) from None


def _build(reader: Reader, node: ast.expr, options: dict[str, Any]) -> Loss:
    from unswayed.losses.base import Sum

    terms = _terms(reader, node, options)
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1](options)
    return Sum([(factor, make({})) for factor, make in terms], **options)


Make = Callable[[dict[str, Any]], "Loss"]


def _terms(reader: Reader, node: ast.expr, options: dict[str, Any]) -> list[tuple[float, Make]]:
    """Return the weighted terms of a sum, each as what builds it."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            second = _terms(reader, right, options)
            factor = 1.0 if isinstance(sign, ast.Add) else -1.0
            return [*_terms(reader, left, options), *((factor * c, make) for c, make in second)]
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if reader.number(node) is None:
            for number, other in ((reader.number(left), right), (reader.number(right), left)):
                if number is not None:
                    return [(number * c, make) for c, make in _terms(reader, other, options)]
            raise reader.fail(node, "a loss can be multiplied by a number only", GRAMMAR)
        case ast.UnaryOp(op=ast.USub(), operand=inner) if reader.number(node) is None:
            return [(-c, make) for c, make in _terms(reader, inner, options)]
    if reader.number(node) is not None:
        raise reader.fail(node, f"a number ({ast.unparse(node)}) is no loss", GRAMMAR)
    call = reader.call(node)
    if call is None:
        raise reader.fail(node, "a loss is expected here", GRAMMAR)
    return [(1.0, _maker(reader, node, *call))]


def _maker(reader: Reader, node: ast.expr, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Make:
    known = list_losses()
    if name.lower() not in known:
        raise reader.fail(node, f"unknown loss {name!r}{did_you_mean(name, known)}", "known: " + ", ".join(known))
    entry = info(name)
    bound = reader.bind(node, entry.name, [p.name for p in entry.params], args, keywords)
    values: dict[str, Any] = {}
    for param in entry.params:
        if param.name not in bound:
            if param.default is REQUIRED:
                raise reader.fail(node, f"{entry.name} needs {param.name}", f"{param.name}: {param.meaning}")
            continue
        given = bound[param.name]
        if param.kind == "loss" and not (isinstance(given, ast.Constant) and isinstance(given.value, str)):
            values[param.name] = _build(reader, given, {})
            continue
        try:
            values[param.name] = param.check(entry.name, reader.value(given))
        except SpecError:
            raise
        except ValueError as error:
            raise reader.fail(given, str(error)) from None

    def make(options: dict[str, Any]) -> Loss:
        # The one loss with a parameter of its own called weight takes class weights under another name.
        renamed = {"class_weight" if k == "weight" and "weight" in values else k: v for k, v in options.items()}
        if "weight" in [p.name for p in entry.params] and "weight" in renamed:
            renamed["class_weight"] = renamed.pop("weight")
        try:
            return entry.cls(**values, **renamed)
        except SpecError:
            raise
        except ValueError as error:
            raise reader.fail(node, str(error)) from None

    return make
