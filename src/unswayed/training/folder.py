"""The folder of a run: what is in it, how it is written, and when it is refused."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import torch

import unswayed
from unswayed._files import write_json, written_whole
from unswayed.training.experiment import Experiment, differences

FORMAT = 1


class RunFolder:
    """``experiment.json``, ``noise.json``, ``epochs.jsonl``, ``checkpoint.pt``, ``weights/`` and ``result.json``.

    ``result.json`` is written last: where it is, the run is done. Every file is written whole or not at all.

    >>> from unswayed.training import Experiment
    >>> folder = RunFolder("runs/one", Experiment("digits", "clean", "mlp", "ce"))
    >>> folder.done
    False
    """

    def __init__(self, path: str | Path, experiment: Experiment) -> None:
        self.path, self.experiment = Path(path), experiment

    def open(self) -> None:
        """Make the folder, or check that what is there belongs to this experiment and can be gone on with."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; give a folder for the run")
        record = self._read("experiment.json")
        if record is None:
            if self.path.is_dir() and any(self.path.iterdir()):
                raise ValueError(f"{self.path} is not empty and holds no run; give a new folder, or an empty one")
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OSError(f"cannot make the folder {self.path}: {error.strerror}") from None
            self._write("experiment.json", {"format": FORMAT, "id": self.experiment.id} | self.experiment.settings)
            return
        if record.get("format", 0) > FORMAT:
            raise ValueError(
                f"{self.path} was written by a newer version of unswayed (format {record['format']}, this one reads "
                f"{FORMAT}); update with: pip install --upgrade unswayed"
            )
        there = {key: value for key, value in record.items() if key not in ("format", "id")}
        here = json.loads(json.dumps(self.experiment.settings))
        if there != here:
            raise ValueError(
                f"{self.path} holds another experiment ({'; '.join(differences(there, here))}); give another folder"
            )

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return (self.path / "result.json").is_file()

    def checkpoint(self) -> dict[str, Any] | None:
        """Return the last checkpoint, or ``None`` where there is none."""
        return self.load("checkpoint.pt")

    def load(self, name: str) -> dict[str, Any] | None:
        """Return what :meth:`save` wrote."""
        path = self.path / name
        if not path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise ValueError(f"{path} cannot be read ({error}); delete it to start this run anew") from None
        return state

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write tensors and plain values, whole or not at all."""
        path = self.path / name
        try:
            path.parent.mkdir(exist_ok=True)
            with written_whole(path) as part:
                torch.save(state, part)
        except (OSError, RuntimeError) as error:
            # torch tells a full disk as a RuntimeError of its zip writer.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise OSError(
                f"cannot write {path}: {reason}; the last good checkpoint is intact: the same command goes on from it"
            ) from None

    def result(self) -> dict[str, Any]:
        """Return what :meth:`finish` wrote."""
        return self._read("result.json") or {}

    def epochs(self) -> list[dict[str, Any]]:
        """Return the records of all epochs."""
        lines = (self.path / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def write_epochs(self, epochs: list[dict[str, Any]]) -> None:
        """Write ``epochs.jsonl``, a line an epoch."""
        try:
            with written_whole(self.path / "epochs.jsonl") as part:
                part.write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs), encoding="utf-8")
        except OSError as error:
            raise OSError(f"cannot write {self.path / 'epochs.jsonl'}: {error.strerror}") from None

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, which marks the run as done, and drop the checkpoint."""
        self._write("result.json", result | {"versions": versions()})
        (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def _write(self, name: str, value: dict[str, Any]) -> None:
        try:
            write_json(self.path / name, value)
        except OSError as error:
            raise OSError(f"cannot write {self.path / name}: {error.strerror}") from None

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        if not path.is_file():
            return None
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"{path} cannot be read as JSON; it is no run of unswayed, or it was damaged")
        return value


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "unswayed": unswayed.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
    }
