"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["print_error", "print_json", "results", "show_warnings_as_lines", "task_progress"]


def results() -> Console:
    """Return the console for results. What comes from users or files is no markup: wrap it in ``rich.text.Text``."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, emoji=False)


def messages() -> Console:
    """Return the console for progress, warnings and errors."""
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, emoji=False, soft_wrap=True)


def print_error(message: str) -> None:
    """Print an error as one red line."""
    messages().print("Error: " + " ".join(message.split()), style="red", markup=False)


def print_warning(message: str) -> None:
    """Print a warning as one yellow line."""
    messages().print("Warning: " + " ".join(message.split()), style="yellow", markup=False)


@contextmanager
def show_warnings_as_lines() -> Iterator[None]:
    """Turn Python warnings into lines a user can read."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print_warning(str(message))
        yield


def print_json(data: Any) -> None:
    """Print plain values, dataclasses and NumPy values as JSON; NaN and infinity become null."""
    if sys.stdout is None:
        # Closed by whoever started the command.
        return
    sys.stdout.write(json.dumps(as_plain_value(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    # A full disk should be noticed here, not while the interpreter shuts down.
    sys.stdout.flush()


def as_plain_value(value: Any) -> Any:
    """Convert to what the json module writes as standard JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_plain_value(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): as_plain_value(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return as_plain_value(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain_value(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


@contextmanager
def task_progress(*, quiet: bool = False, unit: str = "") -> Iterator[Progress]:
    """Show a progress bar with the time left on stderr, if a person is watching it."""
    from rich import progress

    console = messages()
    columns = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(unit),
        progress.TextColumn("{task.fields[detail]}"),
        progress.TimeRemainingColumn(),
    ]
    hidden = quiet or not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        yield bar
