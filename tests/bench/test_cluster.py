"""A bench on a Ray cluster of two nodes, one of which is killed in the middle."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from unswayed.bench import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray: pip install 'unswayed[ray]'"),
]

NETS = """
import pathlib, time
import torch

class Slow(torch.nn.Sequential):
    def __init__(self, num_classes, in_shape):
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, num_classes))

    def forward(self, x):
        if self.training and not pathlib.Path({quick!r}).exists():
            time.sleep(0.5)
        return super().forward(x)
"""
GRID = """
data = "digits"
noise = ["symmetric(0.2)", "human(worst)"]
loss = ["ce", "vce(a=1)"]
model = "nets:Slow"
recipe = { name = "digits", epochs = 8, batch_size = 256 }

[[exclude]]
noise = "human*"
loss = "vce*"
"""
# A cluster of two nodes of one processor each; a line on standard input kills the second one.
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        cluster.remove_node(second, allow_graceful=False)
        print("killed", flush=True)
cluster.shutdown()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets.py").write_text(textwrap.dedent(NETS.format(quick=str(tmp_path / "quick"))))
    (tmp_path / "grid.toml").write_text(GRID)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(folder: Path) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    yield process
    process.communicate(timeout=120)


def bench(*args: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "unswayed", "bench", "grid.toml", "--out", "out", "--engine", "ray", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def until_both_run(out: Path) -> None:
    deadline = time.monotonic() + 200
    while len(list(out.glob("*/.owner"))) < 2 or len(list(out.glob("*/experiment.json"))) < 2:
        assert time.monotonic() < deadline, "the runs have not begun in time"
        time.sleep(0.1)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def states(out: Path) -> dict[str, str]:
    store = Store(out)
    return {f"{planned.method}, {planned.column}": store.state(id).name for id, planned in store.cells().items()}


def test_a_node_is_killed_and_its_run_done_again(cluster: "subprocess.Popen[str]", folder: Path) -> None:
    assert cluster.stdin is not None
    assert cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    process = bench("--address", address, "--only", "noise=sym*")
    until_both_run(folder / "out")
    workers = [json.loads(path.read_text())["pid"] for path in (folder / "out").glob("*/.owner")]
    cluster.stdin.write("kill\n")
    cluster.stdin.flush()
    assert cluster.stdout.readline().strip() == "killed"
    deadline = time.monotonic() + 60
    while all(map(lives, workers)):
        assert time.monotonic() < deadline, "the node's worker lives on"
        time.sleep(0.1)
    assert [lives(worker) for worker in workers].count(True) == 1
    assert len(list((folder / "out").glob("*/result.json"))) == 0
    (folder / "quick").touch()
    shown, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "2 runs: 2 done" in shown
    assert said.count("test ") == 2
    # One that fails on the cluster stops nothing, and is kept.
    process = bench("--address", address)
    shown, said = process.communicate(timeout=300)
    assert process.returncode == 1, said
    assert said.count('FAILED: human("worst") needs the labels that people gave') == 1
    assert states(folder / "out") == {
        "ce, symmetric(0.2)": "done",
        "vce(a=1), symmetric(0.2)": "done",
        'ce, human("worst")': "failed",
    }


def test_ctrl_c_on_a_cluster_of_its_own(folder: Path) -> None:
    process = bench("--only", "noise=sym*", "--seeds", "1")
    deadline = time.monotonic() + 200
    while not list((folder / "out").glob("*/experiment.json")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 130, said
    assert not list((folder / "out").glob("*/.owner"))
    assert "begun" in states(folder / "out").values()
