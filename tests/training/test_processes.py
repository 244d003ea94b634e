"""Two processes (gloo, on one machine) do what one does."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

# 203 examples in batches of 50: the last has 3, so that one process has 2 and the other 1; 101 to test on.
SCRIPT = textwrap.dedent("""
    import sys
    import torch
    import unswayed
    from unswayed.data import wrap
    from unswayed.training import Recipe, train

    out, devices, kind, spec = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(304) % 4
    x = torch.randn(4, 6, generator=generator)[labels] + torch.randn(304, 6, generator=generator)
    data = wrap((x[:203], labels[:203]), (x[203:], labels[203:]))
    torch.manual_seed(0)
    layers = [torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)]
    if kind == "norm":
        layers.insert(1, torch.nn.BatchNorm1d(16))
    loss = unswayed.loss(spec, weight=[1, 2, 0.5, 1])
    # A batch of one example: the second process has none.
    recipe = Recipe(epochs=3, batch_size=101 if kind == "lonely" else 50, lr=0.5, l1=1e-3, average=0.5)
    result = train(
        torch.nn.Sequential(*layers), data, loss, recipe, noise="symmetric(0.4)", devices=devices,
        validation=0.1 if kind == "held" else 0, out=f"{out}/{devices}",
    )
    rank = torch.distributed.get_rank() if devices > 1 else 0
    state = result.model.state_dict()
    for name, value in loss.state_dict().items():
        if name.endswith("extra_state"):
            value = torch.tensor(list(value.values()), dtype=torch.float64)
        state[f"loss.{name}"] = value
    torch.save(state, f"{out}/{devices}-{rank}.pt")
""")


def alone() -> dict[str, str]:
    """The environment of a process that is not part of another's run."""
    return {key: value for key, value in os.environ.items() if "RANK" not in key} | {"OMP_NUM_THREADS": "1"}


def run(tmp_path: Path, *command: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, env=alone(), timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def epochs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "epochs.jsonl").read_text().splitlines()]


def check_same(tmp_path: Path, exactly: bool = True) -> None:
    one, *two = (torch.load(tmp_path / name, weights_only=True) for name in ("1-0.pt", "2-0.pt", "2-1.pt"))
    for key, value in two[0].items():
        assert torch.equal(value, two[1][key]), key
        if exactly:
            assert torch.allclose(value, one[key], rtol=1e-4, atol=1e-5), key
    for mine, theirs in zip(epochs(tmp_path / "2"), epochs(tmp_path / "1"), strict=True):
        for key in set(mine) - {"seconds"}:
            if exactly:
                assert mine[key] == pytest.approx(theirs[key], rel=1e-4), key
    result = json.loads((tmp_path / "2" / "result.json").read_text())
    assert result["devices"] == 2
    assert result["calibration"]["n"] == 101
    assert sum(count for count, _, _ in result["calibration"]["bins"]) == 101


REMEMBERING = (
    "ce + elr(beta=0.5, weight=1) + truncated_gce(k=0.3, start=1, every=1) + ogc(budget=0.5, every=2, window=128)"
)


@pytest.mark.parametrize(("kind", "spec"), [("plain", "vce(a=1)"), ("lonely", REMEMBERING)])
def test_two_devices_end_where_one_does(kind: str, spec: str, tmp_path: Path) -> None:
    for devices in ("1", "2"):
        run(tmp_path, "script.py", str(tmp_path), devices, kind, spec)
    check_same(tmp_path)
    if spec == REMEMBERING:
        state = torch.load(tmp_path / "2-0.pt", weights_only=True)
        assert (state["loss.losses.1.memory"][:203].sum(1) > 0.1).all()
        assert 0 < state["loss.losses.2.left_out"].sum() < 203
        assert (state["loss.losses.2.seen"][:203] == 3).all()
        assert 0 < state["loss.losses.3._extra_state"][2] < 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "held", "lonely", "norm", "remembering"])
def test_under_torchrun(kind: str, tmp_path: Path) -> None:
    spec = REMEMBERING if kind == "remembering" else "vce(a=1)"
    run(tmp_path, "script.py", str(tmp_path), "1", kind, spec)
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    run(tmp_path, *torchrun, "script.py", str(tmp_path), "2", kind, spec)
    # Processes without a GPU normalise by the statistics of their own half of each batch.
    check_same(tmp_path, exactly=kind != "norm")


@pytest.mark.slow
def test_the_command_line_speaks_once(tmp_path: Path) -> None:
    def unswayed(*args: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "unswayed",
            "train",
            "--model",
            "linear",
            "--set",
            "epochs=2",
            "--devices",
            "2",
        ]
        command += ["--out", str(tmp_path / "run"), *args]
        return subprocess.run(command, capture_output=True, text=True, env=alone(), timeout=300)

    done = unswayed("--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["calibration"]["n"] == 360
    assert done.stderr.count("2 epochs") == 1
    refused = unswayed("--seed", "1")
    assert refused.returncode == 2
    assert refused.stderr.count("holds another experiment") == 1
