"""The command line, called in this process."""

import sys
from collections.abc import Callable

import pytest

from unswayed.cli import main


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run ``unswayed`` here, and return what it printed; on an expected failure, what it said on stderr."""

    def call(*args: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["unswayed", *args])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert (end.value.code or 0) == code, said.err
        return said.err if code else said.out

    return call
