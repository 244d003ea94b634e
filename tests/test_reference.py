"""The references agree with the numbers of public code (the golden file) and with the losses' identities."""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reference import REFERENCES, Loss, ce, inverse, l2_norm, probabilities, soft

SHARED = Path(os.environ.get("UNSWAYED_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GOLDEN = SHARED / "golden" / "losses-k10.json"

# Public eps-softmax code clamps the changed probability at 1e-8, so its CE never exceeds -log 1e-8 = 18.42.
# It acts on example 2 of the golden file (p~_y = 7e-9, CE 18.72), where the public gradient is zero as well.
PUBLIC_CEILING = {"eps": -math.log(1e-8)}

T = [[0.7, 0.2, 0.1], [0.0, 0.9, 0.1], [0.3, 0.1, 0.6]]
SWAP = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]  # needs a change of pivot to be inverted


def loss_of(spec: ast.expr) -> Loss:
    """The reference with its parameters for `name` or `name(key=value, ...)`; a missing inner loss is CE."""
    if isinstance(spec, ast.Name):
        name, keywords = spec.id, []
    elif isinstance(spec, ast.Call) and isinstance(spec.func, ast.Name) and not spec.args:
        name, keywords = spec.func.id, spec.keywords
    else:
        raise ValueError(f"not a loss: {ast.unparse(spec)}")
    params: dict[str, Any] = {"loss": ce} if "loss" in inspect.signature(REFERENCES[name]).parameters else {}
    for keyword in keywords:
        assert keyword.arg is not None
        value = keyword.value
        params[keyword.arg] = loss_of(value) if keyword.arg == "loss" else ast.literal_eval(value)
    return partial(REFERENCES[name], **params)


def parse(spec: str) -> Loss:
    return loss_of(ast.parse(spec, mode="eval").body)


def draws(classes: int, number: int, scale: float = 2.0) -> list[list[float]]:
    generator = random.Random(classes)
    return [[generator.gauss(0, scale) for _ in range(classes)] for _ in range(number)]


EXAMPLES = [(logits, y) for classes in (2, 3, 10) for logits in draws(classes, 4) for y in range(classes)]


def assert_same(left: Loss, right: Loss, rel: float = 1e-12, abs_: float = 1e-14) -> None:
    for logits, y in EXAMPLES:
        assert left(logits, y) == pytest.approx(right(logits, y), rel=rel, abs=abs_)


def golden_cases() -> list[Any]:
    if not GOLDEN.exists():
        skip = pytest.mark.skip(reason=f"no golden file at {GOLDEN}")
        return [pytest.param({}, {}, id="absent", marks=skip)]
    golden = json.loads(GOLDEN.read_text())
    return [pytest.param(golden, entry, id=entry["name"]) for entry in golden["losses"]]


@pytest.mark.parametrize(("golden", "entry"), golden_cases())
def test_mean_is_that_of_public_code(golden: dict[str, Any], entry: dict[str, Any]) -> None:
    loss = parse(entry["spec"])
    ceiling = PUBLIC_CEILING.get(entry["name"], math.inf)
    values = [min(loss(z, y), ceiling) for z, y in zip(golden["logits"], golden["target"], strict=True)]
    assert math.fsum(values) / len(values) == pytest.approx(entry["mean"], rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("vce(a=0)", "ce"),
        ("vel(a=1.2)", f"ael(a={1 / math.log(1.2)})"),
        ("vel(a=5)", f"ael(a={1 / math.log(5)})"),
        ("gce(q=1)", "mae(scale=1)"),
        ("taylor_ce(t=1)", "mae(scale=1)"),
        ("agce(a=3, q=1)", "mae(scale=1)"),
        ("aul(a=3, q=1)", "mae(scale=1)"),
        ("rce(A=-4)", "mae(scale=4)"),
        ("sce(alpha=0, beta=0.5, A=-4)", "mae(scale=2)"),
        ("focal(gamma=0)", "ce"),
        ("nfl(gamma=0)", "nce"),
        ("ngce(q=1)", "nmae"),
        ("nrce", "nmae"),
        ("nnfl(gamma=0, p_min=1e-7)", "nnce(p_min=1e-7)"),
        ("phuber_ce(tau=1e9)", "ce"),
        ("phuber_gce(q=0.7, tau=1e9)", "gce(q=0.7)"),
        ("label_smoothing(loss=gce(q=0.7), r=0)", "gce(q=0.7)"),
        ("logit_clip(loss=gce(q=0.7), norm=1e9)", "gce(q=0.7)"),
        ("eps_softmax(loss=gce(q=0.7), m=0)", "gce(q=0.7)"),
        ("bootstrap(loss=gce(q=0.7), beta=1, hard=False)", "gce(q=0.7)"),
        ("bootstrap(loss=gce(q=0.7), beta=1, hard=True)", "gce(q=0.7)"),
    ],
)
def test_two_names_for_one_loss(left: str, right: str) -> None:
    assert_same(parse(left), parse(right))


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (f"vel(a={math.e})", lambda p: math.exp(-p)),
        ("vsl(a=1)", lambda p: math.log((1 + p) / 2) ** 2),
        ("vsl(a=0.5)", lambda p: 2 * math.log((1 + p / 2) / 2) ** 2),
        ("vce(a=4)", lambda p: -math.log(p + 4)),
        ("taylor_ce(t=2)", lambda p: (1 - p) + (1 - p) ** 2 / 2),
        ("gce(q=0.5)", lambda p: 2 - 2 * math.sqrt(p)),
        ("agce(a=2, q=2)", lambda p: (9 - (2 + p) ** 2) / 2),
        ("aul(a=2, q=2)", lambda p: ((2 - p) ** 2 - 1) / 2),
    ],
)
def test_closed_form_in_the_given_probability(spec: str, formula: Any) -> None:
    assert_same(parse(spec), lambda logits, y: formula(probabilities(logits)[y]))


