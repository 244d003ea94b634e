"""A grid: many experiments at once, from a TOML file whose lists multiply."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from unswayed.losses.expression import loss as build_loss
from unswayed.losses.presets import preset
from unswayed.models import ModelSpec
from unswayed.noise import NoiseSpec
from unswayed.spec import did_you_mean
from unswayed.training.experiment import Experiment
from unswayed.training.recipes import RECIPES, Recipe
from unswayed.training.recipes import recipe as named_recipe
from unswayed.training.run import USUAL

PROTOCOLS = ("paper", "fast", "embeddings")
READINGS = ("written", "published")
_AXES = ("noise", "loss", "method", "model", "recipe", "seed", "validation")
_KEYS = ("data", *_AXES, "datasets", "exclude")
_MATCHED = ("data", "noise", "loss", "method", "model", "seed")
_HEAD = ("mlp(hidden=256, depth=1)", "features")


@dataclass(frozen=True)
class Cell:
    """One run of a grid: an experiment whose data has yet to be found, and where it stands in a table.

    ``method`` and ``column`` are what its row and its column are called, ``data`` what the grid calls its data.

    >>> Cell("digits", "clean", "mlp(hidden=512, depth=1)", "ce", Recipe(), 0).experiment("digits").loss
    'ce'
    """

    data: str
    noise: str
    model: str
    loss: str
    recipe: Recipe
    seed: int
    validation: float = 0.0
    method: str = ""
    column: str = ""

    def __post_init__(self) -> None:
        for name, usual in (("method", self.loss), ("column", self.noise)):
            if not getattr(self, name):
                object.__setattr__(self, name, usual)

    def experiment(self, data: str) -> Experiment:
        """Return the experiment on data of this name."""
        return Experiment(
            data, self.noise, self.model, self.loss, self.recipe, seed=self.seed, validation=self.validation
        )

    def matches(self, key: str, pattern: str) -> bool:
        """Whether what ``key`` names is like ``pattern``, in which ``*`` and ``?`` stand for anything.

        A loss goes by its spec or its method, noise by its spec or its column.
        """
        names = {"loss": (self.loss, self.method), "noise": (self.noise, self.column)}
        found = names.get(key) or (str(getattr(self, key)),)
        return any(fnmatchcase(_plain(name), _plain(pattern).replace("[", "[[]")) for name in found)


@dataclass(frozen=True)
class Grid:
    """Cells, how they are called together, under which protocol, and how the paper was read.

    ``changes`` are the settings that :meth:`set` changed, ``notes`` choices that a reader should know of.
    """

    name: str
    cells: tuple[Cell, ...]
    protocol: str = "paper"
    reading: str = "written"
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def only(self, patterns: Iterable[str]) -> Grid:
        """Return the cells that match; patterns of one key (``loss=nce*``) are alternatives.

        >>> recipe = Recipe()
        >>> grid = Grid("two", tuple(Cell("digits", "clean", "mlp", loss, recipe, 0) for loss in ("ce", "nce")))
        >>> [cell.loss for cell in grid.only(["loss=n*"]).cells]
        ['nce']
        """
        wanted: dict[str, list[str]] = {}
        for text in patterns:
            key, equals, pattern = (part.strip() for part in text.partition("="))
            if not equals or not pattern or key not in _MATCHED:
                raise ValueError(
                    f"--only {text!r} is not allowed; write KEY=PATTERN, like loss=nce*, where KEY is one of "
                    f"{', '.join(_MATCHED)}{did_you_mean(key, _MATCHED)}"
                )
            wanted.setdefault(key, []).append(pattern)
        cells = self.cells
        for key, some in wanted.items():
            left = tuple(cell for cell in cells if any(cell.matches(key, pattern) for pattern in some))
            if not left:
                there = dict.fromkeys(cell.method if key == "loss" else str(getattr(cell, key)) for cell in cells)
                raise ValueError(f"--only {key}={' or '.join(some)} leaves nothing of {self.name}; there are: "
                                 f"{', '.join(there)}")  # fmt: skip
            cells = left
        return replace(self, cells=cells)

    def set(self, assignments: Iterable[str]) -> Grid:
        """Return the grid with settings changed in all cells: ``recipe.epochs=20``, ``model=cnn4``, ``validation=0.1``.

        >>> grid = Grid("one", (Cell("digits", "clean", "mlp", "ce", Recipe(), 0),))
        >>> grid.set(["recipe.epochs=20"]).cells[0].recipe.epochs
        20
        """
        cells, changes = self.cells, tuple(assignments)
        for text in changes:
            key, equals, value = (part.strip() for part in text.partition("="))
            if key.startswith("recipe.") and equals:
                cells = tuple(replace(c, recipe=c.recipe.set(text.strip().removeprefix("recipe."))) for c in cells)
            elif key == "model" and value:
                cells = tuple(replace(c, model=str(ModelSpec.parse(value))) for c in cells)
            elif key == "validation" and value:
                try:
                    share = float(value)
                except ValueError:
                    raise ValueError(f"--set {text!r}: {value!r} is no number, like validation=0.1") from None
                cells = tuple(replace(c, validation=share) for c in cells)
            else:
                raise ValueError(
                    f"--set {text!r} is not allowed; write recipe.NAME=VALUE, like recipe.epochs=20, or model=..., or "
                    "validation=..."
                )
        return replace(self, cells=cells, changes=self.changes + changes)


def settings(data: str, protocol: str) -> tuple[str, str]:
    """Return the network and the recipe that a protocol takes for a data set.

    >>> settings("cifar10", "paper"), settings("cifar10", "embeddings")
    (('cnn8', 'paper/cifar10'), ('mlp(hidden=256, depth=1)', 'features'))
    """
    if protocol == "embeddings":
        return _HEAD
    if data not in USUAL:
        raise ValueError(f"{data} has no usual model and recipe; name both")
    model, recipe = USUAL[data]
    if protocol == "fast":
        recipe = f"fast/{data}"
        if recipe not in RECIPES:
            there = [name.removeprefix("fast/") for name in RECIPES if name.startswith("fast/")]
            known = f"there are fast recipes for {', '.join(there)}" if there else "there are no fast recipes yet"
            raise ValueError(f"--protocol fast: there is no recipe {recipe!r} ({known}); take --protocol paper")
    return model, recipe


def first_seeds(listed: Sequence[int], count: int | None) -> list[int]:
    """Return the first so many seeds, counting on from the last one where there are not as many.

    >>> first_seeds([123, 124, 125], 2), first_seeds([123, 124, 125], 5), first_seeds([7], None)
    ([123, 124], [123, 124, 125, 126, 127], [7])
    """
    if count is None:
        return list(listed)
    if count < 1:
        raise ValueError(f"--seeds {count} is not allowed; it is 1 or more")
    last = listed[-1]
    return [*listed, *range(last + 1, last + 1 + count)][:count]


@cache
def canonical_loss(spec: str) -> str:
    """Return a loss's spec as it is written down.

    >>> canonical_loss("nce+10*vce(4)")
    'nce + 10*vce(a=4)'
    """
    return str(build_loss(spec))


def read_grid(path: str | Path, *, protocol: str = "paper", seeds: int | None = None) -> Grid:
    """Read a grid from a TOML file.

    Its keys are ``data``, ``noise``, ``loss`` or ``method`` (whose published setting for the data is taken), ``model``,
    ``recipe`` (a name, or a table of a ``name`` and fields), ``seed`` and ``validation``; each is a value or a list,
    and lists multiply. ``[datasets.NAME]`` replaces some of them for one data set; each ``[[exclude]]`` takes away the
    cells that match all its patterns.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as TOML: {error}") from None
    _check_keys(f"{path}", content, _KEYS)
    if "data" not in content:
        raise ValueError(f'{path} names no data; write a line like: data = ["digits"]')
    overrides = content.get("datasets", {})
    names = [str(name) for name in _listed(content["data"])]
    if not isinstance(overrides, dict) or not all(isinstance(each, dict) for each in overrides.values()):
        raise ValueError(f"{path}, datasets: write a table for each data set: [datasets.cifar10]")
    _check_keys(f"{path}, datasets", overrides, names)
    cells: dict[Any, Cell] = {}
    for name in dict.fromkeys(names):
        own = overrides.get(name, {})
        _check_keys(f"{path}, datasets.{name}", own, _AXES)
        where = {key: f"{path}, " + (f"datasets.{name}.{key}" if key in own else key) for key in _AXES}
        axes = {key: value for key, value in content.items() if key in _AXES}
        # A data set that names losses of its own does not want the methods of all, and the other way round.
        if own.keys() & {"loss", "method"}:
            axes = {key: value for key, value in axes.items() if key not in ("loss", "method")}
        for cell in _expanded(name, axes | own, where, protocol, seeds):
            cells.setdefault(repr(cell.experiment(name).settings), cell)
    left = list(cells.values())
    rules = content.get("exclude", [])
    if not isinstance(rules, list):
        raise ValueError(f"{path}, exclude: write [[exclude]], with two brackets, for each thing to leave out")
    for number, rule in enumerate(rules, 1):
        where_rule = f"{path}, exclude {number}"
        _check_keys(where_rule, rule, _MATCHED)
        out = [cell for cell in left if all(_any(cell, key, value) for key, value in rule.items())]
        if not rule or not out:
            raise ValueError(f"{where_rule}: there is nothing like {rule} to leave out")
        left = [cell for cell in left if cell not in out]
    if not left:
        raise ValueError(f"{path}: everything is left out")
    return Grid(path.name, tuple(left), protocol)


