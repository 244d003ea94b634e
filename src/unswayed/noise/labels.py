"""Noisy labels, what is known of how they came about, and the small file that keeps them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unswayed
from unswayed._files import written_whole
from unswayed.noise.matrix import Matrix
from unswayed.noise.spec import NoiseSpec

FORMAT = 1


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels that are partly wrong.

    ``labels`` are the noisy ones and ``clean`` the right ones (``None`` where nobody knows them), both int64; ``spec``
    and ``seed`` say how they came about.

    >>> from unswayed.noise import make
    >>> noisy = make("symmetric(0.3)", [0] * 10 + [1] * 10, num_classes=2, seed=1)
    >>> noisy.rate, noisy.transition.tolist()
    (0.3, [[0.7, 0.3], [0.3, 0.7]])
    """

    labels: NDArray[np.int64]
    clean: NDArray[np.int64] | None
    num_classes: int
    spec: NoiseSpec
    seed: int

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """How many examples of true class ``i`` are labelled ``j``; ``None`` if the clean labels are not known."""
        if self.clean is None:
            return None
        size = self.num_classes
        return np.bincount(self.clean * size + self.labels, minlength=size * size).reshape(size, size)

    @property
    def transition(self) -> Matrix | None:
        """The share of true class ``i`` that is labelled ``j``; the row of a class without examples is nan."""
        counts = self.counts
        if counts is None:
            return None
        sizes = counts.sum(1, keepdims=True)
        shares: Matrix = np.divide(counts, sizes, out=np.full(counts.shape, np.nan), where=sizes > 0)
        return shares

    @property
    def rate(self) -> float | None:
        """The share of wrong labels."""
        return None if self.clean is None else float((self.labels != self.clean).mean())

    @property
    def manifest(self) -> dict[str, Any]:
        """How the labels came about and what they are, ready for JSON."""
        matrix = self.transition
        rows = None if matrix is None else [[None if np.isnan(v) else v for v in row] for row in matrix.tolist()]
        return {
            "spec": str(self.spec),
            "seed": self.seed,
            "examples": len(self),
            "num_classes": self.num_classes,
            "rate": self.rate,
            "matrix": rows,
            "sha256": {"labels": sha256(self.labels), "clean": None if self.clean is None else sha256(self.clean)},
            "versions": {"unswayed": unswayed.__version__, "numpy": np.__version__},
        }

    def save(self, path: str | Path) -> Path:
        """Write a small file: a NumPy archive of both label vectors and the manifest, without pickles.

        >>> import tempfile
        >>> from unswayed.noise import make
        >>> noisy = make("symmetric(0.5)", [0, 1, 0, 1], num_classes=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     NoisyLabels.load(noisy.save(f"{folder}/noise.npz")).labels.tolist() == noisy.labels.tolist()
        True
        """
        path = check_place(path)
        small = np.min_scalar_type(self.num_classes - 1)
        text = json.dumps({"format": FORMAT} | self.manifest, ensure_ascii=False)
        arrays: dict[str, Any] = {"manifest": np.frombuffer(text.encode(), dtype=np.uint8)}
        arrays["labels"] = self.labels.astype(small)
        if self.clean is not None:
            arrays["clean"] = self.clean.astype(small)
        with written_whole(path) as part, part.open("wb") as file:
            np.savez_compressed(file, **arrays)
        return path

    @classmethod
    def load(cls, path: str | Path, labels: Any = None) -> NoisyLabels:
        """Read what :meth:`save` wrote; with ``labels``, those of the data, only if it was made for them."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r}: there is no such file")
        try:
            with np.load(path, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            manifest = json.loads(arrays.pop("manifest").tobytes())
            form = manifest.pop("format")
            if form != FORMAT:
                raise ValueError(f"it has format {form}, and this version of unswayed reads {FORMAT}")
            noisy = cls(
                arrays["labels"].astype(np.int64),
                arrays["clean"].astype(np.int64) if "clean" in arrays else None,
                int(manifest["num_classes"]), NoiseSpec.parse(manifest["spec"]), int(manifest["seed"]),
            )  # fmt: skip
            intact = noisy.manifest["sha256"] == manifest["sha256"]
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"{str(path)!r} is no file of noisy labels, or a broken one: {error}") from None
        if not intact:
            raise ValueError(f"{str(path)!r} is broken: its labels are not those whose SHA-256 it tells")
        if labels is not None:
            noisy.check(labels, repr(str(path)))
        return noisy

    def check(self, labels: Any, what: str = "the noise") -> None:
        """Raise a ``ValueError`` unless this was made from ``labels``, those of the data."""
        theirs = as_labels(labels, self.num_classes)
        mine = self.labels if self.clean is None else self.clean
        if sha256(theirs) != sha256(mine):
            raise ValueError(
                f"{what} was made for other labels ({len(mine)} with SHA-256 {sha256(mine)[:12]}..., here are "
                f"{len(theirs)} with {sha256(theirs)[:12]}...): another data set, or another order; make it anew"
            )


def sha256(labels: NDArray[np.int64]) -> str:
    """Return the SHA-256 of labels as little-endian int64, the same on every machine."""
    return hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).hexdigest()


def as_labels(labels: Any, num_classes: int, what: str = "labels") -> NDArray[np.int64]:
    """Return labels as int64, or raise a ``ValueError`` that says what is wrong with them."""
    if isinstance(num_classes, bool) or not isinstance(num_classes, (int, np.integer)) or num_classes < 2:
        raise ValueError(f"num_classes={num_classes!r} is not allowed; it is a whole number of 2 or more")
    values = np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels)
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        raise ValueError(
            f"{what}: whole numbers are needed, one an example, not {values.dtype} of shape {values.shape}"
        )
    wrong = values[(values < 0) | (values >= num_classes)]
    if len(wrong):
        raise ValueError(f"{what}: {wrong[0]} is not allowed; labels are 0 to {num_classes - 1}")
    return values.astype(np.int64)


def check_place(path: str | Path) -> Path:
    """Return a path that noisy labels can be written to, or raise a ``ValueError`` that says why they cannot."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"{str(path)!r}: noisy labels are written as .npz; name such a file")
    if not path.parent.is_dir():
        raise ValueError(f"{str(path)!r}: there is no folder {str(path.parent)!r}")
    return path