def test_small_q_approaches_ce_and_vce() -> None:
    assert_same(parse("gce(q=1e-8)"), ce, rel=1e-6, abs_=1e-6)
    vce = parse("vce(a=4)")
    assert_same(parse("agce(a=4, q=1e-8)"), lambda z, y: vce(z, y) + math.log(5), rel=1e-6, abs_=1e-6)


def test_js_with_a_small_label_weight_approaches_ce() -> None:
    assert_same(parse("js(pi=1e-7)"), ce, rel=1e-3, abs_=1e-6)


def test_js_with_a_large_label_weight_approaches_one_minus_p() -> None:
    """JS = (1 - p) + (1 - p + p log p) / -log w + O(w), w = 1 - pi: the limit comes only as 1 / log w."""
    w = 1e-6

    def expansion(logits: Any, y: int) -> float:
        p = probabilities(logits)[y]
        return (1 - p) + (1 - p + p * math.log(p)) / -math.log(w)

    assert_same(parse(f"js(pi={1 - w})"), expansion, rel=1e-5, abs_=1e-9)


def test_gjs_of_one_prediction_or_of_equal_ones_is_js() -> None:
    for predictions in (1, 3):
        assert_same(
            lambda z, y, m=predictions: REFERENCES["gjs"]([z] * m, y, pi=0.3),  # type: ignore[misc]
            parse("js(pi=0.3)"),
        )


def test_gjs_penalises_predictions_that_differ() -> None:
    first, second = draws(5, 2)
    apart = REFERENCES["gjs"]([first, second], 0, pi=0.3)
    mean = [(a + b) / 2 for a, b in zip(probabilities(first), probabilities(second), strict=True)]
    assert apart > REFERENCES["gjs"]([[math.log(p) for p in mean]], 0, pi=0.3)


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ("mae(scale=2)", lambda classes: 2 * (classes - 1)),
        ("nmae", lambda classes: 1),
        ("nrce", lambda classes: 1),
        ("nce", lambda classes: 1),
        ("nfl(gamma=0.5)", lambda classes: 1),
        ("ngce(q=0.7)", lambda classes: 1),
        ("nnce(p_min=1e-7)", lambda classes: classes - 1),
        ("nnce(p_min=1e-2)", lambda classes: classes - 1),  # here the clamp acts
        ("nnfl(gamma=0.5, p_min=1e-7)", lambda classes: classes - 1),
    ],
)
def test_symmetric_losses_have_a_constant_sum(spec: str, total: Any) -> None:
    loss = parse(spec)
    for logits in (logits for logits, y in EXAMPLES if y == 0):
        assert soft(loss, logits, [1.0] * len(logits)) == pytest.approx(total(len(logits)), rel=1e-12)


