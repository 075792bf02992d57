"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from cceclust.errors import RankError
from cceclust.progress import showing_progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

# Exit codes after a signal are 128 plus its number, as shells do it.
FIRST_SIGNAL = 129
INTERRUPTED = 130


class Stopped(SystemExit):
    """The end of a command by a signal, with advice on how to continue."""

    def __init__(self, code: int, advice: str) -> None:
        super().__init__(code)
        self.advice = advice


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """If a signal or the end of another process stops the block, have the message say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(INTERRUPTED, advice) from None
    except SystemExit as stop:
        if isinstance(stop.code, int) and stop.code >= FIRST_SIGNAL:
            raise Stopped(stop.code, advice) from None
        raise
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


def print_error(message: str) -> None:
    """Print an error as one red line."""
    messages().print("Error: " + " ".join(message.split()), style="red", markup=False)


def print_misuse(command: str, message: str) -> None:
    """Print how a command was misused as one red line."""
    line = f"{command}: {' '.join(message.split()).rstrip('.')}; {command} --help shows how"
    messages().print(line, style="red", markup=False)


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
    from cceclust.io.provenance import as_plain_value
    from cceclust.text import UNPRINTABLE

    if sys.stdout is None:
        # stdout was closed by the program that started the command.
        return
    text = json.dumps(as_plain_value(data), indent=2, ensure_ascii=False, allow_nan=False)
    # Programs parse the original text back; a terminal only ever sees the escape.
    sys.stdout.write(UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
    # A full disk should be noticed here, not while the interpreter shuts down.
    sys.stdout.flush()


def task_progress(*, quiet: bool = False, unit: str = "") -> AbstractContextManager[Progress]:
    """Show the progress of tasks on stderr."""
    return showing_progress(console=messages(), hidden=quiet, unit=unit)
