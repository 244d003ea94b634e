"""Reading runs, and which of them are averaged."""

import json
import statistics
from pathlib import Path

import pytest

from report_cases import made
from unswayed.report import Run, Summary, grouped


def written(folder: Path, run: Run) -> Path:
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps(run.record))
    (folder / "epochs.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in run.epochs))
    return folder


def test_a_folder_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = made("vce(a=1)", seed=3)
    assert Run.read(written(tmp_path / "a", run)) == run
    assert run.seeds == (3, 3)
    assert run.value("best", "test_accuracy") == 0.7
    assert run.value("chosen", "test_accuracy") is None


def test_what_is_no_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no result\.json; finish it"):
        Run.read(tmp_path)
    folder = written(tmp_path / "a", made())
    lines = (folder / "epochs.jsonl").read_text().splitlines()
    (folder / "epochs.jsonl").write_text(lines[0] + "\n")
    with pytest.raises(ValueError, match=r"has 1 epochs, where result\.json speaks of 3"):
        Run.read(folder)
    (folder / "result.json").write_text('{"experiment": 3}')
    with pytest.raises(ValueError, match="is not the result of a run"):
        Run.read(folder)
    (folder / "result.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        Run.read(folder)


def test_only_runs_that_differ_in_their_seeds_alone_are_averaged() -> None:
    runs = [made("ce", 0), made("vce(a=1)", 0), made("ce", 1), made("ce", 0, recipe={"epochs": 3, "lr": 0.2})]
    one, other = grouped(runs)
    assert [(s.loss, len(s.runs)) for s in one.settings] == [("ce", 2), ("vce(a=1)", 1)]
    assert [(s.loss, len(s.runs)) for s in other.settings] == [("ce", 1)]
    with pytest.raises(ValueError, match="ce with seed 0 is given twice"):
        grouped([made(), made()])
    with pytest.raises(ValueError, match="no run to report"):
        grouped([])


def test_mean_and_deviation_of_a_sample() -> None:
    values = (0.91, 0.94, 0.95)
    summary = Summary(values)
    assert summary.mean == pytest.approx(sum(values) / 3)
    assert summary.std == pytest.approx(statistics.stdev(values))
    assert str(summary) == "93.33 ± 2.08"
    assert Summary((0.5,)).std is None


def test_curves_are_means_over_the_runs_that_have_a_value() -> None:
    (group,) = grouped([made(seed=0, accuracy=(0.2, 0.4)), made(seed=1, accuracy=(0.4, 0.8), memorised=None)])
    (setting,) = group.settings
    assert [round(point.mean, 6) for point in setting.curve("test_accuracy") if point] == [0.3, 0.6]
    assert [point and point.values for point in setting.curve("memorised")] == [(0.0,), (0.1,)]
    assert setting.curve("val_accuracy") == [None, None]


def test_draws_and_classes() -> None:
    (group,) = grouped([made("ce", 1), made("ce", 0), made("vce(a=1)", 0)])
    assert [draw["seed"] for draw in group.draws] == [0, 1]
    assert group.classes == tuple("0123456789")
    assert group.title == "digits, symmetric(0.4), mlp"
