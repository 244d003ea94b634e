"""A run that was killed or stopped goes on, and ends where it would have ended."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import torch

# One process that imports torch once; each run is a fork of it, and dies alone.
DRIVER = """
import os, random, signal, sys, time
import torch
from unswayed.data import load
from unswayed.training import Progress, Recipe, folder, loop, train

torch.set_num_threads(1)
out, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
data = load("digits")
# Dropout, batch norm, averaged weights, and a loss with a buffer: all that a checkpoint has to hold.
class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(),
            torch.nn.Dropout(0.2), torch.nn.Linear(32, 10),
        )

class Remembering(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1437))

    def forward(self, logits, target, index):
        each = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        loss = (each * (1 + self.last[index].tanh())).mean()
        self.last[index] = each.detach()
        return loss

def run(name):
    torch.manual_seed(0)
    train(
        Net(), data, Remembering(), Recipe(epochs=4, batch_size=100, lr=0.2, l1=1e-4, average=0.9, augment="crop(1)"),
        noise="symmetric(0.4)", seed=3, validation=0.2, out=f"{out}/{name}", checkpoint_every=0,
    )

def in_a_process(act):
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(9)
        os._exit(0)
    return pid

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def in_a_step():
    at, real = rng.randrange(1, 15), loop.Loop._step
    print("killed in step", at)
    def step(self, x, index):
        if self.epoch * 12 + self.step == at:
            die()
        real(self, x, index)
    loop.Loop._step = step
    run("killed")

def in_a_checkpoint():
    at, real, count = rng.randrange(1, 15), torch.save, [0]
    print("killed in write", at)
    def save(state, path):
        real(state, path)
        count[0] += 1
        if count[0] == at:
            os.truncate(path, os.path.getsize(path) // 2)
            die()
    folder.torch.save = save
    run("killed")

assert ended(in_a_process(lambda: run("whole"))) == 0
assert ended(in_a_process(in_a_step)) == -signal.SIGKILL
assert ended(in_a_process(in_a_checkpoint)) == -signal.SIGKILL
def written():
    return os.stat(f"{out}/killed/checkpoint.pt").st_mtime_ns
before = written()
pid = in_a_process(lambda: run("killed"))
while written() == before:
    time.sleep(0.001)
time.sleep(rng.uniform(0, 0.1))
os.kill(pid, signal.SIGKILL)
assert ended(pid) == -signal.SIGKILL
assert ended(in_a_process(lambda: run("killed"))) == 0
"""


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "epochs.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(each) for key, each in value.items() if key != "seconds"}
    return value


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_kill_9_three_times_and_it_ends_the_same_to_the_last_bit(seed: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(seed)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert metrics(killed) == metrics(whole)
    assert len(metrics(whole)) == 4
    first, second = (json.loads((folder / "result.json").read_text()) for folder in (whole, killed))
    assert without_seconds(first) == without_seconds(second)
    for which in ("last", "best", "chosen"):
        a, b = (torch.load(folder / "weights" / f"{which}.pt", weights_only=True) for folder in (whole, killed))
        assert set(a) == set(b)
        assert all(torch.equal(a[key], b[key]) for key in a), which
    assert not list(killed.rglob("*.part"))


def started(out: Path, *args: str) -> subprocess.Popen[str]:
    """Start a run on the command line, and wait until its first epoch is over."""
    command = [sys.executable, "-m", "unswayed", "train", "--model", "mlp(hidden=64)", "--noise", "symmetric(0.4)"]
    command += ["--set", "epochs=20000", "--checkpoint-every", "1000", "--out", str(out), *args]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert run.stderr is not None
    while "loss" not in (line := run.stderr.readline()):
        assert line, run.communicate()
    return run


def test_ctrl_c_and_sigterm_finish_the_step_and_write_a_checkpoint(tmp_path: Path) -> None:
    out, last = tmp_path / "run", -1
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        run = started(out)
        time.sleep(0.2)
        run.send_signal(number)
        shown, said = run.communicate(timeout=60)
        assert run.returncode == code
        assert "unswayed: stopped in epoch" in said
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
        assert shown == ""
        state = torch.load(out / "checkpoint.pt", weights_only=True)
        assert state["epoch"] * 12 + state["step"] > last
        last = state["epoch"] * 12 + state["step"]
        assert f"stopped in epoch {state['epoch'] + 1}, after step {state['step']} of 12" in said
        assert len((out / "epochs.jsonl").read_text().splitlines()) == state["epoch"]
        assert not (out / "result.json").exists()


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import signal, os
        from unswayed.training.stopping import asked_to_stop
        # Who runs the tests in the background may have Ctrl-C ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with asked_to_stop() as asked:
            os.kill(os.getpid(), signal.SIGINT)
            assert asked == [signal.SIGINT]
            try:
                os.kill(os.getpid(), signal.SIGINT)
                print("still here")
            except KeyboardInterrupt:
                print("gone")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("gone\n", 0), done.stderr
