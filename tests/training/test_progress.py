"""What a person sees of a run."""

import io

import pytest

from unswayed.training import Progress

RECORD = {"epoch": 2, "train_loss": 0.123456, "val_accuracy": 0.5, "test_accuracy": 0.75, "seconds": 1.26}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(progress: Progress, epochs: int = 3) -> None:
    progress.start("vce on digits", epochs, 1)
    for epoch in range(1, epochs):
        for step in range(1, 5):
            progress.step(epoch, step, 4)
        progress.epoch(RECORD | {"epoch": epoch + 1}, epochs)
    progress.stop()


def test_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    run(Progress(stream=stream, interval=0))
    assert stream.getvalue().splitlines() == [
        "vce on digits: 3 epochs, going on after epoch 1",
        "epoch 2/3  loss 0.1235  val (noisy) 50.00 %  test 75.00 %  1.3 s",
        "epoch 3/3  loss 0.1235  val (noisy) 50.00 %  test 75.00 %  1.3 s",
    ]


def test_quick_epochs_do_not_flood_a_log_but_the_last_is_told() -> None:
    stream = io.StringIO()
    run(Progress(stream=stream, interval=1000), epochs=50)
    lines = stream.getvalue().splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["2/50", "50/50"]


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = Progress(stream=stream)
    run(progress)
    shown = stream.getvalue()
    assert "vce on digits: 3 epochs" in shown
    assert "test 75.00 %" in shown
    assert "━" in shown
    assert "\x1b[" in shown
    progress.stop()  # a second time does no harm


def test_quiet_is_quiet() -> None:
    for stream in (io.StringIO(), Terminal()):
        run(Progress(quiet=True, stream=stream))
        assert stream.getvalue() == ""
