"""Train one model: from data, noise, network, loss and recipe to a folder with the result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unswayed.data import Data, Loader, augmentation
from unswayed.losses.base import Loss
from unswayed.losses.expression import loss as build_loss
from unswayed.models import ModelSpec
from unswayed.models import build as build_model
from unswayed.noise import NoiseSpec, NoisyLabels
from unswayed.noise import make as draw_noise
from unswayed.training.devices import on_first, start, where
from unswayed.training.experiment import Experiment
from unswayed.training.folder import RunFolder, load_file
from unswayed.training.loop import Loop, seed_of
from unswayed.training.precision import has_convolutions, resolve
from unswayed.training.progress import Progress, percent
from unswayed.training.recipes import Recipe
from unswayed.training.recipes import recipe as named_recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# One stream of random numbers for each purpose, so that a change in one leaves the others as they are.
INITIAL, ORDER, _HELD_OUT = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Result:
    """What a run gave.

    ``epochs`` holds a record for each epoch; ``last``, ``best`` (by test accuracy, so an oracle's choice) and
    ``chosen`` (by accuracy on held-out noisy labels; ``None`` without such) are three of them. ``model`` is the
    network with the weights of the last epoch; :meth:`weights` gives those of each.
    """

    experiment: Experiment
    epochs: list[dict[str, Any]]
    noise: NoisyLabels
    calibration: dict[str, Any] | None
    model: nn.Module
    folder: Path | None
    kept: Mapping[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    def weights(self, which: str = "last") -> dict[str, Any]:
        """Return the weights of the ``last``, ``best`` or ``chosen`` epoch, for ``model.load_state_dict``."""
        found = self.kept.get(which)
        if found is None and self.folder is not None:
            found = load_file(self.folder / "weights" / f"{which}.pt")
        if found is None:
            raise ValueError(
                f"no epoch was kept as {which!r}; there are last, best (with a test set) and chosen (with validation)"
            )
        return found

    @property
    def last(self) -> dict[str, Any]:
        """The last epoch."""
        return self.epochs[-1]

    @property
    def best(self) -> dict[str, Any] | None:
        """The epoch of the highest test accuracy, the first of several."""
        return _highest(self.epochs, "test_accuracy")

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The epoch of the highest accuracy on held-out noisy labels, the first of several."""
        return _highest(self.epochs, "val_accuracy")

    def record(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "experiment": self.experiment.settings,
            "id": self.experiment.id,
            "noise": self.noise.manifest,
            "epochs": len(self.epochs),
            "last": self.last,
            "best": self.best,
            "chosen": self.chosen,
            "calibration": self.calibration,
        }

    def __str__(self) -> str:
        rows = [("last epoch", self.last), ("best epoch, by the test set", self.best)]
        rows += [("chosen by noisy validation", self.chosen)]
        lines = [str(self.experiment)]
        for label, record in rows:
            if record is not None:
                lines.append(
                    f"  {label:<28} epoch {record['epoch']:>3}   test {percent(record.get('test_accuracy')):>8}   "
                    f"memorised {percent(record['memorised']):>8}"
                )
        return "\n".join(lines)


def _highest(epochs: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    return max(epochs, key=lambda record: record[key]) if epochs and key in epochs[0] else None


def train(
    model: nn.Module | str,
    data: Data,
    loss: Loss | nn.Module | str = "vce",
    recipe: Recipe | str | None = None,
    *,
    noise: str | NoisyLabels = "given",
    seed: int = 0,
    noise_seed: int | None = None,
    order_seed: int | None = None,
    validation: float = 0.0,
    out: str | Path | None = None,
    device: str = "auto",
    devices: int = 1,
    workers: int = 0,
    checkpoint_every: float = 30.0,
    progress: Progress | None = None,
) -> Result:
    """Train a classifier on labels that are partly wrong.

    Args:
        model: a network, or the spec of one (``"cnn8"``), which is built with a seed of its own.
        data: from :func:`unswayed.data.load` or :func:`unswayed.data.wrap`.
        loss: a loss, its spec, or any module that is called like ``torch.nn.CrossEntropyLoss``.
        recipe: a :class:`Recipe`, or the name of one; by default ``Recipe()``.
        noise: a noise spec (``"symmetric(0.4)"``), noisy labels, or ``"given"``: the data's labels as they are.
        seed: of initial weights, order, augmentation and dropout.
        noise_seed: of the noise and of the examples held out; ``seed`` unless given.
        order_seed: of order, augmentation and dropout; ``seed`` unless given.
        validation: share of the training examples that is held out, with its noisy labels, to choose an epoch.
        out: folder of the run. There the run goes on if it was stopped, and is not done again if it is done.
        device: ``auto``, ``cpu``, ``cuda`` or another accelerator that Lightning Fabric knows.
        devices: how many, each with a process of its own.
        workers: processes that read images from disk, for data that is not in memory.
        checkpoint_every: seconds between checkpoints.
        progress: who is told how it goes; by default nobody.

    >>> from unswayed.data import load
    >>> result = train("mlp(hidden=32)", load("digits"), "vce", Recipe(epochs=3), noise="symmetric(0.4)")
    >>> len(result.epochs), 0 < result.last["test_accuracy"] < 1
    (3, True)
    """
    criterion = build_loss(loss) if isinstance(loss, (str, Loss)) else loss
    if not isinstance(criterion, nn.Module):
        raise TypeError(f"loss is a loss, its spec, or a torch.nn.Module, not {loss!r}")
    if getattr(criterion, "reduction", "mean") != "mean":
        raise ValueError(f"training needs a loss with reduction='mean', not {criterion.reduction!r}")
    experiment = experiment_of(
        model, data, criterion, recipe, noise=noise, seed=seed, noise_seed=noise_seed, order_seed=order_seed,
        validation=validation,
    )  # fmt: skip
    assert experiment.noise_seed is not None
    noisy = make_noise(data, noise, experiment.noise_seed)
    plan = experiment.recipe
    network = (
        build_model(model, num_classes=data.num_classes, in_shape=data.in_shape, seed=seed_of(seed, INITIAL))
        if isinstance(model, str)
        else model
    )
    place = where(device)
    precision = resolve(plan.precision, network, place)
    fabric = start(place, devices, precision)
    loop = _loop(fabric, experiment, data, noisy, network, criterion, workers, checkpoint_every, progress)
    if out is None:
        return _run(loop, experiment, noisy, None)
    folder = RunFolder(out, experiment)
    try:
        on_first(fabric, lambda: folder.open(noisy.manifest))
        if folder.done:
            return finished(experiment, noisy, network, folder)
        loop.folder = folder
        state = folder.checkpoint()
        if state is not None:
            loop.restore(state)
        result = _run(loop, experiment, noisy, folder)
        computed = {"device": str(fabric.device), "devices": fabric.world_size, "precision": precision}
        on_first(fabric, lambda: folder.finish(result.record() | computed))
    finally:
        folder.close()
    return result


def _run(loop: Loop, experiment: Experiment, noisy: NoisyLabels, folder: RunFolder | None) -> Result:
    device = loop.fabric.device
    cuda = [device] if device.type == "cuda" else []
    loop.progress.start(str(experiment), loop.recipe.epochs, loop.epoch)
    try:
        # Nobody's random numbers change because a network was trained in between; and cuDNN takes no other algorithm
        # in the second run than in the first.
        with torch.random.fork_rng(cuda), torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True):
            loop.run()
    finally:
        loop.progress.stop()
    network = loop.module
    if loop.average is not None:
        network.load_state_dict(loop.average.module.state_dict())
    path = None if folder is None else folder.path
    return Result(experiment, loop.epochs, noisy, loop.calibration, network.cpu().eval(), path, loop.kept)


def experiment_of(
    model: nn.Module | str,
    data: Data,
    loss: nn.Module | str = "vce",
    recipe: Recipe | str | None = None,
    *,
    noise: str | NoisyLabels = "given",
    seed: int = 0,
    noise_seed: int | None = None,
    order_seed: int | None = None,
    validation: float = 0.0,
) -> Experiment:
    """Return the experiment that :func:`train` would run; the parameters are the same.

    >>> from unswayed.data import load
    >>> experiment_of("linear", load("digits"), "nce + vce(4)").loss
    'nce + vce(a=4)'
    """
    built = build_loss(loss) if isinstance(loss, (str, Loss)) else loss
    return Experiment(
        data=name_of_data(data),
        noise=str(noise.spec if isinstance(noise, NoisyLabels) else NoiseSpec.parse(noise)),
        model=str(ModelSpec.parse(model)) if isinstance(model, str) else _name_of(model),
        loss=str(built) if isinstance(built, Loss) else repr(built),
        recipe=Recipe() if recipe is None else named_recipe(recipe) if isinstance(recipe, str) else recipe,
        seed=seed,
        noise_seed=noise.seed if isinstance(noise, NoisyLabels) else noise_seed,
        order_seed=order_seed,
        validation=validation,
    )


def _name_of(model: nn.Module) -> str:
    """Return a name for a network that has no spec: its class, and a mark of the names and shapes of its weights."""
    shapes = [(name, tuple(value.shape)) for name, value in model.state_dict().items()]
    return f"{type(model).__module__}:{type(model).__qualname__}#{_mark(repr(shapes).encode())}"


def name_of_data(data: Data) -> str:
    """Return the name of a data set, with a mark of what is in it where the name alone does not tell."""
    if data.known is not None and data.known.name == data.name:
        return data.name
    parts = [repr((data.in_shape, data.classes)).encode()]
    for split in (data.train, *data.tests.values()):
        parts.append(split.labels.tobytes())
        if split.inputs is not None:
            parts.append(split.inputs[:: max(1, len(split) // 1000)].contiguous().numpy().tobytes())
    return f"{data.name}#{_mark(*parts)}"


def _mark(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:8]


USUAL = {
    "digits": ("mlp(hidden=512, depth=2)", "digits"),
    "mnist": ("cnn4", "mnist"),
    "fashion_mnist": ("cnn4", "mnist"),
    "cifar10": ("cnn8", "paper/cifar10"),
    "cifar100": ("resnet34", "paper/cifar100"),
    "webvision": ("resnet50", "paper/webvision"),
    "clothing1m": ("resnet50", "paper/clothing1m"),
}


def usual(data: Data) -> tuple[str, str]:
    """Return the network and the recipe that are usual for a data set.

    >>> from unswayed.data import load
    >>> usual(load("digits"))
    ('mlp(hidden=512, depth=2)', 'digits')
    """
    if data.name in USUAL:
        return USUAL[data.name]
    return ("resnet18", "paper/cifar10") if len(data.in_shape) == 3 else ("mlp(hidden=512, depth=1)", "features")


def make_noise(data: Data, noise: str | NoisyLabels, seed: int) -> NoisyLabels:
    """Return the noisy labels of a data set's training part."""
    split = data.train
    if isinstance(noise, NoisyLabels):
        noise.check(split.labels)
        return noise
    return draw_noise(
        noise, split.labels, data.num_classes, seed=seed, features=split.inputs,
        dataset=None if data.known is None else data.known.name, index=split.index, human=split.human,
    )  # fmt: skip


def _loop(
    fabric: Fabric,
    experiment: Experiment,
    data: Data,
    noisy: NoisyLabels,
    network: nn.Module,
    criterion: nn.Module,
    workers: int,
    checkpoint_every: float,
    progress: Progress | None,
) -> Loop:
    recipe = experiment.recipe
    convolutional = has_convolutions(network)
    if convolutional:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if fabric.world_size > 1 and fabric.device.type == "cuda":
        network = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
    mean, std = scale(data)
    common: dict[str, Any] = {
        "device": fabric.device, "rank": fabric.global_rank, "world": fabric.world_size, "workers": workers,
    }  # fmt: skip
    rows, kept_back = held_out(len(data.train), experiment)
    seed = seed_of(experiment.order, ORDER)
    changed = augmentation(recipe.augment, mean=mean, std=std)
    views = 1
    # Where nothing is drawn all views are the same, and one says as much.
    if isinstance(criterion, Loss) and (changed.steps or changed.frame is not None or data.train.random):
        views = criterion.views
        if views > 1 and not criterion.takes_views:
            raise ValueError(
                f"{criterion}: one part compares {views} views of each example, and another takes a single one; "
                f"give gjs alone or beside gjs, or write gjs(views=1)"
            )
    train = Loader(data.train, recipe.batch_size, rows=rows, seed=seed, augment=changed, views=views, **common)
    size = max(recipe.batch_size, 512)
    plain = {"shuffle": False, "augment": augmentation("none", mean=mean, std=std), **common}
    noisy_labels = torch.tensor(noisy.labels)
    tests = {name: Loader(split, size, **plain) for name, split in data.tests.items()}
    labels = {name: torch.tensor(split.labels) for name, split in data.tests.items()}
    if kept_back is not None:
        tests["val"], labels["val"] = Loader(data.train, size, rows=kept_back, **plain), noisy_labels
    return Loop(
        fabric, network, criterion, recipe, train, noisy_labels,
        None if noisy.clean is None else torch.tensor(noisy.clean), tests, labels, seed=seed, folder=None,
        progress=(progress if fabric.is_global_zero else None) or Progress(quiet=True),
        checkpoint_every=checkpoint_every,
    )  # fmt: skip


def held_out(n: int, experiment: Experiment) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Return the rows to train on and the rows held out; they hang on the noise's seed alone."""
    if not experiment.validation:
        return None, None
    size = round(n * experiment.validation)
    if not 0 < size < n:
        raise ValueError(f"validation={experiment.validation:g} of {n} examples holds out {size}; give a larger share")
    assert experiment.noise_seed is not None
    order = np.random.default_rng([experiment.noise_seed, _HELD_OUT]).permutation(n)
    return np.sort(order[size:]), np.sort(order[:size])


def scale(data: Data) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Return mean and standard deviation of each channel: the published ones, or those of the training images."""
    if data.known is not None and data.known.mean and len(data.known.mean) == data.in_shape[0]:
        return data.known.mean, data.known.std
    inputs = data.train.inputs
    if inputs is None or inputs.dtype != torch.uint8:
        return None, None
    axes = [0, *range(2, inputs.dim())]
    pixels = inputs[:: max(1, len(inputs) // 10000)].double() / 255
    return tuple(pixels.mean(axes).tolist()), tuple(pixels.std(axes).clamp_min(1e-3).tolist())


def finished(experiment: Experiment, noisy: NoisyLabels, network: nn.Module, folder: RunFolder) -> Result:
    """Return the result of a run that was done before."""
    result = Result(experiment, folder.epochs(), noisy, folder.result()["calibration"], network.eval(), folder.path)
    network.load_state_dict(result.weights())
    return result
