"""The folder of a run: what is in it, how it is written, and when it is refused."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import unswayed
from unswayed._files import write_json, written_whole
from unswayed.training.experiment import Experiment, differences

FORMAT = 1
_LOCK = ".lock"


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
        self._lock: int | None = None

    def open(self, noise: Mapping[str, Any]) -> None:
        """Make the folder, or check that what is there is this run, on these labels; other processes are kept out."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; give a folder for the run")
        if not self.done:
            self._make()
            self._keep_others_out()
        record, drawn = self._read("experiment.json"), self._read("noise.json")
        if record is None:
            self._write("experiment.json", {"format": FORMAT, "id": self.experiment.id} | self.experiment.settings)
        else:
            self._check(record, drawn, noise)
        if drawn is None:
            self._write("noise.json", dict(noise))

    def close(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"cannot make the folder {self.path}: {error.strerror}") from None
        names = {entry.name for entry in self.path.iterdir()}
        if "experiment.json" not in names and any(not name.startswith(".") for name in names):
            raise ValueError(f"{self.path} is not empty and holds no run; give a new folder, or an empty one")

    def _check(self, record: dict[str, Any], drawn: dict[str, Any] | None, noise: Mapping[str, Any]) -> None:
        form = record.get("format")
        if isinstance(form, int) and form > FORMAT:
            raise ValueError(
                f"{self.path} was written by a newer version of unswayed (format {form}, this one reads {FORMAT}); "
                "update with: pip install --upgrade unswayed"
            )
        there = {key: value for key, value in record.items() if key not in ("format", "id")}
        found = differences(there, _plain(self.experiment.settings))
        if found:
            raise ValueError(f"{self.path} holds another experiment ({'; '.join(found)}); give another folder")
        # Other versions that draw the same labels do no harm.
        old, new = ({k: v for k, v in (each or {}).items() if k != "versions"} for each in (drawn, _plain(noise)))
        if drawn is not None and (found := differences(old, new)):
            raise ValueError(
                f"{self.path} was trained on other labels ({'; '.join(found)}): the data, or the version of what drew "
                "the noise, has changed; give another folder"
            )

    def _keep_others_out(self) -> None:
        """Hold a lock, which the system takes away when this process ends, however it ends; then tidy up."""
        try:
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            if not _locked(self._lock):
                self.close()
                raise ValueError(f"{self.path} is being written by another process; wait for it, or stop it first")
            for part in (*self.path.glob(".*.part"), *self.path.glob("weights/.*.part")):
                part.unlink()  # of a process that was killed while it wrote
        except OSError as error:
            raise _unwritable(self.path, error) from None

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return all((self.path / name).is_file() for name in ("result.json", "experiment.json"))

    def checkpoint(self) -> dict[str, Any] | None:
        """Return the last checkpoint, or ``None`` where there is none."""
        return load_file(self.path / "checkpoint.pt")

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write tensors and plain values, whole or not at all."""
        path = self.path / name
        try:
            path.parent.mkdir(exist_ok=True)
            with written_whole(path) as part:
                torch.save(state, part)
        # torch tells of a full disk by a RuntimeError of its zip writer.
        except (OSError, RuntimeError) as error:
            raise _unwritable(path, error) from None

    def write(
        self, epochs: list[dict[str, Any]], weights: Mapping[str, dict[str, Any]], state: dict[str, Any] | None = None
    ) -> None:
        """Write the weights to be kept, then the checkpoint that speaks of them, then the table of epochs."""
        for name, values in weights.items():
            self.save(f"weights/{name}.pt", values)
        if state is not None:
            self.save("checkpoint.pt", state)
        path = self.path / "epochs.jsonl"
        try:
            with written_whole(path) as part:
                part.write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs), encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error) from None

    def result(self) -> dict[str, Any]:
        """Return what :meth:`finish` wrote."""
        return self._read("result.json") or {}

    def epochs(self) -> list[dict[str, Any]]:
        """Return the records of all epochs."""
        lines = (self.path / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, which marks the run as done, and drop the checkpoint."""
        self._write("result.json", result | {"versions": versions()})
        (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def _write(self, name: str, value: dict[str, Any]) -> None:
        try:
            write_json(self.path / name, value)
        except OSError as error:
            raise _unwritable(self.path / name, error) from None

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


def load_file(path: Path) -> dict[str, Any] | None:
    """Return what :meth:`RunFolder.save` wrote, or ``None`` where there is no such file."""
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} cannot be read ({error}); delete the folder to do this run anew") from None
    return state


def versions() -> dict[str, str]:
    """Return the versions that a result depends on.

    >>> versions()["unswayed"] == unswayed.__version__
    True
    """
    return {
        "unswayed": unswayed.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
    }


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they come back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _locked(handle: int) -> bool:
    """Lock a file for this process; ``False`` where another one has."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        # Unlike flock's, these locks do not live on in worker processes of a run that was killed.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        # A file system that knows no locks.
        return True
    return True


def _unwritable(path: Path, error: Exception) -> OSError:
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return OSError(
        f"cannot write {path}: {reason}; what was written before is intact, and the same command goes on from it"
    )
