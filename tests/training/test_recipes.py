"""Recipes and schedules: the published values, and what is refused."""

import math
import re
from pathlib import Path

import pytest

from unswayed.training import RECIPES, Recipe, Schedule, recipe

PAPER = Path(__file__).parents[3] / "shared" / "paper" / "variation-bounded-loss.tex.txt"

# What the paper's appendix says, quoted, and the fields that say the same.
SAYS = {
    "paper/cifar10": [
        ("the networks are trained for 120 and 200 epochs with batch size 128", {"epochs": 120, "batch_size": 128}),
        (r"SGD optimizer with momentum 0.9", {"optimizer": "sgd", "momentum": 0.9}),
        (r"L1 weight decay  $5\times10^{-5}$ and $5\times10^{-6}$", {"l1": 5e-5, "weight_decay": 0.0}),
        (r"set to 0.01 for CIFAR-10 and 0.1 for CIFAR-100 with cosine annealing", {"lr": 0.01, "schedule": "cosine"}),
    ],
    "paper/cifar100": [
        ("the networks are trained for 120 and 200 epochs with batch size 128", {"epochs": 200, "batch_size": 128}),
        (r"SGD optimizer with momentum 0.9", {"optimizer": "sgd", "momentum": 0.9}),
        (r"L1 weight decay  $5\times10^{-5}$ and $5\times10^{-6}$", {"l1": 5e-6, "weight_decay": 0.0}),
        (r"set to 0.01 for CIFAR-10 and 0.1 for CIFAR-100 with cosine annealing", {"lr": 0.1, "schedule": "cosine"}),
    ],
    "paper/webvision": [
        ("SGD for 250 epochs with initial learning rate 0.4", {"optimizer": "sgd", "epochs": 250, "lr": 0.4}),
        ("nesterov momentum 0.9", {"nesterov": True, "momentum": 0.9}),
        (
            r"L1 weight decay $6 \times 10^{-5}$ and batch size 512",
            {"l1": 6e-5, "weight_decay": 0.0, "batch_size": 512},
        ),
        (r"multiplied by 0.97 after each epoch", {"schedule": "exponential(gamma=0.97)"}),
    ],
    "paper/clothing1m": [
        (
            r"SGD with a momentum of 0.9, a weight decay of $1 \times 10^{-3}$, and batch size of 32",
            {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 1e-3, "l1": 0.0, "batch_size": 32},
        ),
        (
            r"for 10 epochs with a learning rate of $1 \times10^{-3}$ and a decay of 0.1 at 5 epochs",
            {"epochs": 10, "lr": 1e-3, "schedule": "milestones(epochs=[5], gamma=0.1)"},
        ),
    ],
}


@pytest.mark.parametrize("name", SAYS)
def test_recipes_have_every_value_of_the_paper(name: str) -> None:
    for _, values in SAYS[name]:
        for field, value in values.items():
            assert getattr(recipe(name), field) == value, field


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not here")
def test_the_paper_says_so() -> None:
    text = PAPER.read_text(encoding="utf-8")
    for says in SAYS.values():
        for quote, _ in says:
            assert quote in text, quote


def test_what_the_paper_does_not_say_is_marked() -> None:
    for name in SAYS:
        found = recipe(name)
        assert "VBL paper" in found.source
        assert {"clip_norm", "augment"} <= set(found.unstated) <= set(found.settings), name
    assert "rotation by 20" in recipe("paper/cifar100").unstated["augment"]
    assert "rotate(" in recipe("paper/cifar100").augment
    assert "rotate(" not in recipe("paper/cifar10").augment


def test_where_a_recipe_comes_from_is_no_part_of_what_it_does() -> None:
    assert recipe("paper/cifar10").replace(source="elsewhere").settings == recipe("paper/cifar10").settings


def factors(spec: str, epochs: int, steps: int = 4) -> list[float]:
    schedule = Schedule.parse(spec)
    return [schedule.factor(e, s, steps, epochs) for e in range(epochs) for s in range(steps)]


