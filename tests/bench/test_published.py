"""The paper's numbers: the project's own copy, and how it is read."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from unswayed.bench import published

SHARED = Path(__file__).parents[3] / "shared" / "paper" / "tables.json"


@pytest.mark.skipif(not SHARED.is_file(), reason=f"needs {SHARED}")
def test_the_copy_is_what_was_shared() -> None:
    copy = json.loads((files("unswayed.bench") / "reference" / "vbl.json").read_text(encoding="utf-8"))
    assert copy == json.loads(SHARED.read_text(encoding="utf-8"))


def test_numbers_of_a_table() -> None:
    assert len(published("benchmark")) == 11 * 8 * 2
    (one,) = [n for n in published("real_world") if (n.dataset, n.method) == ("webvision", "VCE")]
    assert (one.mean, one.std, one.statistic) == (69.69, 0.31, "last")
    assert {n.std for n in published("real_world") if n.method == "CE"} == {None}
    assert {n.statistic for n in published("combination")} == {"best"}
    with pytest.raises(ValueError, match="'benchmark'"):
        published("benchmarks")
