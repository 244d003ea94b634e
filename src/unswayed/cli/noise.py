"""``unswayed noise``: make labels wrong, show how wrong they are, and estimate it where nobody knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unswayed.cli import _data, _probabilities

if TYPE_CHECKING:
    from rich.console import Console

    from unswayed.noise import NoiseEstimate, NoisyLabels
    from unswayed.noise.matrix import Matrix

EXAMPLES_MAKE = """Examples:

`unswayed noise make "symmetric(0.4)" --data digits --out noise.npz`

`unswayed noise make "asymmetric(0.4)" --data cifar10=DIR --out noise.npz --seed 1`

`unswayed noise make "instance(0.2)" --data cifar10=DIR --out noise.npz`

`unswayed noise make "human(worst, file=CIFAR-10_human.pt)" --data cifar10=DIR --out noise.npz`

Kinds: clean, given, symmetric(r), asymmetric(r, map=index|next, sequential=true), instance(r, kind=projection,
scaling=raw|standardised), human(worst|aggregate|random1|random2|random3|noisy, file=FILE), matrix(FILE);
sampling=bernoulli for independent draws.
"""
EXAMPLES_SHOW = """Examples:

`unswayed noise show noise.npz --plot noise.png`

`unswayed noise show noise.npz --data cifar10=DIR` - with names of classes, and only if it was made for this data

`unswayed noise show noise.npz --json` - the manifest
"""
EXAMPLES_ESTIMATE = """Examples:

`unswayed noise estimate --data features=table.csv --label species`

`unswayed noise estimate --data features=cifar10.npz --noise "human(worst)"` - where the truth is known, it is shown

`unswayed noise estimate --probabilities probabilities.npz` - arrays `probabilities` (N, K) and `labels` (N)

`unswayed noise estimate --data features=table.csv --label species --save probabilities.npz --json`
"""
# More classes are shown as a list, as their matrix is wider than a terminal.
_WIDEST = 20

app = typer.Typer(
    no_args_is_help=True,
    help="Make labels wrong in exactly the wanted numbers, show how wrong they are, and estimate it from data.",
)


@app.command(epilog=EXAMPLES_MAKE)
def make(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help='Kind of noise, like "symmetric(0.4)".')],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the noisy labels go: a .npz file.")],
    data: Annotated[str, typer.Option("--data", metavar=_data.METAVAR, help=_data.HELP)] = "digits",
    label: Annotated[str | None, typer.Option("--label", help="Label column of a CSV or parquet table.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same spec, seed and data: same labels on every machine.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Make the training labels of a data set wrong, and keep them in a small file."""
    from unswayed.noise import NoiseSpec
    from unswayed.noise.labels import check_place
    from unswayed.training.run import make_noise

    # Mistakes are told before the data is read.
    parsed = NoiseSpec.parse(spec)
    check_place(out)
    noisy = make_noise(_data.load(data, label=label), str(parsed), seed)
    noisy.save(out)
    if as_json:
        print(json.dumps(noisy.manifest, indent=2))
    else:
        print(f"{_summary(noisy)}\nwrote {out}")


