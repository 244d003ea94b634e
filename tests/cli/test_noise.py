"""``unswayed noise``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from unswayed.noise import NoisyLabels, make


@pytest.fixture
def run(program: Callable[..., str]) -> Callable[..., str]:
    """Run ``unswayed noise``, see ``program``."""
    return partial(program, "noise")


def test_make_and_show(run: Callable[..., str], tmp_path: Path) -> None:
    file, plot = tmp_path / "noise.npz", tmp_path / "noise.png"
    text = run("make", "symmetric(0.4)", "--data", "digits", "--out", str(file), "--seed", "3")
    assert "symmetric(0.4), seed 3: 575 of 1,437 labels are wrong (40.01 %)" in text
    noisy = NoisyLabels.load(file)
    assert noisy.seed == 3
    shown = run("show", str(file), "--data", "digits", "--plot", str(plot))
    assert "575 of 1,437" in shown
    assert noisy.transition is not None
    for i, row in enumerate(noisy.transition):
        line = next(
            line.split() for line in shown.splitlines() if line.split()[:1] == [str(i)] and len(line.split()) > 10
        )
        assert [float(cell) for cell in line[2:]] == pytest.approx(100 * row[row > 0], abs=0.051)
    assert plot.read_bytes().startswith(b"\x89PNG")
    manifest = json.loads(run("show", str(file), "--json"))
    assert manifest == noisy.manifest
    made = json.loads(run("make", "symmetric(0.4)", "--out", str(tmp_path / "b.npz"), "--seed", "3", "--json"))
    assert made == manifest


def test_many_classes_are_a_list(run: Callable[..., str], tmp_path: Path) -> None:
    noisy = make("asymmetric(0.4)", np.repeat(np.arange(100), 10), 100, dataset="cifar100")
    lines = run("show", str(noisy.save(tmp_path / "noise.npz"))).splitlines()
    assert ["0", "10", "60.0", "51", "40.0", "0.0"] in [line.split() for line in lines]
    assert max(map(len, lines)) < 120


def test_labels_as_given_have_no_matrix(run: Callable[..., str], tmp_path: Path) -> None:
    file = make("given", [0, 1, 1], 2).save(tmp_path / "noise.npz")
    assert "how many are wrong is not known" in run("show", str(file))
    assert "no matrix to draw" in run("show", str(file), "--plot", str(tmp_path / "T.png"), code=2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("make", "symetric(0.4)", "--out", "x.npz"), "did you mean 'symmetric'"),
        (("make", "symmetric(4)", "--out", "x.npz"), "0 <= rate <= 1"),
        (("make", "symmetric(0.4)", "--out", "x.pt"), ".npz"),
        (("make", "symmetric(0.4)", "--out", "none/x.npz"), "there is no folder 'none'"),
        (("make", "symmetric(0.4)"), "--out"),
        (("make", "human(worst)", "--out", "x.npz"), "name CIFAR-N's file"),
        (("make", "symmetric(0.4)", "--data", "digts", "--out", "x.npz"), "did you mean 'digits'"),
        (("make", "symmetric(0.4)", "--out", "x.npz", "--seed", "-1"), "0 <= seed"),
        (("show", "none.npz"), "no such file"),
        (("show", "{other}", "--data", "digits"), "was made for other labels"),
        (("show", "{other}", "--plot", "x.gif"), "a figure is written as .png"),
    ],
)
def test_mistakes_are_told(run: Callable[..., str], args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    other = make("symmetric(0.4)", np.arange(1437) % 10, 10).save(tmp_path / "other.npz")
    assert message in run(*(arg.format(other=other) for arg in args), code=2)


def test_estimate(run: Callable[..., str], tmp_path: Path) -> None:
    kept = tmp_path / "probabilities.npz"
    command = ("estimate", "--noise", "symmetric(0.3)", "--data", "digits", "--model", "linear", "--folds", "3", "-q")
    text = run(*command, "--resamples", "20", "--save", str(kept))
    assert "of the 1,437 labels seem wrong (95 % interval" in text
    assert "In truth 29.99 % are wrong" in text
    assert "labelled as, in percent" in text
    assert f"wrote {kept}" in text
    told = [line.split() for line in text.splitlines() if line.strip().startswith("corrected")]
    found = json.loads(run("estimate", "--probabilities", str(kept), "--resamples", "20", "--json"))
    assert told[0][1] == f"{100 * found['methods']['corrected']['rate']:.1f}"
    assert found["true_rate"] is None
    assert found["low"] <= found["rate"] <= found["high"]
    assert abs(found["rate"] - 0.3) < 0.1
    with np.load(kept) as content:
        as_cleanlab = {"pred_probs": content["probabilities"], "labels": content["labels"]}
    np.savez(tmp_path / "cleanlab.npz", **as_cleanlab)
    again = run("estimate", "--probabilities", str(tmp_path / "cleanlab.npz"), "--resamples", "20", "--json")
    assert json.loads(again) == found


def test_estimate_tells_mistakes(run: Callable[..., str], tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for args, message in (
        ((), "--data NAME[=PATH], or --probabilities FILE"),
        (("--data", "digits", "--probabilities", "x.npz"), "one of them"),
        (("--probabilities", "x.npz"), "no such file"),
        (("--probabilities", str(tmp_path / "other.npz")), "it holds x"),
        (("--data", "digits", "--folds", "1"), "folds >= 2"),
        (("--data", "digits", "--model", "cnn8"), "only linear and mlp can"),
        (("--data", "digits", "--save", "x.csv"), "name such a file"),
    ):
        assert message in run("estimate", *args, code=2)
