"""Parquet and CSV files as polars data frames, with errors that name the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEXT = (".csv", ".tsv")
TABLES = (".parquet", *TEXT)


def polars() -> Any:
    """Return the polars module."""
    try:
        import polars
    except ImportError:
        raise ImportError("parquet and CSV files need polars: pip install 'unswayed[data]'") from None
    return polars


def columns_of(path: Path) -> list[str]:
    """Return the names of a parquet file's columns."""
    with _told(path):
        return list(polars().read_parquet_schema(path))


def read_frame(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return a data frame of a parquet file, or of a CSV file with a line of names and ``,``, ``;`` or tabs."""
    with _told(path):
        if path.suffix.lower() not in TEXT:
            return polars().read_parquet(path, columns=columns)
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline()
        # Types are inferred from all rows: the odd one out may be the last.
        return polars().read_csv(path, separator=max("\t;,", key=head.count), infer_schema_length=None)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (polars().exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        kind = "a table of text" if path.suffix.lower() in TEXT else "parquet"
        # What follows the first line is advice about polars.
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{str(path)!r} cannot be read as {kind}: {why}") from None
