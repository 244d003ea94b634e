"""Run folders: what is refused, and what survives."""

import contextlib
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from unswayed import _files
from unswayed.data import Data, wrap
from unswayed.training import Experiment, Recipe, RunFolder, train

PLAN = Recipe(epochs=2, batch_size=16)


def points(seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    x, labels = torch.randn(48, 5, generator=generator), torch.arange(48) % 3
    return wrap((x, labels), (x, labels))


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_what_is_in_the_folder_of_a_run(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run"
    result = train("linear", points(), "vce", PLAN, noise="symmetric(0.3)", validation=0.25, out=out)
    names = {"experiment.json", "noise.json", "epochs.jsonl", "result.json", ".lock"}
    assert set(files(out)) == names | {f"weights/{which}.pt" for which in ("last", "best", "chosen")}
    found = json.loads((out / "result.json").read_text())
    for which in ("last", "best", "chosen"):
        assert found[which] == getattr(result, which)
    assert found["epochs"] == 2
    assert {"torch", "unswayed", "threads"} <= set(found["versions"])
    assert (found["device"], found["devices"], found["precision"]) == ("cpu", 1, "fp32")
    lines = [json.loads(line) for line in (out / "epochs.jsonl").read_text().splitlines()]
    assert lines == result.epochs
    assert json.loads((out / "experiment.json").read_text())["recipe"]["epochs"] == 2
    assert json.loads((out / "noise.json").read_text())["rate"] == pytest.approx(0.3, abs=0.02)


def test_a_run_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    what: tuple[Any, ...] = ("linear", points(), "vce", PLAN)
    first = train(*what, noise="symmetric(0.3)", out=tmp_path / "run")
    before = files(tmp_path / "run")
    again = train(*what, noise="symmetric(0.3)", out=tmp_path / "run")
    assert files(tmp_path / "run") == before
    assert again.record() == first.record()
    for a, b in zip(again.model.parameters(), first.model.parameters()):
        assert torch.equal(a, b)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    what: dict[str, Any] = {"model": "linear", "data": points(), "loss": "vce", "recipe": PLAN, "out": tmp_path / "run"}
    train(**what, noise="symmetric(0.3)")
    before = files(tmp_path / "run")

    def refused(says: str, **changes: Any) -> None:
        with pytest.raises(ValueError) as error:
            train(**(what | {"noise": "symmetric(0.3)"} | changes))
        assert says in str(error.value)

    refused("holds another experiment (loss: vce(a=1), not ce); give another folder", loss="ce")
    refused("recipe.lr: 0.1, not 0.2", recipe=PLAN.replace(lr=0.2))
    refused("seed: 0, not 1", seed=1)
    refused("holds another experiment (data: own#", data=points(seed=1))
    path = tmp_path / "run" / "noise.json"
    drawn = json.loads(path.read_text())
    path.write_text(json.dumps(drawn | {"versions": {"unswayed": "0.0.1"}}))
    train(**what, noise="symmetric(0.3)")  # drawn by another version, but the same
    path.write_text(json.dumps(drawn | {"sha256": {"labels": "00", "clean": "00"}}))
    refused("was trained on other labels (sha256.labels: 00, not ")
    path.write_bytes(before["noise.json"])
    record = tmp_path / "run" / "experiment.json"
    record.write_text(json.dumps({"format": 99}))
    refused("was written by a newer version of unswayed (format 99, this one reads 1)")
    record.write_text("{")
    refused("cannot be read as JSON")
    record.write_bytes(before["experiment.json"])
    assert files(tmp_path / "run") == before
    (tmp_path / "file").write_text("")
    refused("is a file; give a folder", out=tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    refused("is not empty and holds no run", out=tmp_path / "other")
    assert set(files(tmp_path / "other")) == {"letter.txt"}


@contextlib.contextmanager
def small_files(limit: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: what a full disk does to a checkpoint."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def interrupted(out: Path) -> dict[str, Any]:
    """A run that has done one of its two epochs; with what it takes to go on."""
    what: dict[str, Any] = {
        "model": "mlp(hidden=400)", "data": points(), "loss": "vce", "recipe": PLAN, "out": out, "checkpoint_every": 0,
    }  # fmt: skip

    class StopAfterOne(Exception):
        pass

    class Stopper:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: None

        def epoch(self, record: dict[str, Any], epochs: int) -> None:
            if record["epoch"] == 2:
                raise StopAfterOne

    with pytest.raises(StopAfterOne):
        train(**what, progress=Stopper())  # type: ignore[arg-type]
    return what


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    what = interrupted(tmp_path / "run")
    before = files(tmp_path / "run")
    assert len(before["checkpoint.pt"]) > 20000
    with small_files(10000), pytest.raises(OSError) as error:
        train(**what)
    said = str(error.value)
    assert said.startswith("cannot write")
    assert "what was written before is intact" in said
    assert files(tmp_path / "run") == before
    whole = train(**(what | {"out": tmp_path / "whole"}))
    result = train(**what)
    for a, b in zip(result.model.parameters(), whole.model.parameters()):
        assert torch.equal(a, b)


def test_no_space_left_is_told_in_the_systems_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    what = interrupted(tmp_path / "run")
    before = files(tmp_path / "run")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "fsync", full)
        with pytest.raises(OSError, match=r"cannot write .*\.pt: No space left on device; what was written"):
            train(**what)
    assert files(tmp_path / "run") == before


def test_a_folder_that_may_not_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        outside = Path(name)
        out = outside / "run"
        what = interrupted(out)
        before = files(out)
        outside.chmod(0o755)
        for path in (out, out / "weights"):
            path.chmod(0o555)
        (out / ".lock").chmod(0o444)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)  # to root, permissions are no obstacle
        try:
            with pytest.raises(OSError, match=r"cannot write .*Permission denied"):
                train(**what)
            with pytest.raises(OSError, match=r"cannot make the folder .*Permission denied"):
                train(**(what | {"out": out / "deeper"}))
        finally:
            if root:
                os.seteuid(0)
            for path in (out, out / "weights"):
                path.chmod(0o755)
        assert files(out) == before


def test_two_processes_do_not_write_into_one_folder(tmp_path: Path) -> None:
    experiment = Experiment("digits", "given", "linear", "ce")
    script = textwrap.dedent(f"""
        import sys, time
        from unswayed.training import Experiment, RunFolder
        folder = RunFolder({str(tmp_path / "run")!r}, Experiment("digits", "given", "linear", "ce"))
        folder.open({{}})
        (folder.path / ".x.part").write_text("half")
        print("open", flush=True)
        time.sleep(60)
    """)
    first = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        second = RunFolder(tmp_path / "run", experiment)
        with pytest.raises(ValueError, match="is being written by another process; wait for it, or stop it first"):
            second.open({})
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=30)
        second.open({})
        assert not list((tmp_path / "run").glob(".*.part"))
        second.close()
    finally:
        first.kill()
        first.wait()
        first.stdout.close()


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    what = interrupted(tmp_path / "run")
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(ValueError, match=r"checkpoint\.pt cannot be read .*delete the folder"):
        train(**what)
