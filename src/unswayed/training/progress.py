"""How a run shows where it is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO


def percent(value: float | None) -> str:
    """Write a share as a percentage.

    >>> percent(0.8775), percent(None)
    ('87.75 %', '-')
    """
    return "-" if value is None else f"{100 * value:.2f} %"


class Progress:
    """Tells steps and epochs of a run on ``stream`` (standard error); ``quiet`` tells nothing.

    On a terminal, a bar with epoch, loss, test accuracy and the time left; elsewhere a line an epoch, but not more
    often than every ``interval`` seconds, so that a log file stays readable.

    >>> progress = Progress(stream=sys.stdout)
    >>> progress.start("vce on digits", epochs=1, done=0)
    vce on digits: 1 epochs
    >>> progress.epoch({"epoch": 1, "train_loss": 0.5, "test_accuracy": 0.9, "seconds": 2.0}, epochs=1)
    epoch 1/1  loss 0.5  test 90.00 %  2.0 s
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None, interval: float = 5.0) -> None:
        self.quiet, self.stream, self.interval = quiet, stream or sys.stderr, interval
        self._bar: Any = None
        self._task: Any = None
        self._told = self._drawn = -float("inf")

    def start(self, title: str, epochs: int, done: int) -> None:
        """Begin a run of so many epochs, some of them done before."""
        if self.quiet:
            return
        tail = f", going on after epoch {done}" if done else ""
        print(f"{title}: {epochs} epochs{tail}", file=self.stream, flush=True)
        if not self.stream.isatty():
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar
        except ImportError:
            return
        self._bar = Bar(
            BarColumn(bar_width=20), TimeRemainingColumn(), TextColumn("left  {task.description}", markup=False),
            console=Console(file=self.stream), transient=True,
        )  # fmt: skip
        self._bar.start()
        self._task = self._bar.add_task(f"epoch {done + 1}/{epochs}", total=epochs, completed=done)

    def step(self, epoch: int, step: int, steps: int) -> None:
        """Count a step."""
        if self._bar is None:
            return
        now = time.monotonic()
        if now - self._drawn >= 0.1:
            self._drawn = now
            self._bar.update(self._task, completed=epoch + step / steps)

    def epoch(self, record: dict[str, Any], epochs: int) -> None:
        """Tell what was measured after an epoch."""
        facts = f"epoch {record['epoch']}/{epochs}  loss {record['train_loss']:.4g}"
        if "val_accuracy" in record:
            facts += f"  val (noisy) {percent(record['val_accuracy'])}"
        if "test_accuracy" in record:
            facts += f"  test {percent(record['test_accuracy'])}"
        if self._bar is not None:
            self._bar.update(self._task, completed=record["epoch"], description=facts)
        elif not self.quiet:
            now = time.monotonic()
            if now - self._told >= self.interval or record["epoch"] == epochs:
                self._told = now
                print(f"{facts}  {record['seconds']:.1f} s", file=self.stream, flush=True)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
