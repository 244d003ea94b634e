"""The tables and figures of the paper as grids, with every setting that it states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

from unswayed.bench.grid import READINGS, Cell, Grid, canonical_loss, first_seeds, settings
from unswayed.losses.presets import CODE_A, PAPER_A, preset
from unswayed.models import ModelSpec
from unswayed.noise import NoiseSpec
from unswayed.spec import did_you_mean
from unswayed.training.recipes import recipe as named_recipe

SEEDS = (123, 124, 125)
METHODS = (
    "CE", "GCE", "SCE", "NCE+RCE", "NCE+AGCE", "LC", "NCE+NNCE", "OGC", "NCE+VCE", "NCE+VEL", "NCE+VSL",
)  # fmt: skip
_SYMMETRIC = tuple(f"symmetric({rate})" for rate in (0.2, 0.4, 0.6, 0.8))
_HUMAN = {"cifar10": "human(worst)", "cifar100": "human(noisy)"}
_REAL = {
    "webvision": ("CE", "GCE", "SCE", "NCE+RCE", "NCE+AGCE", "NCE+NNCE", "NFL+NNFL", "VCE", "NCE+VCE"),
    "clothing1m": ("CE", "GCE", "NCE+RCE", "NCE+NNCE", "VCE", "NCE+VCE"),
}
# The figures name their parameters in their pictures alone, save those of the t-SNE, which the text gives and which are
# among these; each row goes from the loss that is modified (EL = VEL(e), SL = VSL(1)) to a smaller variation ratio.
_CURVES = {
    "CE": "ce", "VCE(0.5)": "vce(a=0.5)", "VCE(1)": "vce(a=1)", "VCE(5)": "vce(a=5)",
    "EL": f"vel(a={math.e})", "VEL(2)": "vel(a=2)", "VEL(1.5)": "vel(a=1.5)", "VEL(1.2)": "vel(a=1.2)",
    "SL": "vsl(a=1)", "VSL(0.5)": "vsl(a=0.5)", "VSL(0.1)": "vsl(a=0.1)", "VSL(0.05)": "vsl(a=0.05)",
}  # fmt: skip
_FEATURES = ("CE", "VCE(5)", "VEL(1.5)", "VSL(0.1)")
_VCE_CIFAR100 = "vce(a=0.4)"

# A row of a table: data set, method, column.
_Row = tuple[str, str, str]


def paper_grid(name: str, *, protocol: str = "paper", reading: str = "written", seeds: int | None = None) -> Grid:
    """Return the grid of one of the paper's tables, or of its figures.

    ``reading`` is ``written`` (the paper's words) or ``published`` (what public code behind such numbers runs, where it
    differs). ``seeds`` is how many of 123, 124, 125 (and on).

    >>> grid = paper_grid("paper/benchmark")
    >>> len([cell for cell in grid.cells if cell.data == "cifar10"]) == 11 * 8 * 3
    True
    """
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}{did_you_mean(name, PRESETS)}; known: {', '.join(PRESETS)}")
    if reading not in READINGS:
        raise ValueError(f"--as {reading} is not allowed; it is one of {', '.join(READINGS)}")
    rows, notes = PRESETS[name]
    listed = first_seeds(SEEDS, seeds)
    # One seed after the other, so that a grid that is cut short has all methods.
    cells = tuple(_cell(*row, seed, protocol, reading) for seed, row in itertools.product(listed, rows()))
    return Grid(name, cells, protocol, reading, notes=notes)


def _cell(data: str, method: str, column: str, seed: int, protocol: str, reading: str) -> Cell:
    model, recipe = settings(data, protocol)
    if data == "clothing1m" and protocol == "paper":
        model = "timm:resnet50(pretrained=true)"
    spec = canonical_loss(_CURVES.get(method) or _loss(method, data, column, reading))
    return Cell(
        data, _noise(column, data, reading), str(ModelSpec.parse(model)), spec, named_recipe(recipe), seed,
        method=method, column=column,
    )  # fmt: skip


def _loss(method: str, data: str, column: str, reading: str) -> str:
    """Return the spec of a method's loss for one column of one data set."""
    if method == "VCE" and data == "cifar100":
        return _VCE_CIFAR100
    row = preset(method, data)
    # A variant is called by when it counts, and then, in brackets, by who has it.
    variants = {label.partition(" (")[0]: spec for label, spec in row.variants}
    if reading == "published":
        return variants.get("as published", row.spec.replace(PAPER_A, CODE_A))
    return variants.get("noise of 0.6 and 0.8", row.spec) if "0.6" in column or "0.8" in column else row.spec


def _noise(column: str, data: str, reading: str) -> str:
    """Return the spec of a column's noise."""
    kind, _, rest = column.partition("(")
    spec = "given" if column == "real" else column
    if reading == "published" and kind == "asymmetric":
        spec = f"asymmetric({rest[:-1]}, {'map=index' if data == 'cifar100' else 'sequential=true'})"
    if reading == "published" and kind == "instance":
        spec = f"instance({rest[:-1]}, kind=projection)"
    return str(NoiseSpec.parse(spec))


def _instance() -> Iterable[_Row]:
    return itertools.product(_HUMAN, METHODS, [f"instance({rate})" for rate in (0.2, 0.4, 0.6)])


def _benchmark() -> Iterable[_Row]:
    for data, human in _HUMAN.items():
        columns = ("clean", *_SYMMETRIC, "asymmetric(0.2)", "asymmetric(0.4)", human)
        yield from itertools.product([data], METHODS, columns)


def _ablation() -> Iterable[_Row]:
    return itertools.product(_HUMAN, ("CE", "NCE", "VCE", "NCE+VCE"), _SYMMETRIC)


def _real_world() -> Iterable[_Row]:
    return ((data, method, "real") for data, methods in _REAL.items() for method in methods)


def _figures() -> Iterable[_Row]:
    yield from (("cifar10", method, "symmetric(0.8)") for method in _CURVES)
    yield from (("cifar10", method, "symmetric(0.4)") for method in _FEATURES)


def _combination() -> Iterable[_Row]:
    raise ValueError(
        "paper/combination (Table 4: DivideMix, Negative-LS, and both with VCE) needs training methods that this "
        "version does not have yet; the other presets are there: "
        + ", ".join(name for name in PRESETS if name != "paper/combination")
    )


_RowsAndNotes = tuple[Callable[[], Iterable[_Row]], tuple[str, ...]]
PRESETS: dict[str, _RowsAndNotes] = {
    "paper/instance": (_instance, ()),
    "paper/benchmark": (_benchmark, ()),
    "paper/ablation": (
        _ablation,
        (
            "VCE alone: the table does not say which a it used; vce(a=5) on CIFAR-10 is that of the paper's figures, "
            "vce(a=0.4) on CIFAR-100 that of its NCE+VCE.",
        ),
    ),
    "paper/combination": (_combination, ()),
    "paper/real-world": (
        _real_world,
        ("VCE on WebVision: the paper's sentence breaks off before the scale; 1 is our choice: vce(a=0.015).",),
    ),
    "paper/figures": (
        _figures,
        ("Figure 1: which parameters its curves have is told in the picture alone; the ones here are our choice.",),
    ),
}
