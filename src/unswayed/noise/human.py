"""Labels that people gave: CIFAR-N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unswayed.data.pickles import read_pickle
from unswayed.noise.drawing import Labels
from unswayed.noise.labels import as_labels
from unswayed.noise.spec import NoiseSpec

# Name here -> name in the published files.
KEYS = {
    "worst": "worse_label",
    "aggregate": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "noisy": "noisy_label",
}


def human_labels(
    spec: NoiseSpec, clean: Labels, num_classes: int, index: Any, human: Mapping[str, Any] | None
) -> Labels:
    """Return the labels that the spec of a ``human`` noise names, for examples whose right labels are ``clean``."""
    which, file = spec.values["which"], spec.values["file"]
    if file is not None:
        return _from_file(which, file, clean, num_classes, index)
    if not human or which not in human:
        brought = f"; this data brings along {', '.join(human)}" if human else ""
        raise ValueError(
            f"{spec} needs the labels that people gave{brought}; name CIFAR-N's file: "
            f"human({which}, file=CIFAR-{num_classes}_human.pt)"
        )
    noisy = as_labels(human[which], num_classes, f"human labels {which!r}")
    if len(noisy) != len(clean):
        raise ValueError(f"human labels {which!r}: there are {len(noisy)} for {len(clean)} examples")
    return noisy


def _from_file(which: str, file: str, clean: Labels, num_classes: int, index: Any) -> Labels:
    content = read_pickle(file)
    if not isinstance(content, dict) or "clean_label" not in content:
        raise ValueError(f"{file!r} is no file of CIFAR-N: it holds no 'clean_label'")
    if KEYS[which] not in content:
        there = [name for name, key in KEYS.items() if key in content]
        raise ValueError(f"{file!r} has no {which!r} labels ({KEYS[which]}); it has: {', '.join(there)}")
    if index is None:
        raise ValueError(
            f"{file!r} lists labels in the published order of the images, and this copy of the data has lost that "
            "order; use the Python pickles, the binary files or the parquet files of the whole data set"
        )
    published, noisy = (
        as_labels(content[key], num_classes, f"{file!r}, {key}") for key in ("clean_label", KEYS[which])
    )
    places = np.asarray(index)
    if len(published) != len(noisy) or places.min() < 0 or places.max() >= len(noisy):
        raise ValueError(
            f"{file!r} has {len(published)} clean and {len(noisy)} {which} labels, and the data reaches up to place "
            f"{places.max()}: it is the file of another data set"
        )
    differ = np.flatnonzero(published[places] != clean)
    if len(differ):
        row = differ[0]
        raise ValueError(
            f"{file!r} is not for this data: {len(differ)} of {len(clean)} clean labels differ, the first at place "
            f"{places[row]} ({published[places[row]]} in the file, {clean[row]} in the data)"
        )
    found: Labels = noisy[places]
    return found