def _expanded(
    data: str, axes: Mapping[str, Any], where: Mapping[str, str], protocol: str, seeds: int | None
) -> Iterable[Cell]:
    """Yield the cells of one data set."""
    try:
        usual = settings(data, protocol)
    except ValueError as error:
        missing = [key for key in ("model", "recipe") if key not in axes]
        if missing:
            raise ValueError(f"{where[missing[0]]}: {error}") from None
        usual = ("", "")
    noises = _each(axes, "noise", ["given"], where, lambda text: str(NoiseSpec.parse(text)))
    losses = [(built, "") for built in _each(axes, "loss", [], where, canonical_loss)]
    losses += _each(axes, "method", [], where, lambda text: (canonical_loss(preset(text, data).spec), text))
    if not losses:
        raise ValueError(f'{where["loss"]}: no loss is named; write a line like: loss = ["ce", "vce(a=4)"]')
    models = _each(axes, "model", [usual[0]], where, lambda text: str(ModelSpec.parse(text)))
    recipes = _recipes(axes.get("recipe", usual[1]), where["recipe"], usual[1])
    listed = first_seeds([int(s) for s in _each(axes, "seed", [0], where, _seed)], seeds)
    shares = _each(axes, "validation", [0.0], where, _share)
    for noise, model, recipe, share, (spec, method), seed in itertools.product(
        noises, models, recipes, shares, losses, listed
    ):
        yield Cell(data, noise, model, spec, recipe, seed, share, method)


