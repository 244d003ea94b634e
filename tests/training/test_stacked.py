"""A stack of runs ends where each of them would alone."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unswayed.data import Data, Split, load
from unswayed.training import Diverged, Experiment, Recipe, Result, Stopped, experiment_of, train, train_stacked

CLASSES = 5


def clusters(n: int = 230, features: int = 12, spread: float = 1.0) -> Data:
    drawn = np.random.default_rng(0)
    centres = drawn.normal(size=(CLASSES, features))

    def split(n: int) -> Split:
        labels = drawn.integers(0, CLASSES, n).astype(np.int64)
        x = spread * (drawn.normal(size=(n, features)) + centres[labels])
        return Split(labels, torch.tensor(x, dtype=torch.float32))

    names = tuple(str(k) for k in range(CLASSES))
    return Data("clusters", split(n), {"test": split(120), "other": split(40)}, CLASSES, (features,), names)


DATA = clusters()
MIXED = ("ce", "vce(a=1)", "vce(a=4)", "gce(q=0.5)", "gce(q=0.7)", "nce + vce(a=1)", "nce + 10*vce(a=4)", "nnce")
SGD = Recipe(epochs=3, batch_size=50, lr=0.1)


def experiments(
    losses: tuple[str, ...] = MIXED, plan: Recipe = SGD, model: str = "mlp(hidden=16)", **how: Any
) -> list[Experiment]:
    """One run a loss, each with a seed, noise and order of its own."""
    how = {"noise": "symmetric(0.4)"} | how
    return [experiment_of(model, DATA, loss, plan, **({"seed": i} | how)) for i, loss in enumerate(losses)]


def alone(e: Experiment, data: Data = DATA, out: Path | None = None) -> Result:
    return train(
        e.model, data, e.loss, e.recipe, noise=e.noise, seed=e.seed, noise_seed=e.noise_seed, order_seed=e.order_seed,
        validation=e.validation, out=out, device="cpu",
    )  # fmt: skip


def stacked(runs: list[Experiment], data: Data = DATA, out: Path | None = None) -> list[Result]:
    results = train_stacked(runs, data, out=out, device="cpu")
    assert all(isinstance(result, Result) for result in results)
    return [result for result in results if isinstance(result, Result)]


def agree(one: Result, other: Result, tolerance: float = 2e-5) -> None:
    assert one.experiment == other.experiment
    assert len(one.epochs) == len(other.epochs)
    for mine, theirs in zip(one.epochs, other.epochs):
        assert list(mine) == list(theirs)
        for name in mine.keys() - {"seconds"}:
            # Accuracies are counts: the weights agree so well that no example changes sides.
            exact = name in ("epoch", "lr", "memorised") or name.endswith("accuracy")
            assert mine[name] == (theirs[name] if exact else pytest.approx(theirs[name], abs=tolerance)), name
    for which in ("last", "best", "chosen")[: 3 if one.experiment.validation else 2]:
        ours, their = one.weights(which), other.weights(which)
        assert list(ours) == list(their)
        for name in ours:
            torch.testing.assert_close(ours[name], their[name], atol=tolerance, rtol=1e-4)
    assert one.calibration is not None
    assert other.calibration is not None
    assert one.calibration["ece"] == pytest.approx(other.calibration["ece"], abs=tolerance)
    assert one.noise.manifest == other.noise.manifest
    assert not one.model.training
    torch.testing.assert_close(one.model.state_dict(), other.model.state_dict(), atol=tolerance, rtol=1e-4)


RECIPES = {
    "sgd, uneven last batch": SGD,
    "nesterov, l1, weight decay, clipped": SGD.replace(
        nesterov=True, l1=1e-3, weight_decay=1e-3, clip_norm=0.3, schedule="one_cycle(warmup=0.3)"
    ),
    "adamw, averaged": SGD.replace(optimizer="adamw", lr=3e-3, weight_decay=1e-2, average=0.9),
    "sgd without momentum or clipping, one batch": SGD.replace(momentum=0, clip_norm=0, batch_size=500),
}


@pytest.mark.parametrize(
    ("model", "name"),
    [("mlp(hidden=16)", name) for name in RECIPES]
    + [("linear", list(RECIPES)[1]), ("mlp(hidden=8, depth=3)", list(RECIPES)[2])],
)
def test_each_run_ends_where_it_would_alone(model: str, name: str) -> None:
    runs = experiments(plan=RECIPES[name], model=model)
    for run, result in zip(runs, stacked(runs)):
        agree(result, alone(run))


def test_runs_of_one_seed_share_their_batches_and_end_the_same() -> None:
    runs = experiments(seed=3) + experiments(("ce", "mae"), seed=4)
    for run, result in zip(runs, stacked(runs)):
        agree(result, alone(run))


def test_one_order_for_other_seeds_is_an_experiment_of_its_own() -> None:
    own = experiments(("ce", "ce", "ce", "gce", "vce"))
    shared = experiments(("ce", "ce", "ce", "gce", "vce"), order_seed=0)
    results = stacked(shared)
    for run, result in zip(shared, results):
        agree(result, alone(run))
    assert shared[1].settings["order_seed"] == 0
    assert shared[1].id != own[1].id
    assert shared[0].id == own[0].id, "its own order is order 0"
    assert results[1].last["train_loss"] != stacked(own)[1].last["train_loss"]


@pytest.mark.parametrize("how", [{}, {"seed": 1}])
def test_held_out_examples(how: dict[str, Any]) -> None:
    runs = experiments(validation=0.2, **how)
    for run, result in zip(runs, stacked(runs)):
        agree(result, alone(run))
        assert result.chosen is not None


def test_labels_without_known_truth_and_images_as_rows() -> None:
    digits = load("digits")
    runs = [experiment_of("linear", digits, loss, Recipe(epochs=2), seed=1) for loss in ("ce", "vce")]
    for run, result in zip(runs, stacked(runs, digits)):
        agree(result, alone(run, digits))
        assert result.last["train_clean_accuracy"] is None


def test_models_and_recipes_may_be_mixed_and_results_keep_their_places() -> None:
    runs = [
        run
        for model in ("linear", "mlp(hidden=8)")
        for plan in (SGD, SGD.replace(epochs=2))
        for run in experiments(("ce", "gce", "mae"), plan, model)
    ]
    runs = runs[::2] + runs[1::2] + runs[:1]
    results = stacked(runs)
    assert [result.experiment for result in results] == runs
    for run, result in list(zip(runs, results))[::3]:
        agree(result, alone(run))


def test_bf16_is_the_arithmetic_that_a_run_has_alone() -> None:
    runs = experiments(("ce", "vce"), SGD.replace(precision="bf16"))
    exact = stacked(experiments(("ce", "vce")))
    for run, result, plain in zip(runs, stacked(runs), exact):
        theirs = alone(run).last
        assert result.last["train_loss"] == pytest.approx(theirs["train_loss"], abs=0.01)
        assert result.last["test_accuracy"] == pytest.approx(theirs["test_accuracy"], abs=0.03)
        assert result.last["train_loss"] != plain.last["train_loss"]


def test_a_run_that_diverges_leaves_the_others_alone(tmp_path: Path) -> None:
    runs = experiments(("ce", "1e36*ce", "vce"), SGD.replace(clip_norm=0), seed=1)
    results = train_stacked(runs, DATA, out=tmp_path, device="cpu")
    assert isinstance(results[1], Diverged)
    says = "the training loss, or its gradient, is not finite in epoch 1, step 2 of 5 (1e+36*ce on clusters#"
    assert str(results[1]).startswith(says)
    assert "where the network's input is between -" in str(results[1])
    assert not (tmp_path / runs[1].id / "result.json").exists()
    for place in (0, 2):
        result = results[place]
        assert isinstance(result, Result)
        agree(result, alone(runs[place]))
    with pytest.raises(Diverged, match=r"not finite in epoch 1, step 2 of 5 \(1e\+36\*ce\)"):
        alone(runs[1])


def test_when_all_diverge_nothing_is_left_to_do() -> None:
    runs = experiments(("1e36*ce", "1e37*ce"), SGD.replace(clip_norm=0, epochs=100_000))
    assert all(isinstance(result, Diverged) for result in train_stacked(runs, DATA, device="cpu"))


def test_folders_are_those_of_single_runs(tmp_path: Path) -> None:
    runs = experiments(("ce", "vce(a=4)"), validation=0.2)
    results = stacked(runs, out=tmp_path / "stacked")
    for run, result in zip(runs, results):
        alone(run, out=tmp_path / "alone" / run.id)
        mine, theirs = tmp_path / "stacked" / run.id, tmp_path / "alone" / run.id
        names = [sorted(str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()) for f in (mine, theirs)]
        assert names[0] == names[1]
        for name in ("experiment.json", "noise.json"):
            assert json.loads((mine / name).read_text()) == json.loads((theirs / name).read_text())
        record, other = (json.loads((f / "result.json").read_text()) for f in (mine, theirs))
        assert record.pop("stacked") == 2
        assert list(record) == list(other)
        assert result.folder == mine
        # train() takes it for its own: it is done.
        agree(alone(run, out=mine), result)


def test_what_is_done_is_not_done_again_and_what_is_not_is(tmp_path: Path) -> None:
    runs = experiments(("ce", "vce", "gce"))
    alone(runs[1], out=tmp_path / runs[1].id)
    before = (tmp_path / runs[1].id / "result.json").stat().st_mtime_ns
    for run, result in zip(runs, stacked(runs, out=tmp_path)):
        agree(result, alone(run))
    assert (tmp_path / runs[1].id / "result.json").stat().st_mtime_ns == before
    started = time.monotonic()
    again = stacked(runs, out=tmp_path)
    assert time.monotonic() - started < 5
    assert [result.experiment for result in again] == runs


def test_a_stack_that_is_interrupted_starts_anew(tmp_path: Path) -> None:
    long = experiments(("ce", "vce"), SGD.replace(epochs=100_000))
    # The second time shows that the locks are free.
    for _ in range(2):
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(Stopped, match="which will start anew"):
            train_stacked(long, DATA, out=tmp_path, device="cpu")
        timer.join()
    assert not any(tmp_path.rglob("result.json"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "cnn8"}, "cnn8 cannot be trained in a stack: only linear and mlp can"),
        ({"recipe": Recipe(augment="flip")}, "augment='flip' is not possible in a stack"),
        ({"data": "digits"}, "the data given is clusters#"),
        ({"loss": "vcee"}, "unknown loss 'vcee'; did you mean 'vce'"),
    ],
)
def test_refusals(change: dict[str, Any], says: str) -> None:
    base = experiments(("ce",))[0]
    fields = {name: getattr(base, name) for name in ("data", "noise", "model", "loss", "recipe")}
    with pytest.raises(ValueError, match=says):
        train_stacked([Experiment(**(fields | change))], DATA)


def test_nothing_to_do() -> None:
    assert train_stacked([], DATA) == []
