"""Kinds of label noise by name: ``"symmetric(0.8)"``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from unswayed.noise.matrix import Matrix, transition_matrix
from unswayed.spec import REQUIRED, Param, Reader, did_you_mean, write

GRAMMAR = 'a noise spec is symmetric(0.8), asymmetric(0.4) or matrix("T.csv")'
_RATE = Param("rate", REQUIRED, "share of the labels that are wrong", low=0, high=1)
_KINDS = {
    "symmetric": (_RATE, "a wrong label is any other class, with equal chances"),
    "asymmetric": (_RATE, "a wrong label is one certain other class"),
    "matrix": (Param("file", REQUIRED, "T[i][j] = probability of label j for true class i", kind="matrix"), "any T"),
}


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise with its parameter: ``symmetric(rate)``, ``asymmetric(rate)`` or ``matrix(file)``.

    >>> NoiseSpec.parse("symmetric(0.8)").transition(5)[0]
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """

    kind: str
    value: Any

    @classmethod
    def parse(cls, spec: str | NoiseSpec) -> NoiseSpec:
        """Read a spec; a file name in ``matrix(...)`` may stand without quotes."""
        if isinstance(spec, NoiseSpec):
            return spec
        if isinstance(spec, str):
            spec = re.sub(r"\bmatrix\(\s*(?:file\s*=\s*)?([^\"'()\s][^\"'()]*?)\s*\)", r'matrix("\1")', spec)
        reader = Reader(spec, GRAMMAR)
        call = reader.call(reader.tree)
        if call is None:
            raise reader.fail(reader.tree, "a kind of noise is expected here", GRAMMAR)
        name, args, keywords = call
        if name.lower() not in _KINDS:
            raise reader.fail(reader.tree, f"unknown noise {name!r}{did_you_mean(name, _KINDS)}", GRAMMAR)
        name = name.lower()
        param = _KINDS[name][0]
        bound = reader.bind(reader.tree, name, [param.name], args, keywords)
        if param.name not in bound:
            raise reader.fail(reader.tree, f"{name} needs {param.name}", f"{param.name}: {param.meaning}")
        try:
            return cls(name, param.check(name, reader.value(bound[param.name])))
        except ValueError as error:
            raise reader.fail(bound[param.name], str(error)) from None

    def __str__(self) -> str:
        return f"{self.kind}({write(self.value, _KINDS[self.kind][0].kind)})"

    def transition(self, num_classes: int | None = None) -> Matrix:
        """Return ``T[i][j]``, the probability that an example of true class ``i`` is labelled ``j``.

        ``asymmetric`` takes the next class as the wrong one, the last class the first.
        """
        if self.kind == "matrix":
            matrix = transition_matrix(self.value)
            if num_classes not in (None, len(matrix)):
                raise ValueError(f"{self} has {len(matrix)} classes, but {num_classes} were asked for")
            return matrix
        if num_classes is None or num_classes < 2:
            raise ValueError(f"{self} needs to know the number of classes (--classes K, num_classes=K), 2 or more")
        rate, eye = self.value, np.eye(num_classes)
        wrong = (1 - eye) / (num_classes - 1) if self.kind == "symmetric" else np.roll(eye, 1, axis=1)
        return np.asarray((1 - rate) * eye + rate * wrong, dtype=np.float64)
