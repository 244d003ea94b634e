"""Who runs a cell: a file in its folder with an owner and a heartbeat, which also holds where locks do not (NFS)."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OWNER = ".owner"
_TAKING = ".owner.taking"
# Seconds between heartbeats, and without one after which an owner is taken for dead.
BEAT, STALE = 15.0, 120.0


class Claim:
    """The right to write a run's folder, until :meth:`release`; ``take`` returns ``None`` if another one has it.

    An owner is dead if its process is gone (on this machine) or its heartbeat has stopped; then its place is taken.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token

    @classmethod
    def take(cls, folder: Path) -> Claim | None:
        """Claim a folder, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        token = uuid.uuid4().hex
        if _created(folder / OWNER, token):
            return cls(folder, token)
        if not _dead(folder):
            return None
        # One takes over, and looks once more: the owner may have changed between the look and now.
        if not _created(folder / _TAKING, token):
            if _age(folder / _TAKING) > STALE:
                (folder / _TAKING).unlink(missing_ok=True)
            return None
        try:
            if not _dead(folder):
                return None
            (folder / _TAKING).replace(folder / OWNER)
            return cls(folder, token)
        finally:
            (folder / _TAKING).unlink(missing_ok=True)

    def beat(self) -> None:
        """Show that the owner lives."""
        if self.held:
            os.utime(self.folder / OWNER)

    @property
    def held(self) -> bool:
        """Whether this is still the owner."""
        return (_read(self.folder / OWNER) or {}).get("token") == self.token

    def release(self) -> None:
        """Let others in."""
        if self.held:
            (self.folder / OWNER).unlink(missing_ok=True)


@contextmanager
def beating(claims: Iterable[Claim]) -> Iterator[None]:
    """Keep claims alive during the block, and release them after it."""
    claims, over = list(claims), threading.Event()

    def beat() -> None:
        while not over.wait(BEAT):
            for claim in claims:
                # What cannot be reached now may be there the next time.
                try:
                    claim.beat()
                except OSError:
                    continue

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for claim in claims:
            claim.release()


def owner(folder: Path) -> str | None:
    """Return who runs in a folder, in words; ``None`` where nobody does.

    >>> owner(Path("no/such/run"))
    """
    found = _read(folder / OWNER)
    if found is None or _dead(folder):
        return None
    return f"process {found.get('pid')} on {found.get('host')}, heartbeat {_age(folder / OWNER):.0f} s ago"


def _created(path: Path, token: str) -> bool:
    """Write an owner file, unless there is one."""
    record = json.dumps({"token": token, "host": socket.gethostname(), "pid": os.getpid()})
    # A link appears whole, and only if there was no such file; on NFS too.
    part = path.with_name(f".{token}.part")
    try:
        part.write_text(record, encoding="utf-8")
        try:
            os.link(part, path)
        except FileExistsError:
            return False
        except OSError:
            # A file system without links.
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(record)
            except FileExistsError:
                return False
        return True
    finally:
        part.unlink(missing_ok=True)


def _dead(folder: Path) -> bool:
    found, age = _read(folder / OWNER), _age(folder / OWNER)
    if found is not None and found.get("host") == socket.gethostname() and not _lives(found.get("pid")):
        return True
    return age > STALE


def _lives(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, TypeError, ValueError):
        return True
    return True


def _age(path: Path) -> float:
    """Return the seconds since a file was touched, by the clock of its file system; 0 where there is none."""
    try:
        touched = path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
    probe = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        probe.touch()
        return max(0.0, probe.stat().st_mtime - touched)
    except OSError:
        return max(0.0, time.time() - touched)
    finally:
        probe.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
