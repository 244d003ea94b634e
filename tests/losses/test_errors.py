"""Every kind of misuse is refused, with a message that names the value, what is allowed, and what to do."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unswayed
from losses_cases import DEFAULTS, build, draw, labels
from unswayed import (
    CE,
    GJS,
    MAE,
    NCE,
    NNCE,
    VCE,
    BackwardCorrection,
    Bounded,
    ForwardCorrection,
    LabelSmoothing,
    Sparse,
    functional,
    info,
)

Z, Y = draw(4, 3), labels(4, classes=3)


@pytest.mark.parametrize(
    ("logits", "target", "words"),
    [
        (Z.long(), Y, ["floating-point", "int64", "(4, 3)"]),
        (torch.tensor(1.0), Y, ["shape (N, K), (K,) or (N, K, d1, ...)", "()"]),
        (torch.zeros(4, 1), torch.zeros(4).long(), ["(4, 1)", "fewer than 2 classes", "torch.stack([0 * z, z], 1)"]),
        (torch.zeros(1), torch.tensor(0), ["(1,)", "fewer than 2 classes"]),
        (Z, Y[:3], ["target of class indices has shape (3,)", "(4, 3)", "need (4,)"]),
        (Z, Y[:, None], ["shape (4, 1)", "need (4,)"]),
        (torch.zeros(2, 3, 5), torch.zeros(2, 3).long(), ["shape (2, 3)", "need (2, 5)"]),
        (torch.zeros(3), torch.zeros(3).long(), ["need"]),
        (Z, torch.eye(3)[Y].long(), ["shape (4, 3)", "for one-hot labels use target.float()"]),
        (Z, Y.float(), ["torch.float32", "(4,)", "target.long()"]),
        (Z, torch.zeros(4, 2), ["torch.float32", "(4, 2)", "soft labels need the logits' shape (4, 3)"]),
        (Z, Y > 0, ["torch.bool", "target.long()"]),
        (Z, Z + 0j, ["torch.complex128", "probabilities"]),
        (Z, Y + 5, ["is out of range", "0 to 2", "(4, 3)", "ignore_index=-100"]),
        (Z, torch.tensor([0, 3, 1, 1]), ["target 3 is out of range", "0 to 2"]),
        (Z, torch.tensor([0, -1, 1, 1]), ["target -1 is out of range", "0 to 2"]),
        ([Z, Z], Y, ["takes one tensor of logits", "2", "gjs"]),
    ],
)
@pytest.mark.parametrize("fuse", [True, False])
def test_bad_logits_and_targets(
    logits: Any, target: Any, words: list[str], fuse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unswayed.losses.evidence, "_FUSE_FROM", 0 if fuse else 1 << 60)
    for criterion in (CE(), VCE(a=4, weight=[1.0, 2.0, 3.0]), NCE() + CE(), LabelSmoothing(loss=NCE())):
        with pytest.raises(ValueError) as caught:
            criterion(logits, target)
        assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("spec", DEFAULTS.values())
def test_a_target_out_of_range_is_found_by_every_loss(spec: str) -> None:
    for y in (3, -1):
        with pytest.raises(ValueError, match=rf"target {y} is out of range: class indices go from 0 to 2"):
            build(spec, 3)(Z, torch.full((4,), y))


def test_minus_100_is_a_wrong_label_where_another_one_is_ignored() -> None:
    for criterion in (CE(ignore_index=-1), NCE(ignore_index=0), MAE(ignore_index=5, reduction="none")):
        with pytest.raises(ValueError, match="target -100 is out of range"):
            criterion(Z, torch.tensor([1, -100, 1, 1]))


@pytest.mark.parametrize(("logits", "target"), [([[1.0, 2.0]], Y), (Z.numpy(), Y), (None, Y), (Z, [0, 1, 2, 0])])
def test_things_that_are_no_tensors(logits: Any, target: Any) -> None:
    with pytest.raises(TypeError, match=r"needs? a tensor"):
        CE()(logits, target)


def test_sample_weights_are_a_tensor() -> None:
    with pytest.raises(TypeError, match="sample_weight needs a tensor, not list"):
        CE()(Z, Y, sample_weight=[1.0, 2.0, 1.0, 1.0])  # type: ignore[arg-type]


def test_predictions_of_gjs_have_one_shape() -> None:
    with pytest.raises(ValueError, match=r"one shape, not \(4, 3\) and \(3, 3\)"):
        GJS()([Z, Z[:3]], Y)
    with pytest.raises(TypeError, match="need a tensor"):
        GJS()([], Y)


def test_soft_labels_and_an_ignored_class_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="ignore_index=1 has no meaning for soft labels"):
        CE(ignore_index=1)(Z, Z.softmax(1))


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0, -1.0, 1.0], r"weight\[1\] = -1.0 is not allowed; class weights are finite and >= 0"),
        ([1.0, 1.0, math.nan], r"weight\[2\] = nan is not allowed"),
        ([math.inf, 1.0, 1.0], r"weight\[0\] = inf is not allowed"),
        (torch.ones(1, 3), r"shape \(K,\), not \(1, 3\)"),
        (torch.tensor(2.0), r"shape \(K,\), not \(\)"),
    ],
)
def test_bad_class_weights(weight: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CE(weight=weight)
    with pytest.raises(ValueError, match=words):
        functional.vce(Z, Y, weight=weight)


def test_class_weights_are_as_many_as_classes() -> None:
    for target in (Y, Z.softmax(1)):
        with pytest.raises(ValueError, match="weight has 4 entries, but the logits have 3 classes"):
            CE(weight=[1.0] * 4)(Z, target)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (1,), (), (4, 5, 1)])
def test_sample_weights_have_one_entry_per_position_or_example(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sample_weight has shape .* \(4, 5\) or per example \(4,\)"):
        CE()(draw(4, 3, 5), labels(4, 5, classes=3), sample_weight=torch.ones(shape))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\)"):
        CE()(Z[0], Y[0], sample_weight=torch.ones(2))


@pytest.mark.parametrize("reduction", ["average", "Mean", "", None, True])
def test_bad_reductions(reduction: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"reduction={reduction!r} is not allowed; it is one of mean")):
        CE(reduction=reduction)
    with pytest.raises(ValueError, match="did you mean 'mean'"):
        CE(reduction="meen")


@pytest.mark.parametrize("ignore_index", [1.0, True, None, "1"])
def test_bad_ignore_index(ignore_index: Any) -> None:
    with pytest.raises(ValueError, match=r"ignore_index=.* is not allowed; it is a class index"):
        CE(ignore_index=ignore_index)


NUMBERS = [
    pytest.param(name, p, id=f"{name}-{p.name}")
    for name in unswayed.list_losses()
    for p in info(name).params
    if p.kind in ("number", "integer")
]


def with_param(name: str, key: str, value: Any) -> Any:
    needed = {"T": [[1.0, 0.0], [0.0, 1.0]], "then": "nce", "epoch": 1}
    required = {p.name: needed[p.name] for p in info(name).params if p.name in needed}
    return info(name).cls(**required | {key: value})


@pytest.mark.parametrize(("name", "param"), NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", True, None, 1j, [1.0], 10**400])
def test_a_parameter_is_a_finite_number(name: str, param: unswayed.Param, value: Any) -> None:
    if name in ("sparse", "elr") and param.name == "weight" and isinstance(value, list):
        value = "a sequence given as weight means class weights"
    with pytest.raises(ValueError, match=re.escape(f"{name}: {param.name}=")) as caught:
        with_param(name, param.name, value)
    assert f"is not allowed; {param.range}" in str(caught.value)


@pytest.mark.parametrize(("name", "param"), NUMBERS)
def test_the_range_of_a_parameter_ends_where_it_says(name: str, param: unswayed.Param) -> None:
    step = 1 if param.kind == "integer" else None
    for end, is_open, outward in ((param.low, param.open_low, -math.inf), (param.high, param.open_high, math.inf)):
        if not math.isfinite(end):
            continue
        outside = math.nextafter(end, outward) if step is None else end + math.copysign(step, outward)
        inside = math.nextafter(end, -outward) if step is None else end
        for value in (outside, end) if is_open else (outside,):
            message = f"{name}: {param.name}={value!r} is not allowed; {param.range}"
            with pytest.raises(ValueError, match=re.escape(message)):
                param.check(name, value)
            with pytest.raises(ValueError, match=re.escape(message)):
                with_param(name, param.name, value)
        assert param.check(name, inside) == inside
        if not is_open:
            assert with_param(name, param.name, end).params[param.name] == end


@pytest.mark.parametrize("spec", ["agce(a=100, q=1000)", "aul(a=100, q=1000)"])
def test_a_power_that_no_float_holds_is_refused_when_the_loss_is_built(spec: str) -> None:
    with pytest.raises(unswayed.SpecError, match=r"\^1000 is too large a number; give a smaller a or q"):
        unswayed.loss(spec)


@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_a_flag_is_true_or_false(value: Any) -> None:
    with pytest.raises(ValueError, match=r"bootstrap: hard=.* is not allowed; hard is true or false"):
        unswayed.Bootstrap(hard=value)


@pytest.mark.parametrize("name", unswayed.list_losses())
def test_an_unknown_parameter_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} has no parameter 'nonsense'"):
        with_param(name, "nonsense", 3)


def test_an_unknown_parameter_gets_a_hint() -> None:
    with pytest.raises(TypeError, match="ce has no parameter 'a'; it takes none"):
        CE(a=3)
    with pytest.raises(TypeError, match="gjs has no parameter 'pie'; did you mean 'pi'"):
        GJS(pie=0.5)


@pytest.mark.parametrize(
    "options", [{"reduction": "sum"}, {"ignore_index": 0}, {"weight": [1.0, 2.0]}], ids=lambda o: next(iter(o))
)
def test_losses_of_different_options_are_not_added(options: dict[str, Any]) -> None:
    for left, right in ((CE(), NCE(**options)), (NCE(**options), CE())):
        with pytest.raises(ValueError, match=r"have different options .* build both with the same ones"):
            left + right
    with pytest.raises(ValueError, match="different options"):
        CE(weight=[1.0, 1.0]) + NCE(weight=[1.0, 2.0])


@pytest.mark.parametrize("name", [name for name in unswayed.list_losses() if info(name).wrapper])
@pytest.mark.parametrize("options", [{"reduction": "none"}, {"ignore_index": 0}, {"weight": [1.0, 2.0]}])
def test_a_loss_inside_another_has_no_options_of_its_own(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{name}: the loss inside has options of its own; give weight"):
        with_param(name, "loss", CE(**options))


@pytest.mark.parametrize("name", [name for name in unswayed.list_losses() if info(name).wrapper])
@pytest.mark.parametrize("inside", [3, None, torch.nn.CrossEntropyLoss(), CE])
def test_a_wrapper_takes_losses_only(name: str, inside: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: loss=.* is not allowed; give a loss or its spec, like 'nce'"):
        with_param(name, "loss", inside)


def test_a_wrapper_reads_specs_with_their_errors() -> None:
    assert str(LabelSmoothing("vce(4)")) == "label_smoothing(loss=vce(a=4), r=0.1)"
    with pytest.raises(unswayed.SpecError, match="did you mean 'vce'"):
        LabelSmoothing("vcee")


@pytest.mark.parametrize("cls", [ForwardCorrection, BackwardCorrection])
@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (None, "needs T, the matrix of how labels go wrong"),
        ([[0.5, 0.5]], r"T has shape \(1, 2\); it needs K rows and K columns"),
        ([[1.0]], r"shape \(1, 1\); .* K of 2 or more"),
        ([0.5, 0.5], r"shape \(2,\)"),
        ([[1.0, 0.0], [1.0]], "rows of one length"),
        ([["a", "b"], ["c", "d"]], "not a table of numbers"),
        ([[0.9, 0.2], [0.5, 0.5]], r"row 0 sums to 1\.1; each row must sum to 1"),
        ([[1.1, -0.1], [0.5, 0.5]], r"entry \[0\]\[1\] is -0\.1; probabilities lie between 0 and 1"),
        ([[1.0, math.nan], [0.5, 0.5]], r"entry \[0\]\[1\] is nan"),
        ("nowhere/T.csv", "'nowhere/T.csv': there is no such file"),
        ("T.txt", r"'T\.txt': give a \.csv file"),
    ],
)
def test_bad_matrices(cls: type[ForwardCorrection], matrix: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        cls(T=matrix)
    assert cls.name in str(caught.value)


def test_a_matrix_must_be_of_use() -> None:
    even = [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match="backward_correction: T cannot be inverted"):
        BackwardCorrection(T=even)
    assert ForwardCorrection(T=even)(Z[:, :2], Y.clamp_max(1)).item() == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="forward_correction: column 1 of T is all 0"):
        ForwardCorrection(T=[[1.0, 0.0], [1.0, 0.0]])
    for cls in (ForwardCorrection, BackwardCorrection):
        with pytest.raises(ValueError, match=f"{cls.name}: T has 2 classes, but the logits have 3"):
            cls(T=[[0.9, 0.1], [0.2, 0.8]])(Z, Y)


def test_matrices_come_from_lists_arrays_tensors_and_files(tmp_path: Path) -> None:
    rows = [[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.1, 0.3, 0.6]]
    np.save(tmp_path / "T.npy", np.array(rows))
    np.savetxt(tmp_path / "T.csv", np.array(rows), delimiter=",")
    expected = ForwardCorrection(T=rows)(Z, Y)
    files = [str(tmp_path / "T.npy"), str(tmp_path / "T.csv")]
    for source in (np.array(rows), torch.tensor(rows, dtype=torch.float64), *files):
        built = ForwardCorrection(T=source)
        torch.testing.assert_close(built(Z, Y), expected)
        torch.testing.assert_close(unswayed.loss(str(built))(Z, Y), expected)
    (tmp_path / "broken.csv").write_text("1,2\n3\n")
    with pytest.raises(ValueError, match=r"broken\.csv' cannot be read"):
        ForwardCorrection(T=str(tmp_path / "broken.csv"))


@pytest.mark.parametrize(
    ("inside", "by", "words"),
    [
        ("nce", "linear", "bounded: nce is no function of the given class's probability alone"),
        ("ce + nce", "shift", "no function of the given class's probability alone"),
        ("label_smoothing", "linear", "no function of the given class's probability alone"),
        ("focal(gamma=2)", "linear", r"slope of focal\(gamma=2\) vanishes at u = 1.*use by='base' or by='shift'"),
        ("vsl(a=1)", "linear", "vanishes at u = 1"),
        ("focal(gamma=2)", "shift", r"by='shift' cannot give focal\(gamma=2\) .* ratio 2; .*try by='linear'"),
        ("gce(q=0.5)", "base", r"by='base' cannot give gce\(q=0.5\) the variation ratio 2; .*same ratio for every c"),
    ],
)
def test_losses_that_cannot_be_bounded(inside: str, by: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Bounded(inside, v=2, by=by)


def test_a_floor_above_one_over_k_is_found_when_k_is_known() -> None:
    with pytest.raises(ValueError, match=r"nnce: p_min=0.4 is not below 1/K = 1/3; give a smaller one"):
        NNCE(p_min=0.4)(Z, Y)


def test_a_loss_that_is_no_function_of_u_alone_says_so() -> None:
    with pytest.raises(TypeError, match="nce is no function of the given class's probability alone"):
        NCE().pointwise(torch.zeros(1))


def test_class_weights_of_sparse_have_a_name_of_their_own() -> None:
    weight = [1.0, 2.0, 3.0]
    results = [
        Sparse(class_weight=weight)(Z, Y),
        Sparse(weight=weight)(Z, Y),
        functional.sparse(Z, Y, class_weight=weight),
        unswayed.loss("sparse", weight=weight)(Z, Y),
        unswayed.loss("sparse(ce, 0.5, 0.1, weight=1.2)", weight=weight)(Z, Y),
    ]
    assert len({value.item() for value in results}) == 1
    assert results[0] != Sparse()(Z, Y)
    with pytest.raises(ValueError, match="sparse: weight=-1 is not allowed; weight >= 0"):
        Sparse(weight=-1)
