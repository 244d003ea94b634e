"""Losses from their specs: ``"nce + 10*vce(a=4)"``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unswayed.losses.registry import info, list_losses
from unswayed.spec import REQUIRED, Reader, SpecError, did_you_mean

if TYPE_CHECKING:
    from unswayed.losses.base import Loss


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
    reader = Reader(spec, GRAMMAR)
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
                    terms = _terms(reader, other, options)
                    return [(reader.finite(node, number * c), make) for c, make in terms]
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
