"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from unswayed.data.core import Data, Split
from unswayed.data.known import known


def load(name: str = "digits", root: Path | None = None) -> Data:
    """Read the digits: uint8 images, 0 to 16 spread over 0 to 255.

    Every fifth of the 1,797, sorted by class, is in the test set: 360, as many of each class as in the others.

    >>> load().test.inputs.shape
    torch.Size([360, 1, 8, 8])
    """
    if root is not None:
        raise ValueError(f"digits come with scikit-learn and need no folder; leave {str(root)!r} out")
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError("the digits need scikit-learn: pip install 'unswayed[data]'") from None
    facts = known("digits")
    pixels, labels = load_digits(return_X_y=True)
    images = torch.from_numpy(np.rint(pixels * (255 / 16)).astype(np.uint8)).reshape(-1, *facts.in_shape)
    labels = labels.astype(np.int64)
    by_class = np.argsort(labels, kind="stable")
    test = np.sort(by_class[::5])
    train = np.setdiff1d(by_class, test)
    return Data(
        "digits",
        Split(labels[train], images[train], index=train),
        {"test": Split(labels[test], images[test], index=test)},
        facts.num_classes, facts.in_shape, facts.classes, facts,
        layout="scikit-learn's digits; every fifth of each class is in the test set",
    )  # fmt: skip
