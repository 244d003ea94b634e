"""How a run ends before its time: asked to by a signal, or because its loss is no longer a number."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Diverged(RuntimeError):
    """The training loss, or a weight, is no longer a finite number.

    >>> Diverged("the training loss is nan").exit_code
    1
    """

    exit_code = 1


class Stopped(KeyboardInterrupt):
    """The run was asked to stop; it has finished its step and, if it has a folder, written a checkpoint.

    >>> Stopped(signal.SIGTERM).exit_code
    143
    """

    def __init__(self, number: int, where: str = "") -> None:
        super().__init__(f"stopped{where}")
        self.signal = int(number)

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, as shells have it."""
        return 128 + self.signal


@contextmanager
def asked_to_stop() -> Iterator[list[int]]:
    """Collect the first Ctrl-C or SIGTERM instead of dying from it; the second one works as ever."""
    asked: list[int] = []
    # Python gives signals to the main thread only; elsewhere there is nothing to collect.
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: Any) -> None:
        asked.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
