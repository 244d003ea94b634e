"""Features from NumPy files, parquet and CSV: what is read from them, and what is said when they are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("polars")

import polars

from unswayed.data import load

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)).astype(np.float32)
Y = np.arange(30) % 3
NAMES = np.array(["ant", "bee", "cat"])


def frame(x: Any = X, y: Any = Y, label: str = "label") -> polars.DataFrame:
    return polars.DataFrame({f"f{i}": x[:, i] for i in range(x.shape[1])} | {label: y})


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def text(path: Path, lines: str) -> Path:
    path.write_text(lines)
    return path


def parts(x: Any = X, y: Any = Y) -> dict[str, Any]:
    return {"x_train": x[:20], "y_train": y[:20], "x_test": x[20:], "y_test": y[20:]}


def test_embeddings_as_they_are_shared(tmp_path: Path) -> None:
    more = {
        "index_train": np.arange(0, 40, 2), "index_test": np.arange(10), "human_worst": Y[:20] * 0 + 1,
        "class_names": NAMES, "superclass_of_class": np.zeros(3),
    }  # fmt: skip
    data = load("features", npz(tmp_path / "a.npz", **(parts(X.astype(np.float16)) | more)))
    assert data.classes == ("ant", "bee", "cat")
    assert data.in_shape == (4,)
    for split, rows in ((data.train, slice(20)), (data.test, slice(20, None))):
        assert split.inputs is not None
        assert split.inputs.numpy().dtype == np.float32
        assert np.array_equal(split.inputs, X.astype(np.float16)[rows])
        assert np.array_equal(split.labels, Y[rows])
    assert np.array_equal(data.train.index, more["index_train"])
    assert data.train.human["worst"].tolist() == [1] * 20
    assert not data.test.human
    assert "human labels: worst" in data.layout
    assert data.known is None


def test_features_of_a_known_data_set_bring_its_facts(tmp_path: Path) -> None:
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    data = load("features", npz(tmp_path / "a.npz", x=X, y=np.arange(30) % 10, class_names=names))
    assert data.known is not None
    assert data.known.name == "cifar10"


WRITERS: dict[str, Callable[[Path], Path]] = {
    "npz": lambda p: npz(p / "t.npz", **parts()),
    "npz, other names": lambda p: npz(
        p / "t.npz", Features_train=X[:20], LABELS_train=Y[:20], embeddings_test=X[20:], target_test=Y[20:]
    ),
    "npy": lambda p: [np.save(p / f"{key}.npy", value) for key, value in parts().items()] and p,
    "parquet": lambda p: [frame()[r].write_parquet(p / f"{n}.parquet") for n, r in PARTS.items()] and p,
    "parquet in shards": lambda p: (
        [
            frame()[:9].write_parquet(p / "train-0.parquet"),
            frame()[9:20].write_parquet(p / "train-1.parquet"),
            frame()[20:].write_parquet(p / "test-0.parquet"),
        ]
        and p
    ),
    "csv": lambda p: [frame()[r].write_csv(p / f"{n}.csv") for n, r in PARTS.items()] and p,
    "tsv": lambda p: [frame()[r].write_csv(p / f"{n}.tsv", separator="\t") for n, r in PARTS.items()] and p,
    "semicolons": lambda p: [frame()[r].write_csv(p / f"{n}.csv", separator=";") for n, r in PARTS.items()] and p,
}
PARTS = {"train": slice(20), "test": slice(20, None)}


@pytest.mark.parametrize("form", WRITERS)
def test_every_form_gives_the_same(form: str, tmp_path: Path) -> None:
    data = load("features", WRITERS[form](tmp_path))
    assert list(data.tests) == ["test"]
    assert (data.name, data.classes, data.in_shape) == ("features", ("0", "1", "2"), (4,))
    assert data.train.inputs is not None
    assert data.test.inputs is not None
    assert np.allclose(np.concatenate([data.train.inputs, data.test.inputs]), X, atol=1e-6)
    assert np.array_equal(np.concatenate([data.train.labels, data.test.labels]), Y)


@pytest.mark.parametrize("form", ["npz", "npy", "parquet", "csv"])
def test_a_table_without_a_test_part_is_divided(form: str, tmp_path: Path) -> None:
    root = {
        "npz": lambda: npz(tmp_path / "t.npz", x=X, y=Y, human_worst=Y[::-1]),
        "npy": lambda: [np.save(tmp_path / "x.npy", X), np.save(tmp_path / "y.npy", Y)] and tmp_path,
        "parquet": lambda: frame().write_parquet(tmp_path / "t.parquet") or tmp_path / "t.parquet",
        "csv": lambda: frame().write_csv(tmp_path / "t.csv") or tmp_path,
    }[form]()
    data = load("features", root)
    assert np.bincount(data.train.labels).tolist() == [8, 8, 8]
    assert np.bincount(data.test.labels).tolist() == [2, 2, 2]
    rows = [np.asarray(split.index) for split in (data.train, data.test)]
    assert sorted(np.concatenate(rows)) == list(range(30))
    for split, index in zip((data.train, data.test), rows):
        assert np.allclose(split.inputs, X[index], atol=1e-6)
        assert np.array_equal(split.labels, Y[index])
    assert np.array_equal(load("features", root).test.index, rows[1])
    assert "no test part, so that 20% of each class are held out: 6 rows" in data.layout
    if form == "npz":
        assert np.array_equal(data.train.human["worst"], Y[::-1][rows[0]])


def test_labels_that_are_text_flags_or_any_numbers(tmp_path: Path) -> None:
    for label, classes in [
        (NAMES[Y], ("ant", "bee", "cat")),
        (Y == 1, ("false", "true")),
        (Y * 10 - 5, ("-5", "5", "15")),
        (Y + 0.0, ("0", "1", "2")),
    ]:
        for suffix in ("csv", "parquet"):
            getattr(frame(y=label), f"write_{suffix}")(tmp_path / f"t.{suffix}")
            data = load("features", tmp_path / f"t.{suffix}")
            assert data.classes == classes
            names = np.array(data.classes)[data.train.labels]
            given = np.asarray(label)[data.train.index]
            assert [str(v).lower().removesuffix(".0") for v in given] == names.tolist()
    categories = frame().with_columns(polars.Series("label", NAMES[Y], dtype=polars.Categorical))
    categories.write_parquet(tmp_path / "c.parquet")
    assert load("features", tmp_path / "c.parquet").classes == ("ant", "bee", "cat")


def test_the_label_column_is_named_or_obvious(tmp_path: Path) -> None:
    frame(label="species").write_csv(tmp_path / "t.csv")
    data = load("features", tmp_path / "t.csv", label="species")
    assert "labels in column 'species'" in data.layout
    with pytest.raises(ValueError, match=r"--label; the columns of .*t\.csv' are f0, f1, f2, f3, species"):
        load("features", tmp_path / "t.csv")
    with pytest.raises(ValueError, match="no column 'specie' for the labels; did you mean 'species'"):
        load("features", tmp_path / "t.csv", label="specie")
    both = frame(label="y").with_columns(target=polars.lit(1))
    both.write_csv(tmp_path / "both.csv")
    with pytest.raises(ValueError, match="name the column that holds the labels"):
        load("features", tmp_path / "both.csv")
    assert load("features", tmp_path / "both.csv", label="y").in_shape == (5,)
    # Arrays have names too.
    path = npz(tmp_path / "t.npz", x=X, coarse=Y, fine=Y[::-1])
    assert load("features", path, label="fine").train.labels.tolist() != load("features", path, label="coarse").train
    with pytest.raises(ValueError, match="label='corse'; did you mean 'coarse'"):
        load("features", path, label="corse")


def test_columns_of_vectors_and_of_flags(tmp_path: Path) -> None:
    lists = polars.DataFrame({"e": X.tolist(), "flag": Y > 0, "count": Y.astype(np.int8), "label": Y})
    arrays = lists.with_columns(polars.col("e").cast(polars.Array(polars.Float32, 4)))
    for name, table in (("lists", lists), ("arrays", arrays)):
        table.write_parquet(tmp_path / f"{name}.parquet")
        data = load("features", tmp_path / f"{name}.parquet")
        assert data.in_shape == (6,)
        expected = np.column_stack([X, Y > 0, Y])[data.train.index]
        assert np.allclose(data.train.inputs, expected)
    short = polars.DataFrame({"e": [[1.0, 2.0], [3.0], [4.0, 5.0]], "label": [0, 1, 0]})
    short.write_parquet(tmp_path / "short.parquet")
    with pytest.raises(ValueError, match=r"short\.parquet', row 1, column 'e' has 1 numbers, the first row has 2"):
        load("features", tmp_path / "short.parquet")


def test_images_in_arrays_stay_images(tmp_path: Path) -> None:
    images = RNG.integers(0, 256, (30, 3, 5, 6), dtype=np.uint8)
    data = load("features", npz(tmp_path / "t.npz", x=images, y=Y))
    assert data.in_shape == (3, 5, 6)
    assert np.array_equal(data.train.inputs, images[data.train.index])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(1, 40), min_size=2, max_size=5), seed=st.integers(0, 9))
def test_the_division_is_stratified(counts: list[int], seed: int, tmp_path: Path) -> None:
    if max(counts) == 1:
        counts[0] = 2
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    data = load("features", npz(tmp_path / "t.npz", x=np.arange(len(y))[:, None], y=y))
    tested = np.bincount(data.test.labels, minlength=len(counts))
    for count, held in zip(counts, tested):
        assert held == (0 if count == 1 else max(1, round(count / 5)))
    assert np.bincount(data.train.labels).tolist() == (np.array(counts) - tested).tolist()


def _nan(row: int, column: int, value: float) -> Any:
    x = X.copy()
    x[row, column] = value
    return x


@pytest.mark.parametrize(
    ("make", "file", "says"),
    [
        (lambda p: text(p / "t.csv", "a,label\n1,0\n,1\n3,0\n"), "t.csv', line 3, column 'a'", "a value is missing"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\n2,\n3,0\n"), "t.csv', line 3, column 'label'", "is missing"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\n2\n3,0\n"), "t.csv', line 3, column 'label'", "is missing"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\n2,1,7\n"), "t.csv' cannot be read as a table of text", "fields"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\nx,1\n3,0\n"), "t.csv', line 3, column 'a'", "'x' is no number"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\nnan,1\n3,0\n"), "t.csv', line 3, column 'a'", "nan is not"),
        (lambda p: text(p / "t.csv", "a,b,label\n1,1,0\n2,inf,1\n3,1,0\n"), "line 3, column 'b'", "inf is not"),
        (lambda p: text(p / "t.csv", "a,label\n1,0\n2,0\n"), "t.csv'", "all labels are '0'; a classifier needs two"),
        (lambda p: text(p / "t.csv", "a,label\n1,0.5\n2,1\n3,1\n"), "t.csv', line 2", "the label 0.5 is not allowed"),
        (lambda p: text(p / "t.csv", "a,label\n1,4\n2,5\n3,6\n"), "t.csv'", "a label of its own"),
        (lambda p: text(p / "t.csv", "1.5,2,0\n2.5,3,1\n"), "t.csv'", "has no line of column names"),
        (lambda p: text(p / "t.csv", "label\n1\n0\n1\n"), "t.csv'", "has no columns beside the labels"),
        (lambda p: text(p / "t.csv", "a,label\n"), "t.csv'", "has no rows"),
        (lambda p: text(p / "t.csv", ""), "t.csv'", "cannot be read as a table of text"),
        (lambda p: text(p / "t.parquet", "PAR1 broken"), "t.parquet'", "cannot be read as parquet"),
        (lambda p: text(p / "t.npz", "PK broken"), "t.npz'", "cannot be read as NumPy's"),
        (lambda p: text(p / "t.xlsx", "x"), "t.xlsx'", "is no table that can be read; expected are a .npz"),
        (lambda p: np.save(p / "x.npy", X) or p / "x.npy", "x.npy'", "give the folder it is in"),
        (lambda p: np.save(p / "x.npy", X) or p, "has the arrays x, where x stands alone", "x and y are expected"),
        (lambda p: p, "", "holds no table; expected are a .npz file"),
        (
            lambda p: npz(p / "a.npz", x=X) and npz(p / "b.npz", x=X) and p,
            "",
            "several tables (a.npz, b.npz); name one",
        ),
        (lambda p: npz(p / "t.npz", a=X, b=Y), "t.npz' has the arrays a, b", "x and y are expected"),
        (lambda p: npz(p / "t.npz", x=X, y=Y, **parts()), "t.npz' has both x and x_train", "leave one of them out"),
        (lambda p: npz(p / "t.npz", x_test=X, y_test=Y), "t.npz'", "rows to test on, but none to train on"),
        (lambda p: npz(p / "t.npz", x=X, y=Y[:5]), "t.npz', y has 5 rows", "t.npz', x has 30"),
        (lambda p: npz(p / "t.npz", x=_nan(7, 2, np.nan), y=Y), "t.npz', x, row 7, column 2", "nan is not allowed"),
        (lambda p: npz(p / "t.npz", x=X * np.float64(1e300), y=Y), "t.npz', x, row 0", "is not allowed; float32"),
        (lambda p: npz(p / "t.npz", x=NAMES[Y][:, None], y=Y), "t.npz', x", "holds text, where numbers"),
        (lambda p: npz(p / "t.npz", x=np.array([[None]] * 30), y=Y), "t.npz', x", "it holds Python objects"),
        (lambda p: npz(p / "t.npz", x=X, y=np.eye(3)[Y]), "t.npz', y", "y.argmax(1)"),
        (lambda p: npz(p / "t.npz", **(parts() | {"x_test": X[20:, :3]})), "t.npz', y_test", "rows of shape (3,)"),
        (lambda p: npz(p / "t.npz", **(parts() | {"y_test": Y[20:] + 1})), "t.npz', y_test, row", "the label 3 is not"),
        (lambda p: npz(p / "t.npz", x=X, y=Y, class_names=NAMES[:2]), "t.npz', y, row 2", "the label 2 is not allowed"),
        (lambda p: npz(p / "t.npz", x=X, y=Y, human_worst=Y[:9]), "human_worst has 9 rows", "has 30"),
        (lambda p: npz(p / "t.npz", x=X, y=Y, human_worst=Y + 1), "human_worst, row 2", "the label 3 is not allowed"),
        (lambda p: npz(p / "t.npz", x=X, y=Y, index=Y + 0.5), "t.npz', index is float64", "whole numbers"),
        (
            lambda p: frame().write_csv(p / "train.csv") or frame(X[:, :3]).write_csv(p / "test.csv") or p,
            "test.csv' has no column 'f3'",
            "which",
        ),
        (
            lambda p: frame(y=np.datetime64("2020-01-01") + Y).write_parquet(p / "t.parquet") or p,
            "t.parquet', column 'label' holds Date",
            "labels are whole numbers, or text",
        ),
        (
            lambda p: frame().with_columns(d=np.datetime64("2020-01-01") + Y).write_parquet(p / "t.parquet") or p,
            "t.parquet', column 'd' holds Date",
            "where numbers are expected",
        ),
    ],
)
def test_mistakes_are_told(make: Callable[[Path], Path], file: str, says: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        load("features", make(tmp_path))
    assert file in str(caught.value)
    assert says in str(caught.value)


def test_truncated_arrays_are_named(tmp_path: Path) -> None:
    whole = npz(tmp_path / "t.npz", x=X, y=Y).read_bytes()
    (tmp_path / "t.npz").write_bytes(whole[:-40])
    with pytest.raises(ValueError, match=r"t\.npz' cannot be read as NumPy's"):
        load("features", tmp_path / "t.npz")
    place = whole.index(X.tobytes()[:16])
    (tmp_path / "t.npz").write_bytes(whole[:place] + b"\0" + whole[place + 1 :])
    with pytest.raises(ValueError, match=r"t\.npz', x cannot be read as NumPy's: Bad CRC-32"):
        load("features", tmp_path / "t.npz")
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-9])
    (tmp_path / "t.npz").unlink()
    with pytest.raises(ValueError, match=r"x\.npy' cannot be read as NumPy's"):
        load("features", tmp_path)
