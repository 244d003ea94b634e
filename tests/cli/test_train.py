"""``unswayed train``: what it prints, where it writes, how it ends."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unswayed.cli import main

QUICK = ("--model", "linear", "--set", "epochs=2")


@pytest.fixture
def unswayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in an empty folder; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unswayed", *args])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        assert code is None or isinstance(code, int)
        shown = capsys.readouterr()
        return code or 0, shown.out, shown.err

    return run


def test_it_says_what_it_found_and_where_that_is(unswayed: Any) -> None:
    code, shown, said = unswayed("train", "--noise", "symmetric(0.4)", "--loss", "vce(a=1)", *QUICK)
    assert code == 0
    assert "vce(a=1) on digits with symmetric(0.4) noise, linear, seed 0: 2 epochs" in said
    assert "epoch 2/2  loss" in said
    assert "\x1b" not in said
    assert re.search(r"last epoch +epoch +2 +test +\d+\.\d\d % +memorised +\d+\.\d\d %", shown)
    folder = Path(re.search(r"wrote (runs/[0-9a-f]{12})\n", shown)[1])  # type: ignore[index]
    assert json.loads((folder / "result.json").read_text())["id"] == folder.name
    again = unswayed("train", "--noise", "symmetric(0.4)", "--loss", "vce(a=1)", *QUICK)
    assert again == (0, shown, "")


def test_noisy_labels_from_a_file(unswayed: Any) -> None:
    code, _, said = unswayed("noise", "make", "symmetric(0.4)", "--data", "digits", "--out", "n.npz", "--seed", "7")
    assert code == 0, said
    of_file = unswayed("train", "--json", "--quiet", "--noise", "n.npz", *QUICK)[1]
    drawn = unswayed("train", "--json", "--quiet", "--noise", "symmetric(0.4)", "--noise-seed", "7", *QUICK)[1]
    assert json.loads(of_file)["last"] == json.loads(drawn)["last"]
    np.savez("other.npz", x=np.eye(4), y=[0, 0, 1, 1])
    code, _, said = unswayed("train", "--data", "features=other.npz", "--noise", "n.npz", *QUICK)
    assert code == 2
    assert "made for other labels" in said


def test_quiet_and_json(unswayed: Any, tmp_path: Path) -> None:
    code, shown, said = unswayed("train", "--quiet", "--json", "--validation", "0.1", "--out", "here", *QUICK)
    assert (code, said) == (0, "")
    found = json.loads(shown)
    assert found["last"]["epoch"] == 2
    assert found["chosen"]["val_accuracy"] >= found["last"]["val_accuracy"]
    assert json.loads((tmp_path / "here" / "result.json").read_text())["last"] == found["last"]


def test_a_bar_on_a_terminal(unswayed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR")
    assert unswayed("train", *QUICK)[0] == 0
    assert "━" in stream.getvalue()
    assert "left  epoch" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())


def test_what_would_be_run(unswayed: Any, tmp_path: Path) -> None:
    code, shown, _ = unswayed(
        "train", "--dry-run", "--recipe", "paper/cifar10", "--set", "lr=0.05", "--set", "augment=flip",
        "--precision", "bf16", "--seed", "3", "--noise-seed", "4",
    )  # fmt: skip
    assert code == 0
    found = json.loads(shown)
    assert (found["seed"], found["noise_seed"], found["loss"]) == (3, 4, "vce(a=1)")
    assert found["recipe"] | {"lr": 0.05, "augment": "flip", "precision": "bf16", "l1": 5e-5} == found["recipe"]
    assert not list(tmp_path.iterdir())


def test_features_from_a_file(unswayed: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    np.savez(tmp_path / "other.npz", x_train=x + 1, y_train=y, x_test=x, y_test=y)
    ids = []
    for name in ("mine", "other"):
        args = ("train", "--data", f"features={name}.npz", "--noise", "symmetric(0.2)", "--set", "epochs=1", "--json")
        code, shown, said = unswayed(*args)
        assert code == 0, said
        ids.append(json.loads(shown)["id"])
    assert ids[0] != ids[1]  # other numbers are another experiment


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--data", "digit"), "unknown data set 'digit'; did you mean 'digits'?"),
        (("--data", "cifar10"), "on the command line cifar10=FOLDER"),
        (("--data", "cifar10=nowhere"), "cifar10: there is no 'nowhere'"),
        (("--noise", "symetric(0.4)"), "did you mean 'symmetric'?"),
        (("--loss", "vcee"), "did you mean 'vce'?"),
        (("--model", "cnn9"), "did you mean 'cnn8'?"),
        (("--recipe", "paper/cifar"), "did you mean 'paper/cifar10'?"),
        (("--set", "learning_rate=1"), "a recipe has no 'learning_rate'"),
        (("--set", "lr=-1"), "recipe: lr=-1 is not allowed; lr > 0"),
        (("--precision", "fp16"), "precision is one of 'auto', 'fp32', 'bf16'"),
        (("--validation", "0.7"), "validation=0.7 is not allowed; 0 <= validation <= 0.5"),
        (("--seed", "-1"), "seed=-1 is not allowed"),
        (("--device", "gpu"), "device='gpu' is not allowed"),
        (("--lose", "vce"), "No such option: --lose"),
        (("--out", "file"), "file is a file; give a folder"),
    ],
)
def test_mistakes_end_with_code_2_and_one_message(
    args: tuple[str, str], says: str, unswayed: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    code, shown, said = unswayed("train", *args)
    assert (code, shown) == (2, "")
    assert says in said
    assert "Traceback" not in said
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


def test_a_run_that_fails_ends_with_code_1(unswayed: Any, tmp_path: Path) -> None:
    code, shown, said = unswayed("train", "--loss", "ce", "--set", "lr=1e30", "--set", "clip_norm=0", "--out", "x")
    assert (code, shown) == (1, "")
    assert "is not finite in epoch 1, step" in said or "weights of the network are not finite" in said
    code, shown, said = unswayed("train", *QUICK, "--out", "/proc/nothing/run")
    assert (code, shown) == (1, "")
    assert "unswayed: cannot make the folder /proc/nothing/run" in said


def test_help_has_examples(unswayed: Any) -> None:
    code, shown, _ = unswayed("train", "--help")
    assert code == 0
    for words in ("Examples", "--noise-seed", "--validation", "--devices", "goes on with a run that was stopped"):
        assert words in shown
