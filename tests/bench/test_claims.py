"""Who may run a cell: owners, heartbeats, and what is done with those of the dead."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from unswayed.bench import claims
from unswayed.bench.claims import OWNER, Claim, beating, owner

ELSEWHERE = {"token": "x", "host": "another machine", "pid": 1}


def put(folder: Path, record: dict[str, object], age: float = 0.0) -> None:
    folder.mkdir(exist_ok=True)
    (folder / OWNER).write_text(json.dumps(record))
    then = time.time() - age
    os.utime(folder / OWNER, (then, then))


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    first = Claim.take(tmp_path / "run")
    assert first is not None
    assert first.held
    assert Claim.take(tmp_path / "run") is None
    said = owner(tmp_path / "run")
    assert said is not None
    assert said.startswith(f"process {os.getpid()} on ")
    first.release()
    assert owner(tmp_path / "run") is None
    assert list((tmp_path / "run").iterdir()) == []
    assert Claim.take(tmp_path / "run") is not None


def test_of_many_at_once_one_gets_it(tmp_path: Path) -> None:
    for name, age in (("new", None), ("stale", 1e6)):
        if age is not None:
            put(tmp_path / name, ELSEWHERE, age)
        start, taken = threading.Barrier(8), []

        def take(name: str = name, start: threading.Barrier = start, taken: list[Claim] = taken) -> None:
            start.wait()
            claim = Claim.take(tmp_path / name)
            if claim is not None:
                taken.append(claim)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1, name
        assert taken[0].held


@pytest.mark.parametrize("age", [0.0, claims.STALE - 30])
def test_who_shows_a_heartbeat_is_left_alone(tmp_path: Path, age: float) -> None:
    put(tmp_path / "run", ELSEWHERE, age)
    assert Claim.take(tmp_path / "run") is None
    assert "another machine" in str(owner(tmp_path / "run"))


def test_who_has_no_heartbeat_left_is_replaced(tmp_path: Path) -> None:
    put(tmp_path / "run", ELSEWHERE, claims.STALE + 30)
    assert owner(tmp_path / "run") is None
    mine = Claim.take(tmp_path / "run")
    assert mine is not None
    # The old owner wakes up: it neither beats nor releases what is not its own any more.
    old = Claim(tmp_path / "run", "x")
    old.beat()
    old.release()
    assert mine.held


def test_a_process_that_is_gone_is_replaced_at_once(tmp_path: Path) -> None:
    import socket

    put(tmp_path / "run", {"token": "x", "host": socket.gethostname(), "pid": dead_process()})
    assert Claim.take(tmp_path / "run") is not None


def test_who_died_while_taking_over_does_not_hold_it_for_ever(tmp_path: Path) -> None:
    put(tmp_path / "run", ELSEWHERE, claims.STALE + 30)
    half = tmp_path / "run" / ".owner.taking"
    half.write_text("{}")
    assert Claim.take(tmp_path / "run") is None
    os.utime(half, (0, 0))
    assert Claim.take(tmp_path / "run") is None
    assert Claim.take(tmp_path / "run") is not None


def test_heartbeats_go_on_during_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT", 0.02)
    claim = Claim.take(tmp_path / "run")
    assert claim is not None
    os.utime(tmp_path / "run" / OWNER, (0, 0))
    with beating([claim]):
        deadline = time.monotonic() + 10
        while (tmp_path / "run" / OWNER).stat().st_mtime == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert not (tmp_path / "run" / OWNER).exists()


def test_an_error_in_the_work_releases_too(tmp_path: Path) -> None:
    claim = Claim.take(tmp_path / "run")
    assert claim is not None
    with pytest.raises(RuntimeError, match="no"), beating([claim]):
        raise RuntimeError("no")
    assert not claim.held
