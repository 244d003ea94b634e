"""Where commands get out-of-sample probabilities from: a file, or a classifier that is cross-validated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unswayed._files import written_whole
from unswayed.cli import _data

MODEL = "mlp(hidden=256)"

# The options that say it, which are the same in each command.
DataOption = Annotated[str | None, typer.Option("--data", metavar=_data.METAVAR, help=_data.HELP)]
LabelOption = Annotated[str | None, typer.Option("--label", help="Label column of a CSV or parquet table.")]
NoiseOption = Annotated[
    str, typer.Option("--noise", help="Labels to look at: given (those of the data), or a kind of noise to try.")
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--probabilities",
        metavar="FILE",
        help="Instead of --data: .npz of out-of-sample probabilities and labels.",
    ),
]
LossOption = Annotated[
    str | None, typer.Option("--loss", help="Loss of the cross-validated classifier; by default vce(a=10/K).")
]
ModelOption = Annotated[str, typer.Option("--model", help="linear or mlp(hidden=..., depth=...).")]
FoldsOption = Annotated[int, typer.Option("--folds", help="Of the cross-validation.")]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Probabilities and labels; the rate of wrong labels and the names of classes where they are known."""

    table: Any
    labels: Any
    rate: float | None = None
    classes: Sequence[str] | None = None

    def save(self, path: Path) -> None:
        """Write what :func:`get` reads."""
        import numpy as np

        with written_whole(path) as part, part.open("wb") as file:
            np.savez_compressed(file, probabilities=self.table, labels=self.labels)


def get(
    data: str | None,
    label: str | None,
    noise: str,
    probabilities: Path | None,
    loss: str | None,
    model: str,
    folds: int,
    seed: int,
    quiet: bool,
) -> Labelled:
    """Return what the options say."""
    if (data is None) == (probabilities is None):
        raise ValueError("say what to look at: --data NAME[=PATH], or --probabilities FILE; one of them")
    if probabilities is not None:
        from unswayed.noise.ranking import read_probabilities

        return Labelled(*read_probabilities(probabilities))
    from unswayed import training
    from unswayed.training.run import make_noise

    assert data is not None
    loaded = _data.load(data, label=label)
    noisy = make_noise(loaded, noise, seed)
    progress = training.Progress(quiet=quiet)
    table = training.out_of_sample(loaded, loss, model, noise=noisy, folds=folds, seed=seed, progress=progress)
    return Labelled(table, noisy.labels, noisy.rate, loaded.classes)
