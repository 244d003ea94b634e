"""Tables of numbers with a label a row: embeddings or measurements, as NumPy arrays, parquet or CSV."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.arrays import HELD_OUT, Classes, Place, as_inputs, as_labels, held_out
from unswayed.data.core import Data, Split
from unswayed.data.frames import TABLES, TEXT, polars, read_frame
from unswayed.data.known import KNOWN
from unswayed.spec import did_you_mean

_PARTS = ("train", "test", "val")
_X = ("x", "features", "embeddings", "data", "inputs")
_Y = ("y", "label", "labels", "target", "targets", "class")
_EXPECTED = (
    "expected are a .npz file, a .parquet, .csv or .tsv file with a label column, or a folder with train and test of "
    "these, or with .npy files: x and y, or x_train, y_train, x_test and y_test"
)


@dataclass
class _Part:
    x: Tensor
    y: NDArray[Any]
    place: Place  # how errors call a row of it
    index: NDArray[np.int64] | None = None

    def rows(self, rows: NDArray[np.int64]) -> _Part:
        index = rows if self.index is None else self.index[rows]
        return _Part(self.x[rows], self.y[rows], self.place, index)


@dataclass
class _Table:
    parts: dict[str, _Part]  # train, test and val; or one that is called all
    told: str
    names: Sequence[str] | None = None
    human: dict[str, Any] = field(default_factory=dict)


def load(name: str, root: Path, label: str | None = None) -> Data:
    """Read a table from a file or a folder.

    A table without a test part is divided: a fifth of each class is held out, the same rows each time.
    """
    table = _read(root, label)
    whole = table.parts.get("all")
    first = whole or table.parts.get("train")
    if first is None:
        raise FileNotFoundError(f"{str(root)!r} has rows to test on, but none to train on; {_EXPECTED}")
    classes = Classes.of(first.y, first.place.name, names=table.names)
    human = {
        key: classes.number(as_labels(values, place), place)
        for key, values in table.human.items()
        for place in (Place(f"{str(root)!r}, human_{key}"),)
    }
    told = table.told
    if whole is not None:
        rows = held_out(classes.number(whole.y, whole.place), whole.place.name)
        table.parts = {part: whole.rows(chosen) for part, chosen in zip(("train", "test"), rows)}
        human = {key: values[rows[0]] for key, values in human.items()}
        told += f"; no test part, so that {HELD_OUT:.0%} of each class are held out: {len(rows[1]):,} rows"
    elif len(table.parts) == 1:
        told += "; no test part"
    splits = {}
    for part, found in sorted(table.parts.items(), key=lambda item: _PARTS.index(item[0])):
        if found.x.shape[1:] != first.x.shape[1:]:
            raise ValueError(
                f"{found.place.name} has rows of shape {tuple(found.x.shape[1:])}, those to train on have "
                f"{tuple(first.x.shape[1:])}"
            )
        numbers = classes.number(found.y, found.place)
        splits[part] = Split(numbers, found.x, index=found.index, human=human if part == "train" else {})
    # Features of a well-known data set name its classes; its classes say which is mistaken for which.
    facts = [entry for entry in KNOWN.values() if table.names is not None and entry.classes == classes.names]
    return Data(
        name, splits.pop("train"), splits, len(classes.names), tuple(first.x.shape[1:]), classes.names,
        facts[0] if len(facts) == 1 else None, layout=told,
    )  # fmt: skip


def _read(root: Path, label: str | None) -> _Table:
    if root.is_file():
        if root.suffix.lower() == ".npz":
            return _npz(root, label)
        if root.suffix.lower() in TABLES:
            return _frames({"all": [root]}, label)
        hint = f"; give the folder it is in, {str(root.parent)!r}" if root.suffix == ".npy" else ""
        raise ValueError(f"{str(root)!r} is no table that can be read{hint}; {_EXPECTED}")
    files = sorted(path for path in root.iterdir() if path.is_file() and not path.name.startswith("."))
    parts = {
        part: [path for path in files if path.suffix.lower() in TABLES and re.match(rf"(?i){part}(?![a-z])", path.stem)]
        for part in _PARTS
    }
    if any(parts.values()):
        return _frames({part: paths for part, paths in parts.items() if paths}, label)
    arrays = {path.stem: path for path in files if path.suffix.lower() == ".npy"}
    if arrays:
        return _arrays(arrays, label, str(root), lambda key: _npy(arrays[key]), lambda key: repr(str(arrays[key])))
    alone = [path for path in files if path.suffix.lower() in (".npz", *TABLES)]
    if len(alone) != 1:
        there = f"several tables ({', '.join(path.name for path in alone)}); name one" if alone else "no table"
        raise FileNotFoundError(f"{str(root)!r} holds {there}; {_EXPECTED}")
    return _read(alone[0], label)


# NumPy's files


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, OSError) as error:
        why = str(error) or type(error).__name__
        if "pickle" in why:
            why = "it holds Python objects, or something else; numbers are expected"
        raise ValueError(f"{what} cannot be read as NumPy's: {why}") from None


def _npz(path: Path, label: str | None) -> _Table:
    # NumPy leaves a file open that it finds to be broken, unless it is not its own.
    with path.open("rb") as file:
        with _told(repr(str(path))):
            archive = np.load(file, allow_pickle=False)
        return _arrays(archive.files, label, str(path), archive.__getitem__, lambda key: f"{str(path)!r}, {key}")


def _npy(path: Path) -> Any:
    with path.open("rb") as file:
        return np.load(file, allow_pickle=False)


def _arrays(
    keys: Iterable[str], label: str | None, where: str, read: Callable[[str], Any], title: Callable[[str], str]
) -> _Table:
    by_name = {key.lower(): key for key in keys}

    def get(key: str) -> NDArray[Any]:
        with _told(title(key)):
            return np.asarray(read(key))

    parts = {}
    for part, x_key, y_key, index in _pairs(by_name, label, where):
        x, y = as_inputs(get(x_key), Place(title(x_key))), as_labels(get(y_key), Place(title(y_key)))
        _same(len(y), title(y_key), len(x), title(x_key))
        parts[part] = _Part(x, y, Place(title(y_key)))
        if index:
            values = get(index)
            if values.ndim != 1 or values.dtype.kind not in "iu":
                raise ValueError(f"{title(index)} is {values.dtype} {values.shape}; whole numbers are expected")
            _same(len(values), title(index), len(x), title(x_key))
            parts[part].index = values.astype(np.int64)
    first, human = next(iter(parts.values())), {}
    for name, key in by_name.items():
        if name.startswith("human_"):
            human[name.removeprefix("human_")] = values = get(key)
            _same(len(values), title(key), len(first.x), repr(where))
    names = by_name.get("class_names")
    rows = ", ".join(f"{len(found.x):,} {'' if part == 'all' else part + ' '}rows" for part, found in parts.items())
    more = f"; human labels: {', '.join(human)}" if human else ""
    return _Table(
        parts,
        f"NumPy arrays in {where!r}: {rows} of shape {tuple(first.x.shape[1:])}{more}",
        None if names is None else [str(each) for each in get(names).ravel()],
        human,
    )


def _pairs(by_name: Mapping[str, str], label: str | None, where: str) -> list[tuple[str, str, str, str | None]]:
    """Return the parts that are there: their names, and those of their numbers, their labels and their order."""
    labels = _Y if label is None else (label.lower(),)

    def find(stems: Sequence[str], part: str) -> str | None:
        names = [stem if part == "all" else f"{stem}_{part}" for stem in stems]
        return next((by_name[name] for name in names if name in by_name), None)

    found, alone = [], []
    for part in ("all", *_PARTS):
        x, y = find(_X, part), find(labels, part)
        if x and y:
            found.append((part, x, y, find(("index",), part)))
        elif x or y:
            alone.append(x or y)
    if not found or alone:
        # A label that nothing is called like is the mistake, rather than the x that stands alone for it.
        meant = "" if label is None else f" (label={label!r}{did_you_mean(label, by_name)})"
        raise ValueError(
            f"{where!r} has the arrays {', '.join(by_name.values()) or '(none)'}"
            + (f", where {alone[0]} stands alone" if alone else "")
            + f"; x and y are expected, or x_train, y_train, x_test and y_test{meant}"
        )
    if found[0][0] == "all" and len(found) > 1:
        raise ValueError(f"{where!r} has both {found[0][1]} and {found[1][1]}; leave one of them out")
    return found


def _same(n: int, what: str, wanted: int, other: str) -> None:
    if n != wanted:
        raise ValueError(f"{what} has {n} rows, but {other} has {wanted}")


# Parquet and CSV


def _frames(files: Mapping[str, Sequence[Path]], label: str | None) -> _Table:
    parts: dict[str, _Part] = {}
    columns: list[str] = []
    paths = [path for each in files.values() for path in each]
    for part, shards in files.items():
        read = []
        for path in shards:
            frame = read_frame(path)
            label = _label(frame.columns, label, path)
            columns = columns or [name for name in frame.columns if name != label]
            for name in columns:
                if name not in frame.columns:
                    raise ValueError(f"{str(path)!r} has no column {name!r}, which {str(paths[0])!r} has")
            place = Place(repr(str(path)), "line", 2) if path.suffix.lower() in TEXT else Place(repr(str(path)))
            read.append(_Part(_numbers(frame, columns, place), _classes(frame[label], place), place))
        parts[part] = _together(read, shards)
    rows = ", ".join(f"{len(found.x):,} {'' if part == 'all' else part + ' '}rows" for part, found in parts.items())
    width = next(iter(parts.values())).x.shape[1]
    told = f"{' and '.join(repr(str(path)) for path in paths)}: {rows} of {width} numbers, labels in column {label!r}"
    return _Table(parts, told)


def _together(read: Sequence[_Part], paths: Sequence[Path]) -> _Part:
    if len(read) == 1:
        return read[0]
    for other, path in zip(read, paths):
        if other.x.shape[1:] != read[0].x.shape[1:] or (other.y.dtype.kind == "U") != (read[0].y.dtype.kind == "U"):
            raise ValueError(f"{str(path)!r} has rows of another kind than {str(paths[0])!r}")
    whole = Place(f"'{paths[0].parent}', {paths[0].name} and the files that follow it")
    return _Part(torch.cat([each.x for each in read]), np.concatenate([each.y for each in read]), whole)


def _label(columns: Sequence[str], label: str | None, path: Path) -> str:
    """Return the column that holds the labels."""
    there = f"the columns of {str(path)!r} are {', '.join(columns[:20])}{', ...' if len(columns) > 20 else ''}"
    if all(_is_number(name) for name in columns):
        raise ValueError(f"{str(path)!r} has no line of column names at its head, which begins with {columns[0]!r}")
    if label is None:
        likely = [name for name in columns if name.lower() in _Y]
        if len(likely) != 1:
            raise ValueError(f"name the column that holds the labels: label=..., on the command line --label; {there}")
        return likely[0]
    if label not in columns:
        raise ValueError(f"there is no column {label!r} for the labels{did_you_mean(label, columns)}; {there}")
    return label


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(frame: Any, columns: Sequence[str], place: Place) -> Tensor:
    """Return columns of numbers, or of rows of numbers, as inputs."""
    if not columns or not len(frame):
        raise ValueError(f"{place.name} has no {'rows' if columns else 'columns beside the labels'}")
    blocks, names = [], []
    for name in columns:
        block = _column(frame[name], name, place)
        blocks.append(block)
        names += [name] if block.shape[1] == 1 else [f"{name}[{i}]" for i in range(block.shape[1])]
    return as_inputs(np.concatenate(blocks, axis=1), place, names)


def _column(series: Any, name: str, place: Place) -> NDArray[Any]:
    _whole(series, name, place)
    if series.dtype == polars().String:
        numbers = series.cast(polars().Float64, strict=False)
        if numbers.null_count():
            row = int(numbers.is_null().arg_max())
            raise ValueError(
                f"{place(row)}, column {name!r}: {series[row]!r} is no number; features are numbers: leave it out"
            )
        series = numbers
    if series.dtype in (polars().List, polars().Array):
        widths = series.list.len() if series.dtype == polars().List else polars().Series([series.dtype.size])
        if widths.n_unique() > 1:
            row = int((widths != widths[0]).arg_max())
            raise ValueError(f"{place(row)}, column {name!r} has {widths[row]} numbers, the first row has {widths[0]}")
        flat = series.explode()
        _whole(flat, name, Place(place.name, "number"))
        return _column(flat, name, place).reshape(len(series), -1)
    if not series.dtype.is_numeric() and series.dtype != polars().Boolean:
        raise ValueError(f"{place.name}, column {name!r} holds {series.dtype}, where numbers are expected")
    values: NDArray[Any] = series.to_numpy()
    return values[:, None]


def _classes(series: Any, place: Place) -> NDArray[Any]:
    _whole(series, series.name, place)
    if series.dtype in (polars().Categorical, polars().Enum, polars().Boolean):
        series = series.cast(polars().String)
    if series.dtype != polars().String and not series.dtype.is_numeric():
        raise ValueError(
            f"{place.name}, column {series.name!r} holds {series.dtype}; labels are whole numbers, or text"
        )
    return as_labels(np.array(series.to_list()) if series.dtype == polars().String else series.to_numpy(), place)


def _whole(series: Any, name: str, place: Place) -> None:
    if series.null_count():
        raise ValueError(f"{place(int(series.is_null().arg_max()))}, column {name!r}: a value is missing")
