"""Runs that were never trained, for tests of what is reported of them."""

from collections.abc import Sequence
from typing import Any

from unswayed.report import Run


def made(
    loss: str = "ce",
    seed: int = 0,
    accuracy: Sequence[float] = (0.5, 0.7, 0.6),
    memorised: Sequence[float] | None = (0.0, 0.1, 0.2),
    **settings: Any,
) -> Run:
    """Return a run with these accuracies and memorised shares, an epoch each; ``settings`` change the experiment."""
    experiment = {
        "data": "digits", "noise": "symmetric(0.4)", "model": "mlp", "loss": loss, "seed": seed, "noise_seed": seed,
        "validation": 0.0, "recipe": {"epochs": len(accuracy), "lr": 0.1},
    } | settings  # fmt: skip
    epochs = [
        {"epoch": i + 1, "test_accuracy": value, "test_ece": (1 - value) / 2}
        | ({} if memorised is None else {"memorised": memorised[i]})
        for i, value in enumerate(accuracy)
    ]
    off = 0.4 / 9
    record = {
        "experiment": experiment,
        "noise": {
            "spec": experiment["noise"], "seed": seed, "examples": 100, "num_classes": 10, "rate": 0.4,
            "matrix": [[0.6 if i == j else off for j in range(10)] for i in range(10)], "sha256": {"labels": "a" * 64},
        },
        "epochs": len(epochs), "last": epochs[-1], "best": max(epochs, key=lambda epoch: epoch["test_accuracy"]),
        "chosen": None,
        "calibration": {"bins": [[0, 0.0, 0.0]] * 13 + [[10, 0.9, 0.5], [30, 0.99, 0.8]]},
        "versions": {"unswayed": "0", "torch": "2"}, "device": "cpu", "precision": "fp32",
    }  # fmt: skip
    return Run(record, epochs)
