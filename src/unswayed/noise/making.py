"""From a spec and clean labels to noisy ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unswayed.noise.drawing import Draw, flip_exactly, flip_independently
from unswayed.noise.human import human_labels
from unswayed.noise.instance import flip_by_instance
from unswayed.noise.labels import NoisyLabels, as_labels
from unswayed.noise.spec import NoiseSpec
from unswayed.spec import Param

_SEED = Param("seed", 0, "of the draw", kind="integer", low=0, high=2**32 - 1)


def make(
    spec: str | NoiseSpec,
    labels: Any,
    num_classes: int,
    *,
    seed: int = 0,
    features: Any = None,
    dataset: str | None = None,
    index: Any = None,
    human: Mapping[str, Any] | None = None,
) -> NoisyLabels:
    """Make labels wrong.

    Args:
        spec: kind of noise, like ``"symmetric(0.4)"``.
        labels: clean labels, 0 to ``num_classes - 1``: a list, an array or a tensor.
        num_classes: number of classes.
        seed: same spec, seed and labels give the same noisy labels on every machine, with any number of threads.
        features: one row (or image) for each label, for ``instance``.
        dataset: name of the data set, for ``asymmetric``, whose classes have a map there.
        index: place of each example in the published order, for ``human(..., file=...)``.
        human: labels that people gave, by name, where the data has such; for ``human``.

    >>> import numpy as np
    >>> noisy = make("symmetric(0.1)", np.arange(5000) % 100, num_classes=100, seed=1)
    >>> noisy.rate
    0.1
    """
    parsed = NoiseSpec.parse(spec)
    seed = _SEED.check("noise", seed)
    clean, num_classes = as_labels(labels, num_classes), int(num_classes)
    if parsed.kind == "given":
        return NoisyLabels(clean, None, num_classes, parsed, seed)
    if parsed.kind == "asymmetric" and parsed.values["map"] == "own" and dataset is None:
        raise ValueError(
            f"{parsed} flips classes by a map of the data set, and this data has none; say which class is taken for "
            f'which: asymmetric({parsed.values["rate"]:g}, map="next") (each for the next one), or matrix(FILE)'
        )
    if parsed.kind == "human":
        noisy = human_labels(parsed, clean, num_classes, index, human)
    elif parsed.kind == "instance":
        if features is None:
            raise ValueError(f"{parsed} needs the examples in memory: features=, one row or image for each label")
        noisy = flip_by_instance(parsed, clean, num_classes, features, seed)
    else:
        flip = flip_independently if parsed.values.get("sampling") == "bernoulli" else flip_exactly
        noisy, draw = clean, Draw(seed)
        for step in parsed.steps(num_classes, dataset):
            noisy = flip(noisy, step / step.sum(1, keepdims=True), draw)
    return NoisyLabels(noisy, clean, num_classes, parsed, seed)
