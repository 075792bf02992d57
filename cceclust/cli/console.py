"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import typer

from cceclust.errors import RankError
from cceclust.progress import showing_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

# As shells do it: 128 plus the number of the signal.
INTERRUPTED = 130
# Messages of Python errors name an option's parameter behind it, or count samples.
PYTHON_WORDS = ((re.compile(r" \([a-z_]+=\w+\)"), ""), (re.compile(r"\bn_samples=(\d+)"), r"\1 rows"))


class Stopped(SystemExit):
    """The end of a command by a signal, with its exit code, and perhaps advice on how to continue."""

    advice = ""


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """If a signal or the end of another process stops the block, have the message say how to continue."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as error:
        stop = error if isinstance(error, Stopped) else Stopped(INTERRUPTED)
        stop.advice = advice
        raise stop from None
    except RankError as error:
        # torchrun now ends all processes, and the message must still come out.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise RankError(f"{error}; {advice}") from None


def results() -> Console:
    """Return the console for results. Wrap text from users or files in ``rich.text.Text``, so that it is not markup."""
    return harmless_console(file=sys.stdout)


def messages() -> Console:
    """Return the console for progress, warnings and errors."""
    return harmless_console(file=sys.stderr, soft_wrap=True)


def harmless_console(**options: Any) -> Console:
    """Return a console that escapes control characters, which could steer the terminal."""
    from rich.console import Console
    from rich.segment import Segment

    from cceclust.text import printable

    class HarmlessConsole(Console):
        def render(self, *arguments: Any, **settings: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **settings):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return HarmlessConsole(highlight=False, emoji=False, **options)


def print_error(message: str, start: str = "Error: ", style: str = "red") -> None:
    """Print an error as one red line, in the words of the command line."""
    for pattern, words in PYTHON_WORDS:
        message = pattern.sub(words, message)
    messages().print(start + " ".join(message.split()), style=style, markup=False)


def print_warning(message: str) -> None:
    """Print a warning as one yellow line."""
    print_error(message, "Warning: ", "yellow")


def warn_of_skipped(skipped: Sequence[str], n_images: int) -> None:
    """Say how many images could not be read, if any, and why the first could not."""
    if skipped:
        print_warning(f"{len(skipped):,} of {n_images:,} images could not be read and are left out: {skipped[0]}")


@contextmanager
def show_warnings_as_lines() -> Iterator[None]:
    """Turn Python warnings into lines a user can read."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print_warning(str(message))
        yield


def print_json(data: Any) -> None:
    """Print plain values, dataclasses and NumPy values as JSON; NaN and infinity become null."""
    from cceclust.io.provenance import as_plain_value
    from cceclust.text import UNPRINTABLE

    text = json.dumps(as_plain_value(data), indent=2, ensure_ascii=False, allow_nan=False)
    # Programs parse the original text back; a terminal only ever sees the escape.
    typer.echo(UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def task_progress(*, quiet: bool = False, unit: str = "") -> AbstractContextManager[Progress]:
    """Show the progress of tasks on stderr."""
    return showing_progress(console=messages(), hidden=quiet, unit=unit)


def counting(bar: Progress, task: str) -> Callable[[int, int], None]:
    """Add a task, and return a function that shows how much of how much is done; the first call is where it starts."""
    number, has_begun = bar.add_task(task, total=None, detail=""), False

    def count(n_done: int, n_in_all: int) -> None:
        nonlocal has_begun
        if not has_begun:
            # What earlier runs did must not count towards the speed of this one.
            bar.reset(number, total=n_in_all, completed=n_done, detail="")
            has_begun = True
        bar.update(number, completed=n_done)

    return count
