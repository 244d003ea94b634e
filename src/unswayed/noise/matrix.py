"""Transition matrices: ``T[i][j]`` is the probability that an example of true class ``i`` is labelled ``j``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def transition_matrix(source: Any, what: str = "matrix") -> Matrix:
    """Return a row-stochastic matrix from nested lists, an array, a tensor, or a ``.csv`` or ``.npy`` file.

    >>> transition_matrix([[0.9, 0.1], [0.2, 0.8]])
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """
    if isinstance(source, (str, Path)):
        what, source = f"{what} {str(source)!r}", _read(Path(source), what)
    try:
        # Tensors have numpy(); asked for an array, those of some versions warn.
        source = source.detach().cpu().numpy() if hasattr(source, "detach") else source
        matrix = np.array(source, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is not a table of numbers with rows of one length") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(f"{what} has shape {matrix.shape}; it needs K rows and K columns, with K of 2 or more")
    wrong = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(f"{what}: entry [{i}][{j}] is {matrix[i, j]:g}; probabilities lie between 0 and 1")
    sums = matrix.sum(1)
    if np.abs(sums - 1).max() > 1e-6:
        i = int(np.abs(sums - 1).argmax())
        raise ValueError(f"{what}: row {i} sums to {sums[i]:.8g}; each row must sum to 1 (within 1e-6)")
    return matrix


def _read(path: Path, what: str) -> Any:
    if path.suffix not in (".csv", ".npy"):
        raise ValueError(
            f"{what} {str(path)!r}: give a .csv file (numbers, comma-separated, one row a line) or a .npy one"
        )
    if not path.is_file():
        raise ValueError(f"{what} {str(path)!r}: there is no such file")
    try:
        return np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{what} {str(path)!r} cannot be read: {error}") from None
