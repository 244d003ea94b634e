"""What the estimates need of class probabilities, read row by row: a few numbers an example, never a second table."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unswayed.noise.labels import as_labels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Probabilities that are read at a time.
_CELLS = 1 << 22
_GUESSES = 4


@dataclass(frozen=True, eq=False)
class Ranked:
    """Examples, as a classifier sees them.

    ``guesses`` are the (up to four) likeliest classes, in order; ``top`` the probability of the first; ``margin`` the
    log-odds between the first and the second; ``counted`` the class that the confident joint counts an example for, or
    -1.
    """

    labels: Ints
    num_classes: int
    guesses: Ints
    top: Floats
    margin: Floats
    counted: Ints

    def __len__(self) -> int:
        return len(self.labels)


def ranked(probabilities: Any, labels: Any) -> Ranked:
    """Read probabilities ``(N, K)`` and labels, or raise a ``ValueError`` that says what is wrong with them."""
    p = probabilities.detach().cpu().numpy() if hasattr(probabilities, "detach") else np.asarray(probabilities)
    if p.ndim != 2 or p.dtype.kind != "f" or p.shape[1] < 2:
        raise ValueError(
            f"probabilities: a table of N rows and K columns of decimal numbers is needed, K of 2 or more, not "
            f"{p.dtype} of shape {p.shape}"
        )
    given = as_labels(labels, p.shape[1])
    if len(given) != len(p):
        raise ValueError(f"there are {len(given)} labels, but {len(p)} rows of probabilities")
    n, num_classes = p.shape
    guesses = np.empty((n, min(_GUESSES, num_classes)), np.int64)
    top, margin, own = np.empty(n), np.empty(n), np.empty(n)
    size = max(1, _CELLS // num_classes)
    for at in range(0, n, size):
        part = p[at : at + size].astype(np.float64)
        _check(part, at)
        order = _first(part, guesses.shape[1])
        two = np.take_along_axis(part, order[:, :2], 1)
        rows = slice(at, at + len(part))
        guesses[rows], top[rows] = order, two[:, 0]
        margin[rows] = np.log(two[:, 0]) - np.log(np.maximum(two[:, 1], 1e-30))
        own[rows] = part[np.arange(len(part)), given[rows]]
    if top.min() >= 1:
        raise ValueError(
            "probabilities are all 0 or 1: they do not tell how sure the classifier is, and without that its errors "
            "cannot be told from wrong labels; give the softmax of its logits, not its decisions"
        )
    sizes = np.bincount(given, minlength=num_classes)
    sums = np.bincount(given, own, minlength=num_classes)
    # Nothing is as sure as an example of a class that no label names.
    threshold = np.divide(sums, sizes, out=np.full(num_classes, np.inf), where=sizes > 0)
    counted = np.full(n, -1)
    for at in range(0, n, size):
        part = p[at : at + size].astype(np.float64)
        sure = np.where(part >= threshold - 1e-12, part, -1)
        best = sure.argmax(1)
        counted[at : at + size] = np.where(sure[np.arange(len(part)), best] >= 0, best, -1)
    return Ranked(given, num_classes, guesses, top, margin, counted)


def read_probabilities(path: Path) -> tuple[Any, Any]:
    """Read a NumPy archive of ``probabilities`` and ``labels``; ``pred_probs``, as cleanlab says, will also do."""
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r}: there is no such file")
    try:
        with np.load(path, allow_pickle=False) as content:
            names = list(content.files)
            table = next((name for name in ("probabilities", "pred_probs") if name in names), None)
            if table is None or "labels" not in names:
                raise ValueError(f"it holds {', '.join(names) or 'nothing'}")
            return content[table], content["labels"]
    except (ValueError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{str(path)!r}: a .npz file with arrays 'probabilities' (N, K) and 'labels' (N) is needed; {error}"
        ) from None


def _first(part: Floats, many: int) -> Ints:
    """Return the classes of the largest probabilities, in order; of equals, the lower class first."""
    if part.shape[1] <= 4 * many:
        return np.argsort(-part, 1, kind="stable")[:, :many]
    some = np.sort(np.argpartition(-part, many, 1)[:, :many], 1)
    order = np.argsort(-np.take_along_axis(part, some, 1), 1, kind="stable")
    found: Ints = np.take_along_axis(some, order, 1)
    return found


def _check(part: Floats, at: int) -> None:
    bad = ~(part >= 0).all(1)
    if bad.any():
        row = int(bad.argmax())
        value = next(v for v in part[row].tolist() if not v >= 0)
        raise ValueError(f"probabilities: row {at + row} has {value:g}; probabilities lie between 0 and 1")
    sums = part.sum(1)
    off = ~(np.abs(sums - 1) <= 0.01)
    if off.any():
        row = int(off.argmax())
        raise ValueError(
            f"probabilities: row {at + row} sums to {sums[row]:.6g}; each row must sum to 1 (within 0.01). Logits "
            f"become probabilities by softmax"
        )
