"""Progress of long work on stderr: a bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from cceclust.fit.progress import Progress as State

__all__ = ["show_phases", "showing_progress"]

# In a log file nobody watches, so a line now and then is enough.
SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def showing_progress(*, console: Console | None = None, hidden: bool = False, unit: str = "") -> Iterator[Progress]:
    """Show the progress of tasks, counted in some unit, on stderr or another console.

    Tasks have a field ``detail``, a text that is shown beside the numbers.
    """
    from rich import progress
    from rich.console import Console

    class PacedLines(progress.Progress):
        """Prints a line if there was none for some time."""

        next_line = time.monotonic() + SECONDS_BETWEEN_LINES

        def update(self, task_id: TaskID, **changes: Any) -> None:
            super().update(task_id, **changes)
            if time.monotonic() >= self.next_line:
                self.next_line = time.monotonic() + SECONDS_BETWEEN_LINES
                task = next(task for task in self.tasks if task.id == task_id)
                self.console.print(line_of(task, unit), markup=False, soft_wrap=True)

    console = console or Console(file=sys.stderr)
    if not hidden and not console.is_terminal:
        yield PacedLines(console=console, disable=True)
        return
    columns = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(unit),
        progress.TextColumn("{task.fields[detail]}"),
        progress.TimeRemainingColumn(),
    ]
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        yield bar


def show_phases(bar: Progress) -> Callable[[State], None]:
    """Return a function that shows the phases of long work one after the other, each with its own time left."""
    task = bar.add_task("Reading", total=None, detail="")
    phase = ""

    def show(now: State) -> None:
        nonlocal task, phase
        if now.phase != phase:
            phase = now.phase
            bar.remove_task(task)
            task = bar.add_task(phase, total=now.total or None, detail="")
        bar.update(task, completed=now.done, detail=now.detail)

    return show


def line_of(task: Any, unit: str) -> str:
    """Say in one line how far a task is."""
    total = "" if task.total is None else f" of {task.total:,.0f}"
    parts = [f"{task.description}: {task.completed:,.0f}{total} {unit}".rstrip(), task.fields["detail"]]
    if task.time_remaining:
        parts.append(f"about {task.time_remaining:,.0f} s left")
    return ", ".join(part for part in parts if part)
