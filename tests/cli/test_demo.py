"""``unswayed demo``: what it trains, what it writes, and what it says."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unswayed.cli.demo import LOSSES, run
from unswayed.report import grouped, headline, results
from unswayed.training import Diverged, Stopped, recipe


def test_runs_are_done_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    short = recipe("digits").replace(epochs=2)
    first = run(tmp_path, 1, "symmetric(0.4)", recipe=short)
    assert [run.loss for run in first] == list(LOSSES)
    assert all(run.noise["rate"] == pytest.approx(0.4, abs=1e-3) for run in first)
    told = capfd.readouterr().err.splitlines()
    assert [line[:7] for line in told] == ["[1/4]  ", "[2/4]  ", "[3/4]  ", "[4/4]  "]
    (folder, *_) = (tmp_path / "runs").iterdir()
    (folder / "result.json").unlink()
    again = run(tmp_path, 1, "symmetric(0.4)", recipe=short)
    assert [run.value("last", "test_nll") for run in again] == [run.value("last", "test_nll") for run in first]
    told = capfd.readouterr().err.splitlines()
    assert sum("was done before" in line for line in told) == 3
    run(tmp_path, 1, "symmetric(0.4)", recipe=short, quiet=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--noise", "symetric(0.4)"), "did you mean 'symmetric'"),
        (("--noise", "human(worst)"), "human"),
        (("--seeds", "0"), "Usage"),
    ],
)
def test_mistakes_get_one_message_and_exit_code_2(
    args: tuple[str, ...], message: str, tmp_path: Path, program: Callable[..., str]
) -> None:
    assert message in program("demo", "--out", str(tmp_path / "demo"), *args, code=2)
    assert not (tmp_path / "demo" / "report.html").exists()


@pytest.mark.parametrize(("error", "code"), [(Stopped(signal.SIGINT, " in epoch 3"), 130), (Diverged("it is nan"), 1)])
def test_a_run_that_does_not_end_is_told_of(
    error: BaseException, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[..., str]
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr("unswayed.training.train", fail)
    said = program("demo", "--out", str(tmp_path / "demo"), code=code)
    assert re.fullmatch(r"\[ 1/12\]  ce, seed 0 +stopped\nunswayed: " + re.escape(str(error)) + "\n", said)


@pytest.mark.slow
def test_the_demo_shows_what_wrong_labels_do(tmp_path: Path, program: Callable[..., str]) -> None:
    out = tmp_path / "demo"
    text = program("demo", "--out", str(out), "--seeds", "1")
    (group,) = grouped(run(out, 1, "symmetric(0.4)", quiet=True))
    assert headline(group) in " ".join(text.split())
    for row in results(group).rows:
        assert all(cell.text in text for cell in row)
    assert f"wrote {out / 'report.html'}" in text
    page = (out / "report.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'id="data">(.*?)</script>', page, re.S)
    kinds = [chart["kind"] for chart in json.loads(data)[0]["charts"]]
    assert kinds == ["lines", "lines", "lines", "heat", "reliability"]
    last = {s.loss: s.runs[0].record["last"] for s in group.settings}
    assert last["ce"]["memorised"] > 0.95
    assert last["ce"]["test_accuracy"] < 0.75
    for robust in LOSSES[2:]:
        assert last[robust]["memorised"] < 0.15
        assert last[robust]["test_accuracy"] > last["ce"]["test_accuracy"] + 0.1
