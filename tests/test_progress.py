import io

import pytest
from rich.console import Console

from cceclust import progress
from cceclust.fit.progress import Progress
from cceclust.progress import show_phases, showing_progress


def work(**settings: object) -> str:
    stream = io.StringIO()
    terminal = bool(settings.pop("terminal", False))
    console = Console(file=stream, force_terminal=terminal, width=200)
    with showing_progress(console=console, unit="rows", **settings) as bar:  # type: ignore[arg-type]
        task = bar.add_task("Reading", total=None, detail="")
        for done in (1000, 2000):
            bar.update(task, completed=done, total=4000, detail="loss 0.5")
    return stream.getvalue()


def test_short_work_is_silent_where_nobody_watches() -> None:
    assert work() == ""


def test_long_work_gets_lines_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    lines = work().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("Reading: 1,000 of 4,000 rows, loss 0.5")


def test_terminals_get_one_bar_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    shown = work(terminal=True)
    assert "\x1b[2K" in shown
    assert "Reading: " not in shown


def test_hidden_work_is_silent_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    assert work(hidden=True) == ""
    assert work(hidden=True, terminal=True) == ""


def test_each_phase_has_its_own_count() -> None:
    with showing_progress(hidden=True) as bar:
        show = show_phases(bar)
        show(Progress("Measuring", 50, 50))
        show(Progress("Choosing"))
        (task,) = bar.tasks
        assert (task.description, task.completed, task.total) == ("Choosing", 0, None)
        show(Progress("Training", 2, 8, "loss 0.5"))
        (task,) = bar.tasks
        assert (task.description, task.completed, task.total) == ("Training", 2, 8)
        assert task.fields["detail"] == "loss 0.5"
