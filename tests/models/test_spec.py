"""Specs of networks: what they read, how they are written, what their errors say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.models import ModelSpec
from unswayed.models.spec import NETWORKS
from unswayed.spec import SpecError

VALUES = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    st.booleans(),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
    st.lists(st.integers(0, 9), max_size=3),
)
NAMES = st.sampled_from(["timm:vit_base_patch16_224.augreg_in21k", "timm:hf-hub:me/net", "mine:Net", "a.b_2:C.make"])


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        ("cnn8", "cnn8"),
        (" CNN8 ", "cnn8"),
        ("cnn4()", "cnn4"),
        ("mlp", "mlp(hidden=512, depth=1)"),
        ("mlp(64, depth=2)", "mlp(hidden=64, depth=2)"),
        ("linear", "linear"),
        ("resnet34", "resnet34"),
        ("resnet34(stem=cifar)", "resnet34"),
        ('resnet18("imagenet")', 'resnet18(stem="imagenet")'),
        ("resnet50(imagenet)", "resnet50"),
        ("timm:resnet18.a1_in1k", "timm:resnet18.a1_in1k"),
        ("mine:Net( width = 2, act='relu', deep=true)", 'mine:Net(act="relu", deep=true, width=2)'),
        ("a.b:C.make()", "a.b:C.make"),
    ],
)
def test_specs_are_written_in_one_way(spec: str, written: str) -> None:
    parsed = ModelSpec.parse(spec)
    assert str(parsed) == written
    assert ModelSpec.parse(written) == parsed
    assert ModelSpec.parse(parsed) is parsed
    assert {parsed: 1}[ModelSpec.parse(written)] == 1


@given(NAMES, st.dictionaries(st.sampled_from(["width", "act", "x1", "lr_scale"]), VALUES))
def test_any_arguments_come_back(name: str, values: dict[str, object]) -> None:
    spec = ModelSpec(name, dict(sorted(values.items())))
    again = ModelSpec.parse(str(spec))
    assert (again.name, dict(again.values), str(again)) == (name, values, str(spec))


def test_every_network_reads_back() -> None:
    for name in NETWORKS:
        assert ModelSpec.parse(str(ModelSpec.parse(name))).name == name


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("cnn9", "unknown model 'cnn9'; did you mean 'cnn8'?"),
        ("mlp(hiden=3)", "mlp has no parameter 'hiden'; did you mean 'hidden'?"),
        ("mlp(hidden=0)", "mlp: hidden=0 is not allowed; hidden >= 1"),
        ("resnet18(stem=imagnet)", "did you mean 'imagenet'?"),
        ("cnn8 + cnn4", "the name of a model is expected here"),
        ("", "the spec is empty"),
        ("my-net:Net", "'my-net:Net' is no place of a network"),
        ("mine:Net(3)", "arguments for mine:Net are given by name"),
        ("mine:Net(**x)", "each argument is given once"),
        ("mine:Net(a=None)", "this is no value"),
        ("mine:Net(a=f(1))", "this is no value"),
        ("mine:Net(a=1", "this is not a spec"),
        ("mine:Net + 1", "this is not a spec"),
    ],
)
def test_errors_point_at_the_place(spec: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        ModelSpec.parse(spec)
    assert says in str(caught.value)
    if spec:
        assert f"\n  {spec}\n" in str(caught.value)


def test_the_caret_stands_below_what_is_wrong() -> None:
    with pytest.raises(SpecError) as caught:
        ModelSpec.parse("  timm:vit(drop=f(1))")
    _, line, caret, *_ = str(caught.value).split("\n")
    assert line[caret.index("^") :].startswith("f(1)")


def test_an_argument_twice_is_an_error() -> None:
    with pytest.raises(SpecError):
        ModelSpec.parse("mine:Net(a=1, a=2)")


def test_a_spec_is_a_string() -> None:
    with pytest.raises(ValueError, match="a spec is a string, not int"):
        ModelSpec.parse(8)  # type: ignore[arg-type]