@pytest.mark.parametrize(("spec", "u"), [("phuber_ce(tau=4)", 1 / 4), ("phuber_gce(q=0.5, tau=4)", 4**-2)])
def test_phuber_is_continuous_with_slope_minus_tau_below_the_joint(spec: str, u: float) -> None:
    def at(p: float) -> float:
        return parse(spec)([math.log(p), math.log(1 - p)], 0)

    step = 1e-6
    assert at(u - step) - at(u) == pytest.approx(4 * step, rel=1e-6)
    assert at(u) - at(u + step) == pytest.approx(4 * step, rel=1e-4)


def test_label_smoothing_is_a_change_of_label() -> None:
    for r in (0.1, -2.0):

        def smoothed(logits: Any, y: int, r: float = r) -> float:
            return soft(ce, logits, [(1 - r) * (k == y) + r / len(logits) for k in range(len(logits))])

        assert_same(smoothed, parse(f"label_smoothing(r={r})"))


def test_logit_clip_bounds_the_norm() -> None:
    clipped = parse("logit_clip(norm=0.5)")
    for logits, y in EXAMPLES:
        unit = [z / l2_norm(logits) for z in logits]
        short = [0.25 * u for u in unit]
        assert l2_norm(logits) > 0.5
        assert clipped(logits, y) == pytest.approx(ce([0.5 * u for u in unit], y), rel=1e-12)
        assert clipped(short, y) == ce(short, y)


def test_eps_softmax_is_nll_of_the_moved_probabilities() -> None:
    logits = [math.log(0.5), math.log(0.3), math.log(0.2)]
    assert parse("eps_softmax(m=3)")(logits, 0) == pytest.approx(-math.log(3.5 / 4), rel=1e-12)
    assert parse("eps_softmax(loss=mae(scale=1), m=3)")(logits, 1) == pytest.approx(1 - 0.3 / 4, rel=1e-12)


def test_sparse_adds_the_lp_penalty_of_the_scaled_probabilities() -> None:
    logits = [3.0, 4.0]
    p = probabilities([1.2, 1.6])  # (3, 4) / 5 / 0.5
    expected = -math.log(p[1]) + 2 * (p[0] ** 0.1 + p[1] ** 0.1)
    assert parse("sparse(temperature=0.5, p=0.1, weight=2)")(logits, 1) == pytest.approx(expected, rel=1e-12)


def test_bootstrap_mixes_the_label_with_the_prediction() -> None:
    logits = [math.log(0.5), math.log(0.3), math.log(0.2)]
    entropy = -(0.5 * math.log(0.5) + 0.3 * math.log(0.3) + 0.2 * math.log(0.2))
    soft_value = parse("bootstrap(beta=0.8, hard=False)")(logits, 2)
    hard_value = parse("bootstrap(beta=0.8, hard=True)")(logits, 2)
    assert soft_value == pytest.approx(-0.8 * math.log(0.2) + 0.2 * entropy, rel=1e-12)
    assert hard_value == pytest.approx(-0.8 * math.log(0.2) - 0.2 * math.log(0.5), rel=1e-12)


def test_forward_correction_is_nll_of_the_given_label() -> None:
    p = [0.5, 0.3, 0.2]
    logits = [math.log(p_k) for p_k in p]
    given = 0.5 * 0.2 + 0.3 * 0.9 + 0.2 * 0.1
    assert parse(f"forward_correction(T={T})")(logits, 1) == pytest.approx(-math.log(given), rel=1e-12)


def test_backward_correction_is_unbiased() -> None:
    """sum_j T_ij L_backward(p, j) = L(p, i)."""
    for inner in ("ce", "gce(q=0.7)"):
        corrected = parse(f"backward_correction(loss={inner}, T={T})")
        for logits in draws(3, 4):
            for i in range(3):
                assert soft(corrected, logits, T[i]) == pytest.approx(parse(inner)(logits, i), rel=1e-12)


@pytest.mark.parametrize("matrix", [T, SWAP])
def test_inverse(matrix: list[list[float]]) -> None:
    inverted = inverse(matrix)
    for i in range(3):
        for j in range(3):
            entry = math.fsum(matrix[i][k] * inverted[k][j] for k in range(3))
            assert entry == pytest.approx(float(i == j), abs=1e-12)


def test_far_tail_is_finite() -> None:
    assert ce([1e4, -1e4], 1) == pytest.approx(2e4, rel=1e-12)
    assert parse("js(pi=0.5)")([1e4, -1e4], 1) == pytest.approx(2.0, rel=1e-12)