def test_cosine_steps_once_an_epoch_as_torch_does() -> None:
    import torch

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7)
    for epoch in range(7):
        assert factors("cosine", 7)[4 * epoch : 4 * epoch + 4] == pytest.approx([theirs.get_last_lr()[0]] * 4)
        optimizer.step()
        theirs.step()
    assert theirs.get_last_lr()[0] == pytest.approx(0)


def test_exponential_and_milestones() -> None:
    assert factors("exponential(0.5)", 3, 1) == [1, 0.5, 0.25]
    assert factors("milestones([2, 3])", 5, 1) == pytest.approx([1, 1, 0.1, 0.01, 0.01])
    assert factors("constant", 2) == [1] * 8


def test_one_cycle_rises_straight_and_falls_as_a_cosine() -> None:
    values = factors("one_cycle(warmup=0.25, start=0.2, final=0.1)", epochs=5, steps=5)
    assert values[0] == pytest.approx(0.2)
    assert values[3] - values[2] == pytest.approx(values[1] - values[0])
    assert values[6] == pytest.approx(1)
    assert values[15] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi * 0.5)) / 2)
    assert values[-1] == pytest.approx(0.1)
    assert max(values) == pytest.approx(1)


@pytest.mark.parametrize("spec", ["cosine", "milestones([40, 80], 0.1)", "one_cycle(0.3)", "exponential(0.97)"])
def test_a_schedule_reads_back(spec: str) -> None:
    assert Schedule.parse(str(Schedule.parse(spec))) == Schedule.parse(spec)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Schedule.parse("cosin"), "unknown schedule 'cosin'; did you mean 'cosine'?"),
        (lambda: Schedule.parse("milestones"), "milestones needs epochs"),
        (lambda: Schedule.parse("milestones([0.5])"), "a list of whole numbers"),
        (lambda: Schedule.parse("exponential(1.5)"), "0 < gamma <= 1"),
        (lambda: recipe("paper/cifar1"), "unknown recipe 'paper/cifar1'; did you mean 'paper/cifar10'?"),
        (lambda: Recipe(lr=0), "recipe: lr=0 is not allowed; lr > 0"),
        (lambda: Recipe(epochs=1.5), "recipe: epochs=1.5 is not allowed; epochs >= 1, a whole number"),
        (lambda: Recipe(optimizer="sdg"), "did you mean 'sgd'?"),
        (lambda: Recipe(optimizer="adamw", nesterov=True), "nesterov=true needs optimizer='sgd'"),
        (lambda: Recipe(momentum=0, nesterov=True), "nesterov=true needs"),
        (lambda: Recipe().set("epoch=3"), "a recipe has no 'epoch'; did you mean 'epochs'?"),
        (lambda: Recipe().set("source=me"), "a recipe has no 'source'"),
        (lambda: Recipe().set("lr"), "'lr' is no setting; write NAME=VALUE, like lr=0.05"),
        (lambda: Recipe().set("lr=fast"), "recipe: lr='fast' is not allowed; lr > 0"),
        (
            lambda: Recipe().set("schedule=one_cycle(warm=1)"),
            "one_cycle has no parameter 'warm'; did you mean 'warmup'?",
        ),
        (lambda: Recipe().replace(rate=1), "a recipe has no 'rate'"),
    ],
)
def test_refusals(make, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        make()


@pytest.mark.parametrize(
    ("setting", "field", "value"),
    [
        ("lr=0.05", "lr", 0.05),
        (" epochs = 3 ", "epochs", 3),
        ("nesterov=true", "nesterov", True),
        ("optimizer=adamw", "optimizer", "adamw"),
        ("precision=fp32", "precision", "fp32"),
        ("schedule=milestones([3], gamma=0.2)", "schedule", "milestones(epochs=[3], gamma=0.2)"),
        ("l1=5e-5", "l1", 5e-5),
    ],
)
def test_settings(setting: str, field: str, value: object) -> None:
    assert getattr(Recipe().set(setting), field) == value


def test_all_recipes_are_well_formed() -> None:
    for name, entry in RECIPES.items():
        assert entry.source, name
        assert set(entry.unstated) <= set(entry.settings), name
