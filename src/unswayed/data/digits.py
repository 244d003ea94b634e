"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from unswayed.data.core import Data, Split
from unswayed.data.known import known


def load(name: str = "digits", root: Path | None = None) -> Data:
    """Read the digits: uint8 images, 0 to 16 spread over 0 to 255.

    The last 360 of the 1,797 are the test set. Digits of one writer stand together, so most of its writers are new.

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
    n = facts.train_size
    return Data(
        "digits",
        Split(labels[:n], images[:n], index=np.arange(n)),
        {"test": Split(labels[n:], images[n:], index=np.arange(len(labels) - n))},
        facts.num_classes, facts.in_shape, facts.classes, facts,
        layout="scikit-learn's digits; the last 360 are the test set",
    )  # fmt: skip
