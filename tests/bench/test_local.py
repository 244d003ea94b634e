"""Worker processes: that they end when they are told to, or when they must, and what is left then."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unswayed.bench import Store

# A network whose steps last until a file says otherwise, one that kills its process, and one that is well.
NETS = """
import os, pathlib, signal, time
import torch

class Net(torch.nn.Sequential):
    def __init__(self, num_classes, in_shape):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, num_classes))

class Slow(Net):
    def forward(self, x):
        if self.training and not pathlib.Path("quick").exists():
            time.sleep(0.5)
        return super().forward(x)

class Deadly(Net):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start ``unswayed bench`` in a folder with the networks above, in a session of its own."""
    (tmp_path / "nets.py").write_text(textwrap.dedent(NETS))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    begun = []

    def start(grid: str, *args: str) -> "subprocess.Popen[str]":
        (tmp_path / "grid.toml").write_text(grid)
        command = [sys.executable, "-m", "unswayed", "bench", "grid.toml", "--out", "out", *args]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
            process.communicate()


def until(holds: Callable[[], object], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to be in time"
        time.sleep(0.05)


def owners(out: Path) -> list[int]:
    """Return the processes that run cells."""
    return [int(json.loads(path.read_text())["pid"]) for path in out.glob("*/.owner")]


GRID = """
data = "digits"
noise = "symmetric(0.2)"
loss = ["ce", "vce(a=1)"]
model = "nets:Slow"
recipe = {{ name = "digits", epochs = {epochs}, batch_size = 256 }}
"""


def test_ctrl_c_stops_all_workers_after_a_checkpoint(
    bench: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    out, plan = tmp_path / "out", GRID.format(epochs=8)
    process = bench(plan, "--workers", "2")
    until(lambda: len(list(out.glob("*/experiment.json"))) == 2)
    workers = owners(out)
    assert len(set(workers)) == 2
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert said.rstrip().endswith("unswayed: stopped; the same command goes on from there")
    assert not owners(out)
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    store = Store(out)
    assert [store.state(id).name for id in store.cells()] == ["begun", "begun"]
    assert len(list(out.glob("*/checkpoint.pt"))) == 2
    before = {id: store.epochs(id) for id in store.cells()}

    (tmp_path / "quick").touch()
    process = bench(plan, "--workers", "1")
    shown, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "2 runs: 2 done" in shown
    for id, epochs in before.items():
        assert store.epochs(id)[: len(epochs)] == epochs
        assert len(store.epochs(id)) == 8


def test_a_worker_that_dies_fails_its_cell_alone(bench: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    (tmp_path / "quick").touch()
    plan = GRID.format(epochs=1).replace('"nets:Slow"', '["nets:Deadly", "nets:Net"]').replace(', "vce(a=1)"', "")
    process = bench(plan, "--workers", "1")
    shown, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "FAILED: the process that ran this died (SIGKILL); perhaps there was not enough memory" in said
    assert "2 runs: 1 done, 1 failed" in shown
    store = Store(tmp_path / "out")
    states = {planned.settings["model"]: store.state(id).name for id, planned in store.cells().items()}
    assert states == {"nets:Deadly": "failed", "nets:Net": "done"}


def test_two_benches_share_a_folder(bench: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> None:
    (tmp_path / "quick").touch()
    plan = GRID.format(epochs=2) + "seed = [0, 1, 2]\n"
    both = [bench(plan, "--workers", "1") for _ in range(2)]
    done = 0
    for process in both:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        done += said.count("test ")
        assert "FAILED" not in said
    store = Store(tmp_path / "out")
    assert [store.state(id).name for id in store.cells()] == ["done"] * 6
    assert done == 6


@pytest.mark.slow
def test_a_bench_that_was_killed_leaves_nothing_that_hinders_the_next(
    bench: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    out, plan = tmp_path / "out", GRID.format(epochs=8)
    process = bench(plan, "--workers", "2")
    until(lambda: len(list(out.glob("*/experiment.json"))) == 2)
    for worker in owners(out):
        os.kill(worker, signal.SIGKILL)
    process.kill()
    process.communicate()
    (tmp_path / "quick").touch()
    shown, said = bench(plan, "--workers", "1").communicate(timeout=300)
    assert "2 runs: 2 done" in shown, said
