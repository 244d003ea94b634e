"""``unswayed bench``: a grid of runs, resumable; how far it is; and folders of several machines in one."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from unswayed.bench.sources import Sources
    from unswayed.bench.store import Plan, Store
    from unswayed.bench.work import Outcome
    from unswayed.training import Experiment

EXAMPLES = """Examples:

`unswayed bench paper/benchmark --data cifar10=DIR --data cifar100=DIR --out results --dry-run`

`unswayed bench paper/benchmark --protocol embeddings --data cifar10=FILE --only "data=cifar10" --out results`

`unswayed bench grid.toml --out results --workers 2 --set recipe.epochs=20`

`unswayed bench status results`

`unswayed bench merge results-a results-b --out results`

The same command goes on with what was stopped, tries again what failed, and does nothing twice.
"""


class _Group(TyperGroup):
    """Commands, of which the first need not be named: ``bench PRESET`` is ``bench run PRESET``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    epilog=EXAMPLES,
    help="Run a grid of experiments: the paper's tables, or a TOML file. `bench PRESET` is `bench run PRESET`.",
)


class Protocol(StrEnum):
    """How the runs of a grid are trained."""

    paper = "paper"
    fast = "fast"
    embeddings = "embeddings"


class Reading(StrEnum):
    """Which side counts where the paper and public code differ."""

    written = "written"
    published = "published"


class Engine(StrEnum):
    """What runs the cells."""

    local = "local"
    ray = "ray"