@app.command(epilog=EXAMPLES_SHOW)
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `unswayed noise make` wrote.")],
    data: Annotated[
        str | None,
        typer.Option("--data", metavar=_data.METAVAR, help="Whose labels; others than it was made for are refused."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="Label column of a CSV or parquet table.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the matrix as a heat map: .png, .pdf or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Show the rate and the transition matrix of noisy labels."""
    from unswayed.noise import NoisyLabels

    classes: Sequence[str] | None = None
    if data is None:
        noisy = NoisyLabels.load(file)
    else:
        loaded = _data.load(data, label=label)
        noisy, classes = NoisyLabels.load(file, loaded.train.labels), loaded.classes
    if plot is not None:
        from unswayed.report.figures import plot_transition

        if noisy.transition is None:
            raise ValueError(f"{str(file)!r} has no clean labels, so that there is no matrix to draw")
        plot_transition(noisy.transition, plot, classes=classes, title=_summary(noisy))
    if as_json:
        print(json.dumps(noisy.manifest, indent=2))
        return
    _table(noisy, classes)
    if plot is not None:
        print(f"wrote {plot}")


@app.command(epilog=EXAMPLES_ESTIMATE)
def estimate(
    data: _probabilities.DataOption = None,
    label: _probabilities.LabelOption = None,
    noise: _probabilities.NoiseOption = "given",
    probabilities: _probabilities.FileOption = None,
    loss: _probabilities.LossOption = None,
    model: _probabilities.ModelOption = _probabilities.MODEL,
    folds: _probabilities.FoldsOption = 5,
    resamples: Annotated[int, typer.Option("--resamples", help="Of the bootstrap.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Of folds, training, bootstrap, and of --noise.")] = 0,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep probabilities and labels in this .npz file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimate as JSON.")] = False,
) -> None:
    """Estimate how many labels are wrong, and which classes are taken for which."""
    from unswayed import noise as noises
    from unswayed.noise.labels import check_place

    if save is not None:
        check_place(save)
    got = _probabilities.get(data, label, noise, probabilities, loss, model, folds, seed, quiet)
    found = noises.estimate(got.labels, got.table, resamples=resamples, seed=seed)
    if save is not None:
        got.save(save)
    if as_json:
        print(json.dumps(found.record() | {"true_rate": got.rate}, indent=2))
        return
    print(found.sentences(got.classes))
    if got.rate is not None:
        print(f"In truth {100 * got.rate:.2f} % are wrong: --noise was {noise}, so that it is known.")
    _estimates(found, got.classes)
    if save is not None:
        print(f"wrote {save}")


def _summary(noisy: NoisyLabels) -> str:
    head = f"{noisy.spec}, seed {noisy.seed}: "
    if noisy.clean is None or noisy.rate is None:
        return f"{head}{len(noisy):,} labels as they were given; how many are wrong is not known"
    wrong = int((noisy.labels != noisy.clean).sum())
    return f"{head}{wrong:,} of {len(noisy):,} labels are wrong ({100 * noisy.rate:.2f} %)"


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    # A pipe has no width of its own.
    return console if console.is_terminal else Console(width=max(160, console.width), highlight=False)


def _estimates(found: NoiseEstimate, classes: Sequence[str] | None) -> None:
    from rich import box
    from rich.table import Table

    console = _console()
    methods = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    methods.add_column("method", style="cyan", no_wrap=True)
    methods.add_column("wrong labels %", justify="right")
    methods.add_column(f"{100 * found.level:g} % interval", justify="right")
    for name, m in found.methods.items():
        methods.add_row(name, f"{100 * m.rate:.1f}", f"{100 * m.low:.1f} to {100 * m.high:.1f}")
    console.print(methods)
    corrected = found.methods["corrected"].joint
    _matrix(console, corrected.matrix, corrected.classes * found.examples, classes)


def _table(noisy: NoisyLabels, classes: Sequence[str] | None) -> None:
    console = _console()
    console.print(_summary(noisy), markup=False, soft_wrap=True)
    if noisy.counts is not None and noisy.transition is not None:
        _matrix(console, noisy.transition, noisy.counts.sum(1), classes)


def _matrix(console: Console, matrix: Matrix, sizes: Any, classes: Sequence[str] | None) -> None:
    """Print a transition matrix, with how many examples each class has."""
    import numpy as np
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    numbers = [str(i) for i in range(len(matrix))]
    names = [i if i == name else f"{i} {name}" for i, name in zip(numbers, classes or numbers)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="labelled as, in percent", title_justify="left")
    table.add_column("true class", style="cyan", no_wrap=True)
    table.add_column("examples", justify="right")
    small = len(matrix) <= _WIDEST
    if small:
        for number in numbers:
            table.add_column(number, justify="right", no_wrap=True)
    else:
        table.add_column("right", justify="right")
        table.add_column("most often taken for", overflow="fold")
        table.add_column("others", justify="right")
    for i, row in enumerate(100 * matrix):
        size = round(sizes[i])
        cells = [escape(names[i]), f"{size:,}"]
        if small:
            cells += ["" if not size or not share else _bold(f"{share:.1f}", i == j) for j, share in enumerate(row)]
        elif size:
            order = [int(j) for j in np.argsort(-row, kind="stable") if j != i and row[j] > 0]
            told = ",  ".join(f"{names[j]} {row[j]:.1f}" for j in order[:3])
            cells += [f"{row[i]:.1f}", escape(told), f"{sum(row[j] for j in order[3:]):.1f}"]
        table.add_row(*cells)
    console.print(table)


def _bold(text: str, wanted: bool) -> str:
    return f"[bold]{text}[/bold]" if wanted else text
