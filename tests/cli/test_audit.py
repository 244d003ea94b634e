"""What ``unswayed audit`` prints, writes and refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from unswayed.noise import make


def test_audit(program: Callable[..., str], tmp_path: Path) -> None:
    from unswayed.data import load

    clean = load("digits").train.labels
    noisy = make("symmetric(0.2)", clean, 10)
    file = tmp_path / "suspects.csv"
    command = ("audit", "--data", "digits", "--noise", "symmetric(0.2)", "--model", "linear", "--folds", "3", "-q")
    text = program(*command, "--top", "5", "--out", str(file))
    assert "of 1,437 labels are suspects, ranked by self-confidence" in text
    assert f"wrote {file}" in text
    with file.open(encoding="utf-8", newline="") as content:
        rows = list(csv.DictReader(content))
    first = [int(row["row"]) for row in rows[:100]]
    assert (noisy.labels != clean)[first].mean() > 0.85
    assert [int(row["label"]) for row in rows[:100]] == noisy.labels[first].tolist()
    found = json.loads(program(*command, "--json"))
    assert [row["row"] for row in found["suspects"]] == [int(row["row"]) for row in rows]
    assert found["number"] == len(rows) == sum(row["suspects"] for row in found["classes"])


def test_mistakes_are_told(program: Callable[..., str]) -> None:
    for args, message in (
        ((), "--data NAME[=PATH], or --probabilities FILE"),
        (("--data", "digits", "--score", "self"), "known: self-confidence"),
        (("--data", "digits", "--out", "x.txt"), "suspects are written as .csv"),
    ):
        assert message in program("audit", *args, code=2)
