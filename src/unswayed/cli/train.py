"""``unswayed train``: one run, from data to a folder with the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = """Examples:

`unswayed train --noise "symmetric(0.4)"` - the digits that come with scikit-learn, VCE, a small network

`unswayed train --data cifar10=DIR --noise "symmetric(0.8)" --loss "nce + 10*vce(a=4)" --seed 123`

`unswayed train --data cifar10=DIR --noise "human(worst, file=CIFAR-10_human.pt)" --recipe fast/cifar10 --set lr=0.05`

`unswayed train --data features=table.csv --label species --validation 0.1 --out runs/species`

The same command goes on with a run that was stopped.
"""


def command(
    data: Annotated[
        str, typer.Option("--data", metavar="NAME[=DIR]", help="A data set and where it lies.")
    ] = "digits",
    label: Annotated[str | None, typer.Option("--label", help="Label column of a CSV or parquet table.")] = None,
    noise: Annotated[
        str, typer.Option("--noise", help="How labels go wrong; given: as they are in the data.")
    ] = "given",
    model: Annotated[
        str | None, typer.Option("--model", help="Network: cnn8, resnet34, mlp(hidden=512, depth=2), ...")
    ] = None,
    loss: Annotated[str, typer.Option("--loss", help='Loss, like "nce + 10*vce(a=4)".')] = "vce",
    recipe: Annotated[str | None, typer.Option("--recipe", help="Named recipe, like paper/cifar10.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one field of the recipe; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Initial weights, order, augmentation.")] = 0,
    noise_seed: Annotated[int | None, typer.Option("--noise-seed", help="Noise; --seed unless given.")] = None,
    validation: Annotated[
        float, typer.Option("--validation", help="Share of the training examples held out, labels as noisy as they are.")
    ] = 0.0,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder of the run; runs/ID.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    devices: Annotated[int, typer.Option("--devices", min=1, help="How many, with a process each.")] = 1,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes that read images from disk.")] = 0,
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", metavar="SECONDS", min=0, help="Time between checkpoints.")
    ] = 30.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run, and stop.")] = False,
) -> None:
    """Train a classifier on labels that are partly wrong."""
    from unswayed.cli.common import load_data
    from unswayed.training import Progress, experiment_of, recipe as named, train, usual

    loaded = load_data(data, label=label)
    network, recipe_name = usual(loaded)
    chosen = named(recipe or recipe_name)
    for assignment in settings or []:
        chosen = chosen.set(assignment)
    what: tuple[Any, ...] = (model or network, loaded, loss, chosen)
    how: dict[str, Any] = {"noise": noise, "seed": seed, "noise_seed": noise_seed, "validation": validation}
    experiment = experiment_of(*what, **how)
    folder = out or Path("runs") / experiment.id
    if dry_run:
        print(json.dumps({"id": experiment.id, "folder": str(folder)} | experiment.settings, indent=2))
        return
    result = train(
        *what, **how, out=folder, device=device, devices=devices, workers=workers, checkpoint_every=checkpoint_every,
        progress=Progress(quiet=quiet),
    )  # fmt: skip
    print(json.dumps(result.record(), indent=2) if as_json else f"{result}\nwrote {folder}")
