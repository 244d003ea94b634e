"""Losses that change while they train: what they remember, what they do with it, and that nothing of it is lost."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import reference
import unswayed
from losses_cases import draw, grad, labels, oracle
from unswayed import ELR, OGC, After, Loss, TruncatedGCE, info, list_losses, loss, theory
from unswayed.losses.adaptive import clip_point
from unswayed.losses.mixture import fit

SPECS = ["ogc", "ogc(loss=gce(q=0.7), budget=5, every=2, window=12)", "elr", "elr(loss=vce(a=1), beta=0.9, weight=1)"]
SPECS += ["truncated_gce", "truncated_gce(q=0.5, k=0.3, start=1, every=1)", "after(loss=ce, then=vce(a=4), epoch=2)"]
SPECS += ["nce + 2*elr(loss=ce, beta=0.5, weight=1, p_min=0.01)", "after(loss=ce, then=elr(loss=nce), epoch=1)"]
TOY = (0.3, 3.0), (0.3, 1.0)


def call(criterion: Loss, logits: Tensor, target: Tensor, **told: Any) -> Tensor:
    """A call with all that any loss wants."""
    result: Tensor = criterion(logits, target, **{"index": torch.arange(len(logits)), "epoch": 0, "lr": 0.1} | told)
    return result


def trained(criterion: Loss, steps: int = 5) -> Loss:
    """The loss after some steps."""
    for step in range(steps):
        index = torch.arange(6) + 3 * (step % 3)
        logits, target = draw(6, 4, seed=step), labels(6, classes=4, seed=step)
        call(criterion, logits, target, index=index, epoch=step // 2)
    return criterion


def test_the_registry_says_what_each_loss_wants() -> None:
    for name in list_losses():
        assert info(name).cls.wants == set(info(name).wants), name


@pytest.mark.parametrize("spec", SPECS)
def test_specs_round_trip(spec: str) -> None:
    assert str(loss(str(loss(spec)))) == str(loss(spec))


@pytest.mark.parametrize("spec", SPECS)
def test_copies_pickles_and_state_dicts_go_on_as_the_loss_itself(spec: str) -> None:
    used = trained(loss(spec))
    restored = loss(spec)
    restored.load_state_dict(pickle.loads(pickle.dumps(used.state_dict())))
    others = [copy.deepcopy(used), pickle.loads(pickle.dumps(used)), restored]
    logits, target = draw(5, 4, seed=9), labels(5, classes=4)
    index = torch.tensor([11, 0, 30, 4, 8])
    expected = [call(used, logits, target, index=index, epoch=3) for _ in range(3)]
    for other in others:
        found = [call(other, logits, target, index=index, epoch=3) for _ in range(3)]
        assert found == expected
        state = other.state_dict()
        assert all(torch.equal(value, state[key]) for key, value in used.state_dict().items() if "extra" not in key)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_in_training_are_those_of_differences(spec: str) -> None:
    used, target = trained(loss(spec)), labels(6, classes=4)

    def value(logits: Tensor) -> Tensor:
        return call(copy.deepcopy(used).eval(), logits, target, epoch=3)

    logits = draw(6, 4, seed=5)
    # After a call with the same prediction nothing that a loss remembers moves with it.
    found = grad(lambda z: call(used, z, target, epoch=3), logits)
    steps = torch.eye(24, dtype=torch.float64).view(24, 6, 4) * 1e-6
    expected = torch.stack([(value(logits + step) - value(logits - step)) / 2e-6 for step in steps]).view(6, 4)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("spec", SPECS)
def test_out_of_training_a_call_changes_nothing(spec: str) -> None:
    used = trained(loss(spec)).eval()
    before = copy.deepcopy(used.state_dict())
    logits, target = draw(5, 4, seed=9), labels(5, classes=4)
    assert used(logits, target) == used(logits, target)
    assert call(used, logits, target) == call(used, logits, target)
    after = used.state_dict()
    assert set(after) == set(before)
    assert all(
        torch.equal(value, after[key]) if isinstance(value, Tensor) else value == after[key]
        for key, value in before.items()
    )


@pytest.mark.parametrize(("spec", "name"), [("ogc", "lr"), ("elr", "index"), ("truncated_gce", "index")])
def test_in_training_what_a_loss_wants_must_be_told(spec: str, name: str) -> None:
    criterion = loss(f"ce + {spec}")
    with pytest.raises(ValueError, match=f"wants {name}=, .*: criterion\\(logits, target, {name}={name}\\)"):
        criterion(draw(5, 4), labels(5, classes=4))
    with pytest.raises(ValueError, match="wants epoch=, the number of the epoch, from 0"):
        After("ce", "nce", 3)(draw(5, 4), labels(5, classes=4))


@pytest.mark.parametrize("index", [torch.arange(4), torch.arange(5.0), torch.arange(10).view(5, 2), torch.ones(5) > 0])
def test_a_bad_index_is_refused(index: Tensor) -> None:
    with pytest.raises(ValueError, match=r"index is .* it needs a whole number for each of the 5 examples"):
        ELR()(draw(5, 4), labels(5, classes=4), index=index)
    with pytest.raises(ValueError, match=r"index=-1 is not allowed; rows of the training set start at 0"):
        ELR()(draw(5, 4), labels(5, classes=4), index=torch.arange(5) - 1)
    with pytest.raises(TypeError, match="index needs a tensor, not list"):
        ELR()(draw(5, 4), labels(5, classes=4), index=[0, 1, 2, 3, 4])  # type: ignore[arg-type]
    small = ELR(), ELR()
    rows = torch.tensor([1, 0, 1, 2, 200], dtype=torch.uint8)
    values = [each(draw(5, 4), labels(5, classes=4), index=i) for each, i in zip(small, (rows, rows.long()))]
    assert values[0] == values[1]


@pytest.mark.parametrize("inside", ["ogc", "elr", "truncated_gce", "nce + elr", "after(elr, then=nce, epoch=2)"])
@pytest.mark.parametrize("around", ["label_smoothing", "bootstrap", "logit_clip", "sparse"])
def test_what_remembers_is_not_put_where_it_would_see_something_else(inside: str, around: str) -> None:
    with pytest.raises(ValueError, match=rf"{around}: loss=.* has a memory of what it sees"):
        loss(f"{around}({inside})")


@pytest.mark.parametrize("spec", ["ogc", "elr", "truncated_gce", "after(loss=vce(a=4), then=vce(a=1), epoch=2)"])
def test_theory_certifies_nothing_that_depends_on_more_than_u(spec: str) -> None:
    found = theory.certify(loss(spec), "symmetric(0.2)", 10)
    assert not found.holds
    assert "is no function of the given class's probability alone" in str(found)
    assert found.gap.gap == math.inf


@pytest.mark.parametrize("spec", ["ogc", "elr", "truncated_gce", "after(loss=ce, then=nce, epoch=2)"])
def test_what_wants_to_be_told_is_not_computed_with_others(spec: str) -> None:
    from unswayed.losses.together import Together

    with pytest.raises(ValueError, match=r"wants to know .*, so that it cannot be computed with others"):
        Together([loss("ce"), loss(spec)])


# After


def test_after_is_the_one_and_then_the_other() -> None:
    criterion = loss("after(vce(4), then=label_smoothing(vce(4), r=-0.2), epoch=3)")
    logits, target = draw(5, 4), labels(5, classes=4)
    first, then = loss("vce(4)"), loss("label_smoothing(vce(4), r=-0.2)")
    for epoch in range(6):
        expected = (first if epoch < 3 else then)(logits, target)
        assert criterion(logits, target, epoch=epoch) == expected
    assert criterion.eval()(logits, target) == then(logits, target)
    inside = loss("label_smoothing(after(ce, then=nce, epoch=1), r=0.2)")
    assert inside(logits, target, epoch=1) == loss("label_smoothing(nce, r=0.2)")(logits, target)


# OGC


@pytest.mark.parametrize(("target", "expected"), [(3.0, 0.216), (1.2, 0.584), (1.05, 0.752), (1.01, 0.877)])
def test_the_clip_point_is_that_of_the_toy_example(target: float, expected: float) -> None:
    # The published search stops after 10 halvings of [0, 1].
    assert clip_point(unswayed.CE(), *TOY, target) == pytest.approx(expected, abs=0.5e-3 + 2**-10)


@pytest.mark.parametrize(
    "spec", ["ce", "focal(gamma=0.5)", "focal(gamma=2)", "gce(q=0.7)", "vce(a=0.1)", "ce + vce(a=1)"]
)
@pytest.mark.parametrize("budget", [0.05, 0.3, 2.0])
def test_the_clip_point_is_that_of_a_plain_search(spec: str, budget: float) -> None:
    inner = loss(spec)
    found = clip_point(inner, *TOY, 1 + budget)
    assert found == pytest.approx(reference.clip_point(oracle(inner), *TOY, 1 + budget), rel=1e-3, abs=2e-7)


def test_there_is_nothing_to_clip_where_slopes_do_not_grow() -> None:
    for spec in ("mae", "agce(a=6, q=1.5)"):
        assert clip_point(loss(spec), *TOY, 1.01) == 0
    assert clip_point(unswayed.CE(), (1.0, 1.0), (0.5, 0.5), 1.01) == 0


def two_components(n: int = 4096, share: float = 0.4, seed: int = 0) -> Tensor:
    """Losses of clean and of noisy examples."""
    generator = torch.Generator().manual_seed(seed)
    clean = 0.3 + 0.1 * torch.randn(round(n * (1 - share)), generator=generator, dtype=torch.float64)
    noisy = 3.0 + torch.randn(n - len(clean), generator=generator, dtype=torch.float64)
    values = torch.cat([clean, noisy]).clamp_min(1e-3)
    return values[torch.randperm(n, generator=generator)]


def at(nll: Tensor) -> Tensor:
    """Logits of two classes, the first of which has these losses."""
    return torch.stack([-nll, torch.log(-torch.expm1(-nll))], 1)


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_the_mixture_is_that_of_scikit_learn(share: float) -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    values = two_components(share=share).numpy()
    theirs = mixture.GaussianMixture(2, max_iter=10, reg_covar=1e-3, random_state=0).fit(values[:, None])
    order = np.argsort(theirs.means_[:, 0])
    means, deviations = fit(values)
    assert means == pytest.approx(theirs.means_[order, 0], rel=1e-3)
    assert deviations == pytest.approx(np.sqrt(theirs.covariances_[order, 0, 0]), rel=1e-3)


@pytest.mark.parametrize("spec", ["ce", "focal(gamma=0.5)", "gce(q=0.7)", "vce(a=0.01)"])
def test_the_threshold_follows_the_losses_and_the_learning_rate(spec: str) -> None:
    criterion = OGC(spec, budget=20)
    batches = two_components().view(32, 128)
    for lr in (0.1, 0.01):
        before = criterion.threshold
        for step, nll in enumerate(batches):
            assert criterion.threshold == before, step
            criterion(at(nll), torch.zeros(128, dtype=torch.long), lr=lr)
        # What plain code finds in the same numbers, for the learning rate of the last step.
        means, deviations = reference.two_normals(batches.flatten().tolist())
        expected = reference.clip_point(oracle(criterion.loss), means, deviations, 1 + 20 * lr)
        assert criterion.threshold == pytest.approx(expected, rel=5e-3)
        assert before <= criterion.threshold < 1
    assert criterion.threshold > 0
    assert criterion(at(batches[0]), torch.zeros(128, dtype=torch.long), lr=0.1).item() == pytest.approx(
        reference.mean([reference.ogc([-x, math.log(-math.expm1(-x))], 0, loss=oracle(criterion.loss), edge=expected)
                        for x in batches[0].tolist()]), rel=5e-3,
    )  # fmt: skip


@pytest.mark.parametrize("spec", ["ce", "focal(gamma=0.5)", "gce(q=0.7)", "vce(a=0.01)"])
def test_the_clipped_loss_is_continuous_and_its_slope_is_bounded(spec: str) -> None:
    criterion = OGC(spec, reduction="none").eval()
    criterion.set_extra_state({"steps": 32, "seen": 4096, "edge": 0.2})
    u = torch.tensor([1e-9, 0.01, 0.2 - 1e-9, 0.2 + 1e-9, 0.5, 1 - 1e-9], dtype=torch.float64)
    logits, target = torch.stack([u.log(), torch.log1p(-u)], 1), torch.zeros(6, dtype=torch.long)
    values = criterion(logits, target)
    assert values[2].item() == pytest.approx(values[3].item(), abs=1e-6)
    expected = [reference.ogc(z, 0, loss=oracle(criterion.loss), edge=0.2) for z in logits.tolist()]
    torch.testing.assert_close(values, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-9)
    slopes = -grad(lambda z: criterion(z, target), logits)[:, 0] / (u * (1 - u))
    assert slopes[:3].tolist() == pytest.approx([float(slopes[2])] * 3, rel=1e-6)
    assert (slopes[3:].diff() < 0).all()
    for soft in (False, True):
        label = torch.nn.functional.one_hot(target, 2).double() if soft else target
        torch.testing.assert_close(criterion(logits, label), values)


def test_only_the_last_values_and_those_that_count_are_fitted() -> None:
    criterion = OGC(every=1, window=100, ignore_index=7)
    nll = two_components(150)
    target = torch.zeros(150, dtype=torch.long)
    criterion(at(nll), target, lr=0.1)
    torch.testing.assert_close(criterion.values.double().sort()[0], nll[50:].sort()[0], rtol=1e-6, atol=1e-6)
    edge = criterion.threshold
    assert edge > 0
    target[:] = 7
    criterion(at(nll + 1), target, lr=0.1)
    assert criterion.threshold == edge
    with pytest.raises(ValueError, match="ogc: nce is no function of the given class's probability alone"):
        OGC("nce")


# ELR


def test_elr_is_its_formula_over_several_epochs() -> None:
    criterion = ELR("gce(q=0.5)", beta=0.6, weight=2.0, p_min=0.05, reduction="none")
    memory: dict[int, list[float]] = {}
    for step in range(6):
        index = torch.randperm(9, generator=torch.Generator().manual_seed(step))[:5]
        logits, target = draw(5, 4, seed=step, scale=3), labels(5, classes=4, seed=step)
        expected = []
        for row, z, y in zip(index.tolist(), logits.tolist(), target.tolist(), strict=True):
            past = memory.get(row, [0.0] * 4)
            value, memory[row] = reference.elr(
                z, y, past, loss=oracle(criterion.loss), beta=0.6, weight=2.0, p_min=0.05
            )
            expected.append(value)
        found = criterion(logits, target, index=index)
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    for row, past in memory.items():
        assert criterion.memory[row].tolist() == pytest.approx(past)


def test_the_memory_of_elr_has_no_gradient_and_the_penalty_has() -> None:
    criterion = trained(ELR("ce", beta=0.8, weight=1.5, p_min=1e-9))
    logits, target, index = draw(6, 4, seed=8), labels(6, classes=4), torch.arange(6)
    p = logits.softmax(1)
    t = 0.8 * criterion.memory[:6] + 0.2 * p
    shape = p * (t - (t * p).sum(1, keepdim=True)) / (1 - (t * p).sum(1, keepdim=True))
    expected = p - torch.nn.functional.one_hot(target, 4) - 1.5 * shape
    found = grad(lambda z: criterion(z, target, index=index), logits)
    torch.testing.assert_close(found, expected / 6, rtol=1e-9, atol=1e-12)


def test_elr_takes_class_weights_soft_labels_and_single_examples() -> None:
    logits, target = draw(5, 4), labels(5, classes=4)
    weight = torch.tensor([0.5, 2.0, 0.0, 1.5], dtype=torch.float64)
    value = ELR(weight=2.0, class_weight=weight, reduction="none")(logits, target, index=torch.arange(5))
    plain = ELR(weight=2.0, reduction="none")(logits, target, index=torch.arange(5))
    torch.testing.assert_close(value, plain * weight[target])
    soft = torch.nn.functional.one_hot(target, 4).double()
    torch.testing.assert_close(ELR(weight=2.0, reduction="none")(logits, soft, index=torch.arange(5)), plain)
    one = ELR(weight=2.0)(logits[1], target[1], index=torch.tensor(1))
    assert one.item() == pytest.approx(plain[1].item())
    with pytest.raises(ValueError, match=r"elr remembers an example by its row: logits have shape \(N, K\)"):
        ELR()(draw(2, 4, 3), labels(2, 3, classes=4), index=torch.arange(2))
    used = trained(ELR())
    with pytest.raises(ValueError, match="elr remembers 4 classes; these logits have 3"):
        used(draw(2, 3), labels(2, classes=3), index=torch.arange(2))


def test_nothing_is_remembered_of_examples_that_were_never_seen() -> None:
    used = trained(ELR()).eval()
    logits, target = draw(2, 4), labels(2, classes=4)
    for rows in ([500, 1000], [12, 500]):
        unseen = call(used, logits, target, index=torch.tensor(rows))
        assert unseen == unswayed.CE()(logits, target)
    assert call(used, logits, target) < unseen


# Truncated GCE


def test_truncated_gce_is_its_formula_over_several_epochs() -> None:
    criterion = TruncatedGCE(q=0.6, k=0.3, start=2, every=3, reduction="none")
    memory: dict[int, tuple[int, bool]] = {}
    dropped = 0
    for epoch in range(9):
        logits, target = draw(12, 4, seed=epoch), labels(12, classes=4)
        for index in torch.randperm(12, generator=torch.Generator().manual_seed(epoch)).split(5):
            expected = []
            for row in index.tolist():
                value, memory[row] = reference.truncated_gce(
                    logits[row].tolist(), int(target[row]), memory.get(row, (0, False)), q=0.6, k=0.3, start=2, every=3
                )
                expected.append(value)
            found = criterion(logits[index], target[index], index=index)
            torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
            dropped += int((found == 0).sum())
        assert (dropped > 0) == (epoch >= 2)


def test_examples_that_are_left_out_have_no_gradient() -> None:
    criterion = TruncatedGCE(q=1.0, k=0.5, start=0)
    logits, target = draw(8, 4), labels(8, classes=4)
    found = grad(lambda z: criterion(z, target, index=torch.arange(8)), logits)
    kept = logits.softmax(1).gather(1, target[:, None])[:, 0] > 0.5
    assert 0 < kept.sum() < 8
    assert torch.equal(found.abs().sum(1) > 0, kept)
