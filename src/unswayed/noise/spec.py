"""Kinds of label noise by name: ``"symmetric(0.8)"``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unswayed.data.known import known
from unswayed.noise.matrix import Matrix, transition_matrix
from unswayed.spec import REQUIRED, Param, Reader, read_named, write, write_named

_SAMPLING = Param(
    "sampling", "exact", "numbers of flips rounded from the wanted ones, or independent draws", "choice",
    choices=("exact", "bernoulli"),
)  # fmt: skip
KINDS: dict[str, tuple[Param, ...]] = {
    "clean": (),
    "given": (),
    "symmetric": (Param("rate", REQUIRED, "share of the labels that are wrong", low=0, high=1), _SAMPLING),
    "asymmetric": (
        Param("rate", REQUIRED, "share of the labels that are wrong, in classes that go wrong", low=0, high=1),
        Param("map", "own", "which class is taken for which", "choice", choices=("own", "index", "next")),
        Param("sequential", False, "class after class, on labels that are partly flipped already", "flag"),
        _SAMPLING,
    ),
    "instance": (
        Param("rate", REQUIRED, "share of the labels that are wrong", low=0, high=1),
        Param("kind", "pdn", "generator", "choice", choices=("pdn", "projection")),
        Param("scaling", None, "of the inputs", "choice", choices=("raw", "standardised")),
        _SAMPLING,
    ),
    "human": (
        Param(
            "which", REQUIRED, "labels of which people", "choice",
            choices=("worst", "aggregate", "random1", "random2", "random3", "noisy"),
        ),
        Param("file", None, "CIFAR-N's file, where the data brings no such labels along", "file"),
    ),
    "matrix": (
        Param("file", REQUIRED, "T[i][j] = probability of label j for true class i", "matrix"),
        _SAMPLING,
    ),
}  # fmt: skip
GRAMMAR = (
    f"a noise spec is one of {', '.join(KINDS)}, like symmetric(0.8), asymmetric(0.4), instance(0.4), human(worst) "
    f'or matrix("T.csv")'
)
# What each generator of instance noise was published with.
_SCALING = {"pdn": "raw", "projection": "standardised"}
_FILE = re.compile(r"(\bmatrix\(\s*(?!\w+\s*=)|\bfile\s*=\s*)([^\"'()\[\s,][^\"'(),]*?)\s*(?=[,)])")


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise with its parameters. ``str`` writes what is not as usual, so that it reads back to the same.

    >>> spec = NoiseSpec.parse("asymmetric(0.4, map=index, sampling=exact)")
    >>> str(spec), spec.values["rate"]
    ('asymmetric(rate=0.4, map="index")', 0.4)
    >>> NoiseSpec.parse("symmetric(0.8)").transition(5)[0]
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    kind: str
    values: Mapping[str, Any] = field(hash=False)

    @classmethod
    def parse(cls, spec: str | NoiseSpec) -> NoiseSpec:
        """Read a spec; the name of a file may stand without quotes."""
        if isinstance(spec, NoiseSpec):
            return spec
        if isinstance(spec, str):
            spec = _FILE.sub(lambda found: found[1] + write(found[2], "choice"), spec)
        reader = Reader(spec, GRAMMAR)
        kind, values = read_named(reader, reader.tree, "kind of noise", KINDS)
        if kind == "instance":
            values["scaling"] = values["scaling"] or _SCALING[values["kind"]]
        return cls(kind, values)

    def __str__(self) -> str:
        usual = {param.name: param.default for param in KINDS[self.kind]}
        if self.kind == "instance":
            usual["scaling"] = _SCALING[self.values["kind"]]
        return write_named(self.kind, {key: value for key, value in self.values.items() if value != usual[key]})

    def transition(self, num_classes: int | None = None, dataset: str | None = None) -> Matrix:
        """Return ``T[i][j]``, the probability that an example of true class ``i`` is labelled ``j``.

        Without a data set, ``asymmetric`` takes each class for the next one, and the last for the first: all that a
        theory needs to know of a map is that a class is taken for one other. Noise that is not a matter of classes
        (``instance``, ``human``, ``given``) has no such matrix, which is a ``ValueError``.
        """
        if self.kind == "matrix":
            matrix = transition_matrix(self.values["file"])
            if num_classes not in (None, len(matrix)):
                raise ValueError(f"{self} has {len(matrix)} classes, but {num_classes} were asked for")
            return matrix
        if self.kind not in ("clean", "symmetric", "asymmetric"):
            raise ValueError(
                f"{self} has no transition matrix of its own, as it is not a matter of classes alone; make the labels "
                f"and give what their .transition says as matrix(FILE)"
            )
        if num_classes is None or num_classes < 2:
            raise ValueError(f"{self} needs to know the number of classes (--classes K, num_classes=K), 2 or more")
        matrix = np.eye(num_classes)
        for step in self.steps(num_classes, dataset):
            matrix = matrix @ step
        return matrix

    def steps(self, num_classes: int, dataset: str | None = None) -> list[Matrix]:
        """Return the matrices that are applied to the labels one after the other: one, unless ``sequential``."""
        eye = np.eye(num_classes)
        if self.kind == "clean":
            return [eye]
        if self.kind == "matrix":
            return [self.transition(num_classes)]
        rate = self.values["rate"]
        if self.kind == "symmetric":
            return [(1 - rate) * eye + rate * (1 - eye) / (num_classes - 1)]
        wrong = eye[list(self.flips(num_classes, dataset))]
        whole = (1 - rate) * eye + rate * wrong
        if not self.values["sequential"]:
            return [whole]
        every = np.arange(num_classes)[:, None]
        return [np.where(every == source, whole, eye) for source in self._order(num_classes, dataset)]

    def flips(self, num_classes: int, dataset: str | None = None) -> tuple[int, ...]:
        """Return the class that each class is taken for under ``asymmetric``."""
        every = range(num_classes)
        if self.values["map"] == "index":
            if num_classes % 5:
                raise ValueError(f"{self}: blocks of five need a number of classes that 5 divides, not {num_classes}")
            return tuple(i // 5 * 5 + (i + 1) % 5 for i in every)
        if self.values["map"] == "next" or dataset is None:
            return tuple((i + 1) % num_classes for i in every)
        facts = known(dataset)
        if not facts.flips:
            raise ValueError(
                f"{self}: {facts.title} has no map of its classes; say which class is taken for which with "
                f'map="next" (each for the next one), or with matrix(FILE)'
            )
        if facts.num_classes != num_classes:
            raise ValueError(f"{self}: {facts.title} has {facts.num_classes} classes, not {num_classes}")
        return facts.flips

    def _order(self, num_classes: int, dataset: str | None) -> Sequence[int]:
        if self.values["map"] == "own" and dataset is not None:
            return known(dataset).flip_order or range(num_classes)
        return range(num_classes)
