"""The folder of a bench: plans, states, errors, and several folders in one."""

import json
import shutil
from pathlib import Path

import pytest

from unswayed.bench import Cell, Grid, Store
from unswayed.bench.claims import Claim
from unswayed.bench.sources import Sources
from unswayed.bench.store import merge, plan_of
from unswayed.bench.work import Task, tasks, work
from unswayed.training import Experiment, Recipe

QUICK = Recipe(epochs=2, batch_size=256)


def cells(*losses: str, noise: str = "clean", seeds: int = 1, recipe: Recipe = QUICK) -> tuple[Cell, ...]:
    return tuple(Cell("digits", noise, "linear", loss, recipe, seed) for loss in losses for seed in range(seeds))


def started(path: Path, *losses: str, **how: object) -> Store:
    """Return a bench whose plan is written down, with no run."""
    store = Store(path)
    store.add(plan_of(Grid("mine", cells(*losses, **how)), {"digits": "digits"}))  # type: ignore[arg-type]
    return store


def experiments(store: Store) -> list[Experiment]:
    found = []
    for planned in store.cells().values():
        settings = {key: value for key, value in planned.settings.items() if key != "recipe"}
        found.append(Experiment(**settings, recipe=Recipe(**planned.settings["recipe"])))
    return found


def run(store: Store, count: int | None = None) -> list[str]:
    some = experiments(store)[:count]
    return [outcome.name for outcome in work(Task("digits", tuple(some), True), Sources({}), store)]


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    store = started(tmp_path, "ce", "vce(a=1)")
    assert run(store, 1) == ["done"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert sorted(run(store)) == ["done", "elsewhere"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [store.state(id).name for id in store.cells()] == ["done", "done"]


def test_one_failing_run_keeps_its_error_and_stops_nothing(tmp_path: Path) -> None:
    """One that diverges, and one whose noise this data does not have; both in one stack with others."""
    store = started(tmp_path, "ce", "vce(a=1)")
    store.add(plan_of(Grid("broken", cells("ce", noise='human("worst")')), {"digits": "digits"}))
    wild = QUICK.replace(lr=1e38, clip_norm=0.0)
    store.add(plan_of(Grid("wild", cells("ce", recipe=wild)), {"digits": "digits"}))
    names = {planned.id: planned for planned in store.cells().values()}
    task = Task("digits", tuple(experiments(store)), True)
    outcomes = {outcome.id: outcome for outcome in work(task, Sources({}), store)}
    for id, planned in names.items():
        failed = planned.column.startswith("human") or planned.settings["recipe"]["lr"] > 1
        assert outcomes[str(id)].name == store.state(str(id)).name == ("failed" if failed else "done")
        assert (store.error(str(id)) is not None) == failed
    (human,) = [id for id, planned in names.items() if planned.column.startswith("human")]
    error = json.loads((store.folder(str(human)) / "error.json").read_text())
    assert "needs the labels that people gave" in error["error"]
    assert "Traceback" in error["traceback"]
    assert not list(tmp_path.rglob(".owner"))


def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    store = started(tmp_path, "ce")
    (id,) = store.cells()
    store.fail(id, ValueError("the disk was full"))
    assert (store.state(id).name, store.state(id).detail) == ("failed", "the disk was full")
    assert run(store) == ["done"]
    assert store.error(id) is None
    assert store.state(id).name == "done"


def test_what_others_run_is_left_to_them(tmp_path: Path) -> None:
    store = started(tmp_path, "ce", "vce(a=1)")
    first, second = store.cells()
    claim = Claim.take(store.folder(first))
    assert claim is not None
    assert store.state(first).name == "running"
    assert sorted(run(store)) == ["done", "elsewhere"]
    assert not (store.folder(first) / "result.json").exists()
    claim.release()
    assert store.state(first).name == "open"
    assert store.state(second).name == "done"


def test_data_that_is_not_there_fails_the_runs_that_need_it(tmp_path: Path) -> None:
    store = started(tmp_path, "ce", "vce(a=1)")
    some = tuple(experiments(store))
    names = [outcome.name for outcome in work(Task("cifar10", some, False), Sources({}), store)]
    assert names == ["failed", "failed"]
    assert "it is not known where cifar10 is" in store.state(some[0].id).detail


def test_plans_of_one_grid_are_one(tmp_path: Path) -> None:
    store = started(tmp_path, "ce", "vce(a=1)")
    store.add(plan_of(Grid("mine", cells("ce", "mae(scale=2)")), {"digits": "digits"}))
    store.add(plan_of(Grid("mine", cells("ce"), changes=("recipe.epochs=2",)), {"digits": "digits"}))
    store.add(plan_of(Grid("mine", cells("ce"), changes=("recipe.epochs=2",)), {"digits": "digits"}))
    found = {plan.changes: sorted(cell.method for cell in plan.cells) for plan in store.plans()}
    assert found == {(): ["ce", "mae(scale=2)", "vce(a=1)"], ("recipe.epochs=2",): ["ce"]}
    assert len(store.cells()) == 3


def test_a_damaged_plan_is_told(tmp_path: Path) -> None:
    started(tmp_path, "ce")
    (path,) = (tmp_path / "grids").glob("*.json")
    path.write_text('{"format": 1}')
    with pytest.raises(ValueError, match="it is no plan of a bench, or it was damaged"):
        Store(tmp_path).plans()


def test_merging_takes_the_further_run(tmp_path: Path) -> None:
    one, two = (started(tmp_path / name, "ce", "vce(a=1)", "mae(scale=2)") for name in ("one", "two"))
    a, b, c = one.cells()
    run(one, 1)
    run(two, 2)
    two.fail(c, "no luck")
    assert dict(merge([one.path, two.path], tmp_path / "all")) == {
        a: "was there already", b: "copied", c: "copied",
    }  # fmt: skip
    both = Store(tmp_path / "all")
    assert {id: both.state(id).name for id in both.cells()} == {a: "done", b: "done", c: "failed"}
    assert (both.folder(a) / "result.json").read_bytes() == (one.folder(a) / "result.json").read_bytes()
    assert not list(both.path.rglob(".*"))
    # The third one has been run since.
    run(one)
    assert dict(merge([one.path], tmp_path / "all"))[c] == "copied"
    assert [both.state(id).name for id in (a, b, c)] == ["done", "done", "done"]
    assert both.error(c) is None


def test_merging_keeps_the_longer_of_two_that_were_stopped(tmp_path: Path) -> None:
    one, two = (started(tmp_path / name, "ce") for name in ("one", "two"))
    (id,) = one.cells()
    for store, epochs in ((one, 1), (two, 3)):
        store.folder(id).mkdir()
        (store.folder(id) / "epochs.jsonl").write_text('{"epoch": 1, "seconds": 2.0}\n' * epochs)
    assert list(merge([one.path, two.path], tmp_path / "all")) == [(id, "copied"), (id, "copied")]
    assert len(Store(tmp_path / "all").epochs(id)) == 3
    assert list(merge([one.path], tmp_path / "all")) == [(id, "was there already")]
    claim = Claim.take(two.folder(id))
    assert claim is not None
    shutil.rmtree(tmp_path / "all" / id)
    assert list(merge([two.path], tmp_path / "all")) == [(id, "left out: it is being run")]


def test_merging_what_is_no_bench(tmp_path: Path) -> None:
    one = started(tmp_path / "one", "ce")
    with pytest.raises(ValueError, match="is no folder of a bench"):
        list(merge([tmp_path], tmp_path / "all"))
    with pytest.raises(ValueError, match="merged into itself"):
        list(merge([one.path], one.path))


def test_tasks_stack_what_shares_its_batches() -> None:
    heads = [Experiment("d", "clean", "linear", loss, QUICK, seed) for loss in ("ce", "mae", "nce") for seed in (0, 1)]
    nets = [Experiment("d", "clean", "cnn4", "ce", QUICK), Experiment("d", "clean", "linear", "ogc", QUICK)]
    found = tasks((("d", one) for one in [*nets, *heads]), workers=2)
    assert [(len(task.experiments), task.stacked) for task in found] == [
        (2, True), (1, True), (2, True), (1, True), (1, False), (1, False),
    ]  # fmt: skip
    assert all(len({one.seed for one in task.experiments}) == 1 for task in found)
    assert sorted(one.id for task in found for one in task.experiments) == sorted(one.id for one in [*nets, *heads])