def _each(axes: Mapping[str, Any], key: str, usual: list[Any], where: Mapping[str, str], read: Any) -> list[Any]:
    found = []
    for value in _listed(axes[key]) if key in axes else usual:
        try:
            if key not in ("seed", "validation") and not isinstance(value, str):
                raise TypeError(f"a string is expected, not {value!r}")
            found.append(read(value))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where[key]}: {error}") from None
    return found


def _seed(value: Any) -> int:
    return Experiment("", "", "", "", seed=value).seed


def _share(value: Any) -> float:
    return Experiment("", "", "", "", validation=value).validation


def _recipes(value: Any, where: str, usual: str) -> list[Recipe]:
    """Return the recipes that a name, a table, or a list of these gives."""
    found = []
    for each in _listed(value):
        try:
            if not isinstance(each, dict):
                found.append(named_recipe(str(each)))
                continue
            name = each.get("name", usual)
            base = named_recipe(str(name)) if name else Recipe()
            fields = {key: _listed(values) for key, values in each.items() if key != "name"}
            for choice in itertools.product(*fields.values()):
                found.append(base.replace(**dict(zip(fields, choice))))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None
    return found


def _any(cell: Cell, key: str, patterns: Any) -> bool:
    return any(cell.matches(key, str(pattern)) for pattern in _listed(patterns))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _plain(text: str) -> str:
    """Return text without what patterns need not repeat: blanks, quotes, capitals."""
    return "".join(text.lower().split()).replace('"', "").replace("'", "")


def _check_keys(where: str, table: Any, known: Sequence[str]) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where}: a table is expected, not {table!r}")
    for key in table:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}{did_you_mean(key, known)}; known: {', '.join(known)}")
