"""``unswayed data check``: what it tells, draws and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from unswayed.cli.app import app


def check(*args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["data", "check", *args], env={"COLUMNS": "100"}, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def table(tmp_path: Path) -> str:
    lines = [f"{n},{n % 4},{'ham' if n % 3 else 'spam'}" for n in range(30)]
    (tmp_path / "mail.csv").write_text("\n".join(["length,links,kind", *lines, ""]))
    return str(tmp_path / "mail.csv")


def test_digits_as_json() -> None:
    facts = json.loads(check("digits", "--json"))
    assert (facts["name"], facts["in_shape"], facts["classes"]) == ("digits", [1, 8, 8], list("0123456789"))
    assert {part: sum(split["per_class"]) for part, split in facts["splits"].items()} == {"train": 1437, "test": 360}
    assert facts["splits"]["train"]["size"] == 1437
    assert all(split["in_memory"] and split["published_order"] for split in facts["splits"].values())


def test_a_table_in_words(table: str) -> None:
    told = check("features", table, "--label", "kind")
    assert "20% of each class are held out: 6 rows" in told
    assert "2 classes, examples of 2" in told
    rows = [line.split() for line in told.splitlines()]
    assert ["ham", "16", "4"] in rows
    assert ["spam", "8", "2"] in rows


def test_human_labels_and_their_rates(tmp_path: Path) -> None:
    y = np.arange(20) % 2
    np.savez(tmp_path / "a.npz", x=np.zeros((20, 3)), y=y, human_worst=1 - y)
    assert "human labels worst: 100.00 % differ" in check("features", str(tmp_path / "a.npz"))


def test_pictures(table: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    for args in (["digits"], ["features", table, "--label", "kind"]):
        told = check(*args, "--plot", str(tmp_path / "a.png"))
        assert f"wrote {tmp_path / 'a.png'}" in told.replace("\n", "")
        with image.open(tmp_path / "a.png") as drawn:
            assert min(drawn.size) > 300
            assert np.asarray(drawn.convert("RGB")).std() > 20


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["digit"], "did you mean 'digits'"),
        (["cifar10"], "needs the folder it is in"),
        (["cifar10", "/no/such/place"], "there is no '/no/such/place'"),
        (["digits", "--plot", "a.gif"], "a figure is written as .png"),
    ],
)
def test_mistakes_are_told(args: list[str], says: str) -> None:
    with pytest.raises((ValueError, OSError)) as caught:
        check(*args)
    assert says in str(caught.value)


def test_help_shows_how() -> None:
    assert "--plot" in check("--help")
