"""Decoded images are kept: mapped, made again when their files change, by any number of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unswayed.data import cache
from unswayed.data.cache import cache_folder, cached

IMAGES = np.arange(4 * 3 * 3 * 3, dtype=np.uint8).reshape(4, 3, 3, 3)


class Source:
    """A file, and how often it was decoded."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        path.write_bytes(b"first")

    def decode(self) -> Any:
        self.count += 1
        return IMAGES + len(self.path.read_bytes())

    def read(self, **options: Any) -> torch.Tensor:
        return cached("test", [self.path], self.decode, **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNSWAYED_CACHE", str(tmp_path / "deep" / "cache"))
    cache._tell.cache_clear()
    return tmp_path / "deep" / "cache"


@pytest.fixture
def source(tmp_path: Path, folder: Path) -> Source:
    return Source(tmp_path / "source")


def test_the_second_time_nothing_is_decoded(source: Source, folder: Path) -> None:
    for _ in range(3):
        assert np.array_equal(source.read(), IMAGES + 5)
    assert source.count == 1
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_what_is_changed_in_memory_stays_there(source: Source) -> None:
    source.read()
    mine = source.read()
    mine.zero_()
    assert np.array_equal(source.read(), IMAGES + 5)


@pytest.mark.parametrize("change", ["size", "time"])
def test_changed_files_are_decoded_again_and_the_old_images_go(change: str, source: Source, folder: Path) -> None:
    source.read()
    if change == "size":
        source.path.write_bytes(b"longer")
    else:
        os.utime(source.path, ns=(0, 10**18))
    assert np.array_equal(source.read(), source.decode())
    assert source.count == 3
    assert len(list(folder.iterdir())) == 1


def test_other_files_have_images_of_their_own(source: Source, folder: Path, tmp_path: Path) -> None:
    source.read()
    other = Source(tmp_path / "other")
    other.read()
    source.read()
    assert (source.count, other.count, len(list(folder.iterdir()))) == (1, 1, 2)


def test_a_damaged_cache_is_made_again(source: Source, folder: Path) -> None:
    source.read()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:50], b""):
        path.unlink()
        path.write_bytes(damaged)
        assert np.array_equal(source.read(), IMAGES + 5)
        assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_told_once(source: Source, folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file, where a folder is needed")
    with pytest.warns(UserWarning, match="UNSWAYED_CACHE names another folder"):
        assert np.array_equal(source.read(), IMAGES + 5)
    assert np.array_equal(source.read(), IMAGES + 5)
    assert source.count == 2


def test_the_cache_can_be_left_alone(source: Source, folder: Path) -> None:
    assert np.array_equal(source.read(use=False), IMAGES + 5)
    assert not folder.exists()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSWAYED_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("UNSWAYED_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/unswayed")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "unswayed"


SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np
from unswayed.data.cache import cached

me, folder = sys.argv[1], Path(sys.argv[2])

def decode():
    # Both are at it at the same time, whoever comes first.
    (folder / f"decoding-{me}").touch()
    end = time.monotonic() + 100
    while len(list(folder.glob("decoding-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return np.full((1000, 32, 32, 3), 7, dtype=np.uint8)

print(int(cached("race", [folder / "source"], decode).long().sum()))
"""


def test_two_processes_may_make_it_at_once(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    command = [sys.executable, "-c", SCRIPT]
    both = [
        subprocess.Popen([*command, str(i), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    for process in both:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert int(out) == 7 * 1000 * 3072
        assert not err
    assert len(list(tmp_path.glob("decoding-*"))) == 2
    assert [path.suffix for path in folder.iterdir()] == [".npy"]
