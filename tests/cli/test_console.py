"""Progress on stderr, where it is a terminal and where it is not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cceclust.cli import console
from cceclust.training.progress import Progress


def test_elsewhere_than_in_a_terminal_lines_say_how_far_the_work_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.05)
    with console.task_progress(unit="rows") as bar:
        show = console.show_phases(bar)
        show(Progress("Measuring", 0, 5000))
        time.sleep(0.01)
        show(Progress("Measuring", 1000, 5000))
        time.sleep(0.01)
        show(Progress("Measuring", 1500, 5000, "far rows: [3]"))
        time.sleep(0.2)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) >= 2
    assert lines[0].startswith("Measuring, 1,500 of 5,000 rows, far rows: [3], 0:00:0")
    assert lines[0].endswith(" left")
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("seconds", [0.05, 3600])
def test_short_and_quiet_work_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float
) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", seconds)
    with console.task_progress(quiet=seconds < 1) as bar:
        console.show_phases(bar)(Progress("Measuring", 10, 20))
        time.sleep(0.2)
    assert capsys.readouterr() == ("", "")


def test_a_closed_stderr_does_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.01)
    asked: list[Any] = []

    def fail(*arguments: Any, **_: Any) -> None:
        asked.append(arguments)
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", fail)
    with console.task_progress() as bar:
        console.show_phases(bar)(Progress("Measuring", 10, 20))
        time.sleep(0.2)
    assert len(asked) == 1


def test_each_phase_has_its_own_count() -> None:
    with console.task_progress(quiet=True) as bar:
        show = console.show_phases(bar)
        show(Progress("Measuring", 50, 50))
        show(Progress("Choosing"))
        (task,) = bar.tasks
        assert (task.description, task.completed, task.total) == ("Choosing", 0, None)
        show(Progress("Training", 2, 8, "loss 0.5"))
        (task,) = bar.tasks
        assert (task.description, task.completed, task.total) == ("Training", 2, 8)
        assert task.fields["detail"] == "loss 0.5"
