"""``unswayed train``: one run, from data to a folder with the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed.cli import _data
from unswayed.cli._tell import tell

EXAMPLES = """Examples:

`unswayed train --noise "symmetric(0.4)"` - the digits that come with scikit-learn, VCE, a small network

`unswayed train --data cifar10=DIR --noise "symmetric(0.8)" --loss "nce + 10*vce(a=4)" --seed 123`

`unswayed train --data cifar10=DIR --noise "symmetric(0.4)" --recipe paper/cifar10 --set lr=0.05 --set epochs=60`

`unswayed train --data cifar10=DIR --noise noise.npz` - with labels that `unswayed noise make` wrote

`unswayed train --data features=table.csv --label species --validation 0.1 --out runs/species`

The same command goes on with a run that was stopped, and shows the result of one that is done.
"""


def command(
    data: Annotated[str, typer.Option("--data", metavar=_data.METAVAR, help=_data.HELP)] = "digits",
    label: Annotated[str | None, typer.Option("--label", help="Label column of a CSV or parquet table.")] = None,
    noise: Annotated[
        str,
        typer.Option(
            "--noise",
            help='How labels go wrong, like "symmetric(0.4)"; given: as they are in the data; FILE.npz: noisy labels '
            "that `unswayed noise make` wrote.",
        ),
    ] = "given",
    model: Annotated[
        str | None,
        typer.Option("--model", help="Network: cnn8, resnet34, mlp(hidden=512, depth=2), ... By default by the data."),
    ] = None,
    loss: Annotated[str, typer.Option("--loss", help='Loss, like "nce + 10*vce(a=4)".')] = "vce",
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Named recipe, like paper/cifar10. By default by the data.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change one field of the recipe; repeatable."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="auto, fp32 or bf16: short for --set precision=...")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Initial weights, order, augmentation.")] = 0,
    noise_seed: Annotated[
        int | None, typer.Option("--noise-seed", help="Noise, and examples held out; --seed unless given.")
    ] = None,
    validation: Annotated[
        float,
        typer.Option("--validation", help="Share of the training examples held out, labels as noisy as they are."),
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the run; by default runs/ID.")
    ] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")] = "auto",
    devices: Annotated[int, typer.Option("--devices", min=1, help="How many, with a process each.")] = 1,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Processes that read images from disk.")] = 0,
    on_bad_image: Annotated[
        str, typer.Option("--on-bad-image", help="Images that cannot be read: error, or skip them.")
    ] = "error",
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", metavar="SECONDS", min=0, help="Time between checkpoints.")
    ] = 30.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run, and stop.")] = False,
) -> None:
    """Train a classifier on labels that are partly wrong."""
    from unswayed import training
    from unswayed.noise import NoisyLabels

    loaded = _data.load(data, label=label, on_bad_image=on_bad_image)
    labels = NoisyLabels.load(noise, loaded.train.labels) if noise.endswith(".npz") else noise
    network, recipe_name = training.usual(loaded)
    chosen = training.recipe(recipe or recipe_name)
    for assignment in [*(settings or []), *([f"precision={precision}"] if precision else [])]:
        chosen = chosen.set(assignment)
    what: tuple[Any, ...] = (model or network, loaded, loss, chosen)
    how: dict[str, Any] = {"noise": labels, "seed": seed, "noise_seed": noise_seed, "validation": validation}
    experiment = training.experiment_of(*what, **how)
    folder = out or Path("runs") / experiment.id
    if dry_run:
        print(json.dumps({"id": experiment.id, "folder": str(folder)} | experiment.settings, indent=2))
        return
    try:
        result = training.train(
            *what, **how, out=folder, device=device, devices=devices, workers=workers,
            checkpoint_every=checkpoint_every, progress=training.Progress(quiet=quiet),
        )  # fmt: skip
    except (training.Diverged, training.Stopped, OSError) as error:
        # The command was right, but the run did not come to its end.
        tell(f"unswayed: {error}", error=True)
        raise typer.Exit(getattr(error, "exit_code", 1)) from None
    tell(json.dumps(result.record(), indent=2) if as_json else f"{result}\nwrote {folder}")
