"""``unswayed demo``: what wrong labels do to a network, and what a robust loss does about it, in about a minute."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unswayed.report import Run
    from unswayed.training import Recipe

EXAMPLES = """Examples:

`unswayed demo` - 40 % of the labels wrong, four losses, three seeds; writes demo/report.html

`unswayed demo --noise "asymmetric(0.3)" --seeds 5 --out pairs`

The same command goes on with what was stopped, and does nothing twice.
"""
# Cross entropy, what everybody trains with; GCE and VCE with the parameters of their papers that the library takes by
# default; NCE+VCE with the paper's parameters for CIFAR-10, which has ten classes too.
LOSSES = ("ce", "gce(q=0.7)", "vce(a=1)", "nce + 10*vce(a=4)")


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the runs and the report.")] = Path(
        "demo"
    ),
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each loss.")] = 3,
    noise: Annotated[str, typer.Option("--noise", help="How labels go wrong.")] = "symmetric(0.4)",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train on digits with wrong labels, with four losses, and write a report to look at."""
    from rich.console import Console

    from unswayed.report import grouped, headline, results, write_page
    from unswayed.report.tables import for_terminal
    from unswayed.training import Diverged, Stopped

    started = time.monotonic()
    try:
        runs = run(out, seeds, noise, quiet=quiet)
    except (Diverged, Stopped, OSError) as error:
        # The command was right, but a run did not come to its end.
        print(f"unswayed: {error}", file=sys.stderr)
        raise typer.Exit(getattr(error, "exit_code", 1)) from None
    (group,) = grouped(runs)
    page = write_page(runs, out / "report.html", title="unswayed demo")
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=120)  # a pipe has no width of its own
    table = results(group)
    for shown in ("", group.title, "", for_terminal(table), "", table.note, "", headline(group)):
        console.print(shown, markup=False)
    took = f"{time.monotonic() - started:.0f} s"
    console.print(f"wrote {page} ({len(runs)} runs, {took}): open it in a browser", markup=False, soft_wrap=True)


def run(out: Path, seeds: int, noise: str, *, recipe: Recipe | None = None, quiet: bool = False) -> list[Run]:
    """Train each loss with each seed in a folder of its own, and return what the folders hold."""
    import torch

    from unswayed.data import load
    from unswayed.report import Run
    from unswayed.training import experiment_of, train, usual
    from unswayed.training.progress import percent

    def tell(text: str, end: str = "\n") -> None:
        if not quiet:
            print(text, end=end, file=sys.stderr, flush=True)

    data = load("digits")
    model, usual_recipe = usual(data)
    plan = recipe or usual_recipe
    cells = [(loss, seed) for loss in LOSSES for seed in range(seeds)]
    done = []
    threads = torch.get_num_threads()
    # So small a network gains little from more threads, loses much where other programs want the cores, and ends with
    # the same weights however many there are.
    torch.set_num_threads(1)
    try:
        for i, (loss, seed) in enumerate(cells, 1):
            folder = out / "runs" / experiment_of(model, data, loss, plan, noise=noise, seed=seed).id
            before = (folder / "result.json").is_file()
            tell(f"[{i:>{len(str(len(cells)))}}/{len(cells)}]  {loss + f', seed {seed}':<26}", end="")
            started = time.monotonic()
            try:
                last = train(model, data, loss, plan, noise=noise, seed=seed, out=folder).last
            except BaseException:
                tell("stopped")
                raise
            took = "was done before" if before else f"{time.monotonic() - started:.1f} s"
            tell(f"test {percent(last['test_accuracy']):>8}   memorised {percent(last['memorised']):>8}   {took}")
            done.append(Run.read(folder))
    finally:
        torch.set_num_threads(threads)
    return done
