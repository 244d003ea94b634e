"""``unswayed bench``: what it prints, where it writes, how it ends."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unswayed.bench import Store

SHARED = Path(__file__).parents[3] / "shared" / "data"
GRID = """
data = "digits"
noise = ["clean", "symmetric(0.4)"]
loss = ["ce", "nce + 10*vce(a=4)"]
model = "linear"
recipe.epochs = 2
"""


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path


def table(path: Path, classes: int = 10) -> None:
    draw = np.random.default_rng(0)
    y = np.arange(200) % classes
    x = (draw.normal(size=(200, 5)) + y[:, None]).astype(np.float32)
    human = {f"human_{which}": (y + 1) % classes for which in ("worst", "noisy")}
    names = np.array(["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"])
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, class_names=names, **human)


def test_a_dry_run_shows_the_matrix_and_how_long_it_takes(grid: Path, program: Callable[..., str]) -> None:
    shown = program("bench", "grid.toml", "--out", "out", "--dry-run", "--seeds", "2", "--workers", "3")
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert rows[0] == "grid.toml, protocol paper"
    assert rows[2:6] == [
        "digits clean symmetric(0.4)",
        "ce 0/2 0/2",
        "nce + 10*vce(a=4) 0/2 0/2",
        "linear, 2 epochs; seeds 0, 1",
    ]
    assert rows[7] == "8 runs: 8 open"
    assert rows[8].startswith("8 runs are left: about ")
    assert rows[8].endswith(", 3 at a time (from a few steps that were timed now)")
    assert not (grid / "out").exists()


def test_a_dry_run_without_data_says_what_it_cannot_know(grid: Path, program: Callable[..., str]) -> None:
    shown = program("bench", "paper/benchmark", "--dry-run")
    assert "528 runs: 528 open" in shown
    assert shown.rstrip().endswith("give --data for cifar10, cifar100, to time a few steps")
    assert "what is done is not known" not in shown
    shown = program("bench", "paper/ablation", "--dry-run", "--protocol", "embeddings", "--only", "data=cifar10")
    assert "what is done is not known without --data for cifar10" in shown


def test_a_grid_is_run_and_not_run_again(grid: Path, program: Callable[..., str]) -> None:
    """One of its runs fails, as this data has no labels of people; the others are done."""
    (grid / "grid.toml").write_text(GRID.replace('"clean"', '"human(worst)"'))
    said = program("bench", "grid.toml", "--out", "out", "--only", "loss=ce", "--workers", "1", code=1)
    assert 'FAILED: human("worst") needs the labels that people gave' in said
    assert said.rstrip().endswith("some runs failed: out/ID/error.json says why; the same command tries them again")
    shown = program("bench", "status", "out")
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert 'digits human("worst") symmetric(0.4)' in rows
    assert "ce 0/1! 1/1" in rows
    assert "2 runs: 1 done, 1 failed" in rows
    store = Store("out")
    done = [id for id in store.cells() if store.state(id).name == "done"]
    before = (store.folder(done[0]) / "result.json").stat().st_mtime_ns
    shown = program("bench", "grid.toml", "--out", "out", "--dry-run")
    assert "4 runs: 1 done, 1 failed, 2 open" in shown
    assert "(from the epochs that were run)" in shown
    assert (store.folder(done[0]) / "result.json").stat().st_mtime_ns == before


def test_nothing_left_to_do(grid: Path, program: Callable[..., str]) -> None:
    from unswayed.bench import read_grid
    from unswayed.bench.sources import Sources
    from unswayed.bench.work import tasks, work

    cells = read_grid("grid.toml").cells
    for task in tasks(("digits", cell.experiment("digits")) for cell in cells):
        work(task, Sources({}), Store("out"))
    assert "nothing is left to do" in program("bench", "grid.toml", "--out", "out", "--dry-run")
    # No process is started for what is done.
    shown = program("bench", "grid.toml", "--out", "out")
    assert "4 runs: 4 done" in shown
    assert "the runs are in out" in shown
    assert program("bench", "merge", "out", "--out", "all").splitlines() == ["4 runs copied", "merged into all"]
    assert "4 runs: 4 done" in program("bench", "status", "all")
    assert program("bench", "merge", "out", "--out", "all").splitlines()[0] == "4 runs were there already"


def test_the_papers_table_on_features(grid: Path, program: Callable[..., str]) -> None:
    table(grid / "t.npz")
    what = ("bench", "paper/benchmark", "--protocol", "embeddings", "--only", "data=cifar10", "--data", "cifar10=t.npz")
    shown = program(*what, "--seeds", "1", "--set", "recipe.epochs=2", "--as", "published", "--workers", "2", "-q")
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert rows[0] == "paper/benchmark, protocol embeddings, as published, with recipe.epochs=2"
    assert "NCE+VCE 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/1" in rows
    # OGC cannot be stacked, and is run alone.
    assert "OGC 1/1 1/1 1/1 1/1 1/1 1/1 1/1 1/1" in rows
    assert "88 runs: 88 done" in rows
    for path in Path("results").glob("*/result.json"):
        record = json.loads(path.read_text())
        assert record["id"] == path.parent.name
        assert record["experiment"]["data"].startswith("cifar10-features#")
    (plan,) = Store("results").plans()
    assert (plan.reading, plan.protocol, plan.changes) == ("published", "embeddings", ("recipe.epochs=2",))
    again = program(*what, "--seeds", "1", "--set", "recipe.epochs=2", "--as", "written", "--dry-run")
    # Only the losses and the noise that are read in two ways are left.
    assert "88 runs: 42 done, 46 open" in again


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["paper/bench"], "unknown preset 'paper/bench'; did you mean 'paper/benchmark'?"),
        (["paper/combination"], "needs training methods that this version does not have yet"),
        (["paper/benchmark"], "paper/benchmark needs --data cifar10=DIR --data cifar100=DIR (or leave cells out"),
        (["paper/benchmark", "--protocol", "fast"], "there is no recipe 'fast/cifar10'"),
        (["paper/benchmark", "--only", "loss=xyz"], "--only loss=xyz leaves nothing of paper/benchmark"),
        (["paper/benchmark", "--only", "lost=ce"], "write KEY=PATTERN"),
        (["paper/benchmark", "--set", "epochs=3"], "write recipe.NAME=VALUE"),
        (["paper/benchmark", "--data", "cifar10"], "write NAME=PLACE"),
        (["paper/figures", "--data", "cifar100=x"], "the grid has no data called 'cifar100'"),
        (["paper/figures", "--data", "cifar10=x", "--protocol", "embeddings"], "there is no 'x'"),
        (["grid.toml", "--as", "published"], "--as published is for the paper's presets"),
        (["grid.toml", "--engine", "ray", "--workers", "2"], "--workers is for --engine local"),
        (["grid.toml", "--address", "auto"], "--address is for --engine ray"),
        (["grid.toml", "--gpus-per-run", "0.5"], "--gpus-per-run is for --engine ray"),
        (["no.toml"], "No such file or directory: 'no.toml'"),
        (["status", "nowhere"], "nowhere is no folder of a bench"),
        (["merge", "nowhere", "--out", "all"], "nowhere is no folder of a bench"),
    ],
)
def test_mistakes(grid: Path, program: Callable[..., str], args: list[str], message: str) -> None:
    said = program("bench", *args, code=2)
    assert message in said
    assert "Traceback" not in said
    assert not Path("results").exists()


def test_ray_that_is_not_there(grid: Path, program: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    said = program("bench", "grid.toml", "--engine", "ray", code=2)
    assert "--engine ray needs Ray: pip install 'unswayed[ray]'" in said


def test_help(program: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = program("bench", "--help")
    assert all(word in shown for word in ("run", "status", "merge"))
    assert "--protocol" in program("bench", "run", "--help")
