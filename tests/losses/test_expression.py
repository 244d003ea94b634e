"""The language of specs: what it reads, what it writes, and what it refuses, with the place."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import unswayed
from losses_cases import SPECS, draw, labels, spec
from unswayed import CE, NCE, VCE, LabelSmoothing, SpecError, Sum, info, loss

LOGITS, TARGET = draw(6, 3), labels(6, classes=3)

SIMPLE = [name for name in unswayed.list_losses() if not info(name).wrapper and not info(name).wants]


@st.composite
def parameters(draw: st.DrawFn, name: str) -> str:
    """Admissible parameters of a loss, in positional or keyword form, some left out."""
    written, keyword = [], False
    for p in info(name).params:
        if p.kind not in ("number", "integer", "flag") or draw(st.booleans()):
            keyword = True
            continue
        low, high = max(p.low, -20.0), min(p.high, 20.0)
        if p.kind == "flag":
            value: Any = draw(st.sampled_from(["true", "false"]))
        elif p.kind == "integer":
            value = draw(st.integers(int(low), 6))
        else:
            limit = 1e-3 if p.name == "p_min" else high
            value = draw(st.floats(low, limit, exclude_min=p.open_low, exclude_max=p.open_high, allow_subnormal=False))
        written.append(f"{p.name}={value!r}".replace("'", "") if keyword else f"{value}".replace("'", ""))
    return ", ".join(written)


@st.composite
def single(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(st.sampled_from(SIMPLE))
    text = draw(parameters(name))
    return f"{name}({text})" if text or draw(st.booleans()) else name


@st.composite
def wrapped(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(st.sampled_from(["label_smoothing", "bootstrap", "eps_softmax", "logit_clip", "sparse"]))
    inside = draw(inner)
    more = {"label_smoothing": "r=-0.25", "bootstrap": "beta=0.5, hard=true", "eps_softmax": "m=2"}.get(name, "")
    return f"{name}({'loss=' * draw(st.booleans())}{inside}{', ' * bool(more)}{more})"


coefficients = st.floats(-1e3, 1e3).map(repr) | st.integers(-20, 20).map(str)


def sums(term: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    weighted = term | st.builds("{}*{}".format, coefficients, term) | st.builds("({})*{}".format, term, coefficients)
    joined = st.builds("{}{}{}".format, weighted, st.sampled_from([" + ", " - ", "+", " -\n "]), weighted)
    return weighted | joined | joined.map("-({})".format)


expressions = st.recursive(single(st.nothing()), lambda inner: sums(inner) | wrapped(inner), max_leaves=5)


@settings(max_examples=150, deadline=None, database=None)
@given(expressions)
def test_any_expression_is_written_as_a_spec_that_reads_back(text: str) -> None:
    first = loss(text, reduction="none")
    canonical = str(first)
    second = loss(canonical, reduction="none")
    assert str(second) == repr(second) == canonical
    torch.testing.assert_close(second(LOGITS, TARGET), first(LOGITS, TARGET), rtol=1e-12, atol=1e-300, equal_nan=True)


@pytest.mark.parametrize("template", SPECS)
def test_specs_of_the_cases_round_trip(template: str) -> None:
    text = str(loss(spec(template, 3)))
    assert str(loss(text)) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("vce", "vce(a=1)"),
        ("VCE()", "vce(a=1)"),
        ("Vce(4)", "vce(a=4)"),
        ("vce( a = 4.0 )", "vce(a=4)"),
        ("agce(4, q=0.2)", "agce(a=4, q=0.2)"),
        ("agce(q=0.2)", "agce(a=0.6, q=0.2)"),
        ("vce(a=2*3)", "vce(a=6)"),
        ("rce(-4)", "rce(A=-4)"),
        ("rce(A=+-4)", "rce(A=-4)"),
        ("nce+10*vce", "nce + 10*vce(a=1)"),
        ("nce\n  + 10 * vce(\n a=4)", "nce + 10*vce(a=4)"),
        ("\n\tnce +\r\n vce", "nce + vce(a=1)"),
        ("nce +\N{NO-BREAK SPACE}ce", "nce + ce"),
        ("ce*2", "2*ce"),
        ("-ce", "-ce"),
        ("--ce", "ce"),
        ("2*3*ce", "6*ce"),
        ("2*(ce - 3*(nce - mae(scale=1)))", "2*ce - 6*nce + 6*mae(scale=1)"),
        ("1*ce", "ce"),
        ("0*ce", "0*ce"),
        ("ce - -2*nce", "ce + 2*nce"),
        ("label_smoothing", "label_smoothing(loss=ce, r=0.1)"),
        ("label_smoothing(vce(4) + nce, -0.5)", "label_smoothing(loss=vce(a=4) + nce, r=-0.5)"),
        ("label_smoothing('vce(4)')", "label_smoothing(loss=vce(a=4), r=0.1)"),
        ("label_smoothing(r=-0.0)", "label_smoothing(loss=ce, r=0)"),
        ("bootstrap(hard=true)", "bootstrap(loss=ce, beta=0.95, hard=true)"),
        ("bootstrap(hard=True)", "bootstrap(loss=ce, beta=0.95, hard=true)"),
        ("bounded(ce, 3, shift)", 'bounded(loss=ce, v=3, by="shift")'),
        ("bounded(by='shift', loss=ce)", 'bounded(loss=ce, v=2, by="shift")'),
        ("forward_correction(T=[[0.5,.5],(0, 1)])", "forward_correction(loss=ce, T=[[0.5, 0.5], [0, 1]])"),
        ("gce(q=1e-7)", "gce(q=1e-07)"),
        ("taylor_ce(3.0)", "taylor_ce(t=3)"),
    ],
)
def test_spellings(text: str, canonical: str) -> None:
    assert str(loss(text)) == repr(loss(text)) == canonical
    assert str(loss(canonical)) == canonical


def caret(error: SpecError) -> str:
    """What stands above the caret and after."""
    _, shown, mark, *_ = str(error).split("\n")
    return shown[mark.index("^") :]


@pytest.mark.parametrize(
    ("text", "problem", "place", "allowed"),
    [
        ("nce + 10*vcee(a=4)", "unknown loss 'vcee'; did you mean 'vce'?", "vcee(a=4)", "known: ce, mae"),
        ("nce\n+ 10*\nvcee(a=4)", "unknown loss 'vcee'", "vcee(a=4)", "known: ce"),
        ("  \n nce +\r\n\tvcee", "unknown loss 'vcee'", "vcee", "known: ce"),
        ("nce +\r vcee", "unknown loss 'vcee'", "vcee", "known: ce"),
        ("größe + ce", "unknown loss 'größe'", "größe + ce", "known: ce"),
        ("ce + 'ü' * größe", "a loss can be multiplied by a number only", "'ü' * größe", "a spec is made of"),
        ("bounded(ce, by='größer')", "by='größer' is not allowed", "'größer')", ""),
        ("label_smoothing(größe) + vcee", "unknown loss 'vcee'", "vcee", "known"),
        ("label_smoothing('ü', r=1) + vce(b=1)", "no parameter 'b'", "b=1)", "vce takes: a"),
        ("nce + label_smoothing('ce + ü')", "unknown loss 'ü'", "ü", "known"),
        ("label_smoothing(loss=nce, r='ü') + vce", "r='ü' is not allowed", "'ü'", ""),
        ("vce(b=4)", "vce has no parameter 'b'", "b=4", "vce takes: a"),
        ("label_smoothing(los=ce)", "no parameter 'los'; did you mean 'loss'?", "los=ce", "takes: loss, r"),
        ("ce(4)", "too many arguments for ce", "4)", "ce takes no parameters"),
        ("vce(1, 2)", "too many arguments for vce", "2)", "vce takes: a"),
        ("vce(*[1])", "too many arguments for vce", "*[1]", "vce takes: a"),
        ("vce(**a)", "vce has no parameter '**'", "**a", "vce takes: a"),
        ("vce(1, a=2)", "a is given twice", "a=2", "vce takes: a"),
        ("vce(a=1, a=2)", "a is given twice", "a=2", "vce takes: a"),
        ("nce + 4", "a number (4) is no loss", "4", "a spec is made of"),
        ("4", "a number (4) is no loss", "4", "a spec is made of"),
        ("2*-3", "a number", "2*-3", "a spec is made of"),
        ("label_smoothing(0.1)", "a number (0.1) is no loss", "0.1)", "a spec is made of"),
        ("nce + ce*vce", "a loss can be multiplied by a number only", "ce*vce", "a spec is made of"),
        ("True*ce", "a loss can be multiplied by a number only", "True*ce", "a spec is made of"),
        ("1j*ce", "a loss can be multiplied by a number only", "1j*ce", "a spec is made of"),
        ("nce + ce/2", "a loss is expected here", "ce/2", "a spec is made of"),
        ("ce**2", "a loss is expected here", "ce**2", "a spec is made of"),
        ("ce @ nce", "a loss is expected here", "ce @ nce", "a spec is made of"),
        ("+ce", "a loss is expected here", "+ce", "a spec is made of"),
        ("nce + torch.x", "a loss is expected here", "torch.x", "a spec is made of"),
        ("ce.real()", "a loss is expected here", "ce.real()", "a spec is made of"),
        ("ce[0]", "a loss is expected here", "ce[0]", "a spec is made of"),
        ("f'{ce}'", "a loss is expected here", "f'{ce}'", "a spec is made of"),
        ("'ce'", "a loss is expected here", "'ce'", "a spec is made of"),
        ("lambda: ce", "a loss is expected here", "lambda: ce", "a spec is made of"),
        ("[ce for x in y]", "a loss is expected here", "[ce for", "a spec is made of"),
        ("ce if 1 else nce", "a loss is expected here", "ce if", "a spec is made of"),
        ("ce, nce", "a loss is expected here", "ce, nce", "a spec is made of"),
        ("__import__('os').system('true')", "a loss is expected here", "__import__", "a spec is made of"),
        ("__import__('os')", "unknown loss '__import__'", "__import__", "known: ce"),
        ("vce(a=__import__('os'))", "this is no value", "__import__", "allowed: a number, a word"),
        ("vce(a=f'{1}')", "this is no value", "f'{1}'", "allowed: a number, a word"),
        ("vce(a=1/2)", "this is no value", "1/2", "allowed: a number, a word"),
        ("vce(a=ce)", "a='ce' is not allowed; a >= 0", "ce)", ""),
        ("vce(a='4')", "a='4' is not allowed; a >= 0", "'4'", ""),
        ("vce(a=[4])", "a=[4] is not allowed; a >= 0", "[4]", ""),
        ("nce + vce(a=-1)", "vce: a=-1 is not allowed; a >= 0", "-1)", ""),
        ("vce(a=true)", "a=True is not allowed", "true)", ""),
        ("vce(a=nan)", "a='nan' is not allowed", "nan)", ""),
        ("vce(a=1e999)", "too large a number", "1e999", ""),
        ("1e999*ce", "too large a number", "1e999*ce", ""),
        ("1e200*1e200*ce", "too large a number", "1e200*1e200*ce", ""),
        ("1e200*(1e200*ce)", "too large a number", "1e200*(1e200", ""),
        (f"{'9' * 70}{'0' * 300}*ce", "too large a number", "9999", ""),
        ("taylor_ce(t=1.5)", "t=1.5 is not allowed; t >= 1, a whole number", "1.5)", ""),
        ("bootstrap(hard=1)", "hard=1 is not allowed; hard is true or false", "1)", ""),
        ("bounded(by=shfit)", "by='shfit' is not allowed; by is one of 'shift'", "shfit)", ""),
        ("forward_correction", "forward_correction needs T", "forward_correction", "T: T[i][j]"),
        ("ce + forward_correction(ce)", "forward_correction needs T", "forward_correction(ce)", "T: T[i][j]"),
        ("nce + (ce", "this is not a spec", "(ce", "a spec is made of"),
        ("nce) + (ce", "this is not a spec", ") + (ce", "a spec is made of"),
        ("nce ce", "this is not a spec", "", "a spec is made of"),
        ("nce # + ce", "this is not a spec", "# + ce", "a spec is made of"),
        ("nce; ce", "this is not a spec", "; ce", "a spec is made of"),
        ("import os", "this is not a spec", "import os", "a spec is made of"),
        ("nce +", "this is not a spec", "", "a spec is made of"),
        ("größe + vce(a=4) ) + ü", "this is not a spec", ") + ü", "a spec is made of"),
        ("vce(a:=4)", "this is no value", "a:=4", "allowed: a number, a word"),
        ("nce + \0", "this is not a spec", "", "a spec is made of"),
    ],
)
def test_a_bad_spec_is_refused_with_a_caret_under_the_place(text: str, problem: str, place: str, allowed: str) -> None:
    with pytest.raises(SpecError) as caught:
        loss(text)
    message = str(caught.value)
    assert problem in message.split("\n")[0]
    assert caret(caught.value).startswith(place)
    assert allowed in message.split("\n", 3)[-1] if allowed else len(message.split("\n")) == 3


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_spec_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="the spec is empty"):
        loss(text)


@pytest.mark.parametrize("value", [None, 4, ["ce"], b"ce", CE])
def test_something_else_than_a_spec_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="a spec is a string"):
        loss(value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "ce" + ")" * 10_000,
        "-" * 100_000 + "ce",
        " + ".join(["ce"] * 50_000),
        "1*" * 50_000 + "ce",
        "label_smoothing(" * 500 + "ce" + ")" * 500,
        "9" * 10_000 + "*ce",
    ],
)
def test_endless_nesting_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        loss(text)
    assert len(str(caught.value)) < 1000


def test_a_long_spec_is_shown_around_the_place_only() -> None:
    text = " + ".join(["ce"] * 60) + " + vcee + " + " + ".join(["ce"] * 60)
    with pytest.raises(SpecError) as caught:
        loss(text)
    assert caret(caught.value).startswith("vcee")
    assert max(map(len, str(caught.value).split("\n")[:3])) < 200


def test_options_go_to_the_whole_and_are_no_part_of_the_spec() -> None:
    options: dict[str, Any] = {"weight": [1.0, 2.0, 3.0], "ignore_index": 1, "reduction": "sum"}
    for text in ("vce(a=4)", "nce + 10*vce(a=4)", "label_smoothing(loss=nce, r=0.2)", "sparse(ce, weight=2)"):
        built = loss(text, **options)
        assert str(built) == str(loss(text))
        assert built.weight is not None
        assert built.weight.tolist() == [1.0, 2.0, 3.0]
        assert (built.ignore_index, built.reduction) == (1, "sum")
    assert LabelSmoothing(loss=NCE(), reduction="none").loss.reduction == "mean"


def test_a_loss_is_returned_as_it_is_and_takes_no_options_any_more() -> None:
    built = VCE(a=4)
    assert loss(built) is built
    with pytest.raises(ValueError, match="vce\\(a=4\\) is built already; options \\(reduction\\) go with a spec"):
        loss(built, reduction="sum")


@pytest.mark.parametrize("factor", [math.inf, -math.inf, math.nan])
def test_a_factor_is_finite(factor: float) -> None:
    with pytest.raises(ValueError, match="cannot be multiplied by"):
        factor * CE()


def test_python_algebra_writes_the_spec_that_it_means() -> None:
    combined = NCE() + 10 * VCE(a=4) - CE() * 0.5
    assert isinstance(combined, Sum)
    assert repr(combined) == str(combined) == "nce + 10*vce(a=4) - 0.5*ce"
    assert str(-combined) == "-nce - 10*vce(a=4) + 0.5*ce"
    assert str(2 * (NCE() - CE())) == "2*nce - 2*ce"