@app.command(epilog=EXAMPLES)
def run(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PRESET|FILE",
            help="paper/instance, paper/benchmark, paper/ablation, paper/real-world, paper/figures, or a TOML file.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="NAME=PLACE", help="Where a data set is, like cifar10=DIR; repeatable."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of all runs.")] = Path("results"),
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KEY=PATTERN", help='Only cells like "loss=nce*" or data=cifar10; repeatable.'),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many of the seeds.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; by default one a GPU, or one a processor.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Worker processes on this machine, or tasks of a Ray cluster.")
    ] = Engine.local,
    address: Annotated[
        str | None, typer.Option("--address", help="Ray cluster, like auto; by default one is started here.")
    ] = None,
    gpus: Annotated[
        float | None, typer.Option("--gpus-per-run", min=0, help="Share of a GPU for each task of Ray.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of all cells, like recipe.epochs=20."),
    ] = None,
    protocol: Annotated[
        Protocol,
        typer.Option("--protocol", help="Full recipes, recipes with fewer epochs, or heads on tables of features."),
    ] = Protocol.paper,
    reading: Annotated[
        Reading, typer.Option("--as", help="Where code and text of the paper differ: as written, or as published.")
    ] = Reading.written,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells, what is done, and how long the rest takes; and stop.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run a grid of experiments; cells that are done are not done again."""
    from unswayed.bench import paper_grid, read_grid
    from unswayed.bench.local import run_local, usual_workers
    from unswayed.bench.sources import Sources
    from unswayed.bench.store import Store, plan_of
    from unswayed.bench.tell import matrix, summary, title
    from unswayed.bench.work import tasks
    from unswayed.training import Stopped

    _check_engine(engine, workers, address, gpus)
    if Path(what).suffix == ".toml" or Path(what).is_file():
        if reading is not Reading.written:
            raise ValueError(f"--as {reading} is for the paper's presets; {what} says itself what is run")
        grid = read_grid(what, protocol=protocol, seeds=seeds)
    else:
        grid = paper_grid(what, protocol=protocol, reading=reading, seeds=seeds)
    grid = grid.only(only or ()).set(settings or ())
    sources, store = Sources.of(data or (), protocol), Store(out)
    names = list(dict.fromkeys(cell.data for cell in grid.cells))
    sources.check(names)
    missing = [name for name in names if not sources.has(name)]
    if missing and not dry_run:
        places = " ".join(f"--data {name}={'FILE' if sources.embeddings else 'DIR'}" for name in missing)
        raise ValueError(f"{grid.name} needs {places} (or leave cells out with --only data=...)")
    found = {name: sources.name(name) if sources.knows(name) else name for name in names}
    plan = plan_of(grid, found)
    cells = {cell.id: cell for cell in plan.cells}
    todo = {
        one.id: (cell.data, one)
        for cell in grid.cells
        if store.state((one := cell.experiment(found[cell.data])).id).name != "done"
    }
    crew = workers or usual_workers()
    print(title(plan))
    for note in grid.notes:
        print(note)
    print(flush=True)
    if dry_run:
        unknown = [name for name in names if not sources.knows(name)]
        if unknown:
            print(f"what is done is not known without --data for {', '.join(unknown)}, which says what is in it\n")
        for line in [*matrix(plan, store), *summary(plan, store)]:
            print(line)
        print(_estimate(plan, store, sources, todo, max(1, min(crew, len(todo)))))
        return
    store.add(plan)
    watch = _Watch(store, plan, total=len(cells), left=len(todo), quiet=quiet)
    try:
        if engine is Engine.ray and todo:
            _on_cluster(address, gpus, list(todo.values()), sources, store, watch)
        else:
            run_local(tasks(todo.values(), crew), sources, store, workers=crew, tell=watch.tell)
    except (Stopped, OSError) as error:
        print(f"unswayed: {error}", file=sys.stderr)
        raise typer.Exit(getattr(error, "exit_code", 1)) from None
    for line in [*matrix(plan, store), *summary(plan, store)]:
        print(line)
    print(f"the runs are in {out}")
    if any(store.state(id).name == "failed" for id in cells):
        print(f"some runs failed: {out}/ID/error.json says why; the same command tries them again", file=sys.stderr)
        raise typer.Exit(1)


def _check_engine(engine: Engine, workers: int | None, address: str | None, gpus: float | None) -> None:
    if engine is Engine.ray and workers is not None:
        raise ValueError("--workers is for --engine local; a Ray cluster runs as many as it has resources for")
    if engine is Engine.local and (address is not None or gpus is not None):
        option = "--address" if address is not None else "--gpus-per-run"
        raise ValueError(f"{option} is for --engine ray")


def _on_cluster(
    address: str | None,
    gpus: float | None,
    todo: list[tuple[str, Experiment]],
    sources: Sources,
    store: Store,
    watch: _Watch,
) -> None:
    from unswayed.bench.cluster import connect, run_ray
    from unswayed.bench.work import tasks

    ray = connect(address)
    try:
        there = ray.cluster_resources()
        share = gpus if gpus is not None else float("GPU" in there)
        if share > there.get("GPU", 0):
            raise ValueError(f"--gpus-per-run {share:g}: the cluster has {there.get('GPU', 0):g} GPUs")
        size = max(1, int(there.get("CPU", 1)))
        run_ray(ray, tasks(todo, size), sources, store, gpus=share, tell=watch.tell)
    finally:
        ray.shutdown()


def _estimate(plan: Plan, store: Store, sources: Sources, todo: dict[str, tuple[str, Experiment]], workers: int) -> str:
    """Say how long the rest takes, from epochs that were timed, or else from steps that are timed now."""
    from unswayed.bench.local import threads_each
    from unswayed.bench.timing import in_words, kind, left, measured, time_steps

    if not todo:
        return "nothing is left to do"
    pace = measured(store, [(cell.id, cell.settings) for cell in plan.cells])
    timed = 0
    for name, one in todo.values():
        if kind(one.settings) not in pace and sources.has(name):
            pace[kind(one.settings)] = time_steps(one, sources.load(name), threads_each(workers))
            timed += 1
    rest = [(id, one.settings) for id, (_, one) in todo.items()]
    seconds = left(store, rest, pace)
    if seconds is None:
        unknown = dict.fromkeys(name for name, one in todo.values() if kind(one.settings) not in pace)
        return f"how long it takes is not known: give --data for {', '.join(unknown)}, to time a few steps"
    how = "from a few steps that were timed now" if timed else "from the epochs that were run"
    share = f", {workers} at a time" if workers > 1 else ""
    return f"{len(rest)} runs are left: about {in_words(seconds / workers)}{share} ({how})"


class _Watch:
    """Tells a line a run on standard error."""

    def __init__(self, store: Store, plan: Plan, *, total: int, left: int, quiet: bool) -> None:
        self.store, self.total, self.left, self.quiet = store, total, left, quiet
        self.cells = {cell.id: cell for cell in plan.cells}
        self.started, self.ran = time.monotonic(), 0

    def tell(self, outcomes: list[Outcome]) -> None:
        from unswayed.bench.tell import describe
        from unswayed.bench.timing import in_words
        from unswayed.training.progress import percent

        self.ran += sum(outcome.name != "elsewhere" for outcome in outcomes)
        for outcome in outcomes:
            self.left -= 1
            if self.quiet:
                continue
            said = outcome.detail
            if outcome.name == "done":
                last = self.store.epochs(outcome.id)[-1]
                said = f"test {percent(last.get('test_accuracy'))}   {in_words(outcome.seconds)}"
            elif outcome.name == "elsewhere":
                said = "is run, or was run, by another process"
            rest = ""
            if self.left and self.ran:
                rest = f"   about {in_words((time.monotonic() - self.started) / self.ran * self.left)} left"
            done = self.total - self.left
            shown = f"[{done:>{len(str(self.total))}}/{self.total}]  {describe(self.cells[outcome.id].settings)}"
            print(f"{shown}   {'FAILED: ' * (outcome.name == 'failed')}{said}{rest}", file=sys.stderr, flush=True)


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a bench.")],
) -> None:
    """Tell how far a bench is: its cells, what runs, what failed, how long the rest takes."""
    from unswayed.bench.store import Store
    from unswayed.bench.tell import matrix, summary, title
    from unswayed.bench.timing import in_words, left, measured

    store = _opened(folder)
    assert isinstance(store, Store)
    for plan in store.plans():
        print(title(plan))
        for note in plan.notes:
            print(note)
        print()
        for line in [*matrix(plan, store), *summary(plan, store)]:
            print(line)
        cells = [(cell.id, cell.settings) for cell in plan.cells]
        seconds = left(store, cells, measured(store, cells))
        if seconds:
            print(f"  the rest takes about {in_words(seconds)} of one worker")
        print()


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of benches.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder that gets all runs.")],
) -> None:
    """Copy the runs of several benches, from several machines, into one folder."""
    from collections import Counter

    from unswayed.bench.store import merge as merged

    counts = Counter(what for _, what in merged(folders, out))
    for what, count in counts.items():
        print(f"{count} {'run' if count == 1 else 'runs'} {what}".replace("runs was", "runs were"))
    print(f"merged into {out}")


def _opened(folder: Path) -> Store:
    from unswayed.bench.store import Store

    store = Store(folder)
    if not store.plans():
        raise ValueError(f"{folder} is no folder of a bench; give what --out named")
    return store
