"""The ``cceclust`` command: its subcommands, and the one place that turns errors into lines and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from cceclust.cli import deep, export, extract, fit, info, predict, report, score
from cceclust.cli.console import INTERRUPTED, Stopped, print_error, show_warnings_as_lines
from cceclust.cli.options import examples
from cceclust.errors import CceclustError
from cceclust.version import __version__

FAILURE = 1
MISUSE = 2
# Nobody reads the output any more.
PIPE_CLOSED = 141
SIGNALS = ("SIGTERM", "SIGHUP")
ENDINGS = {INTERRUPTED: "interrupted", 129: "terminal closed", 143: "terminated"}

# Typer comes with a copy of click, or uses the installed one; this is the class of the one in use.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="cceclust",
    epilog=examples("fit features.h5", "report features.clusters.h5"),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"cceclust {__version__}")
        raise typer.Exit


@app.callback()
def start(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Cluster features, such as embeddings of images or texts, and assign new rows to the clusters."""


PANELS = {
    "Clustering": (fit.fit, predict.predict, score.score, report.report, deep.deep),
    "Features": (extract.extract,),
    "Files": (info.info, export.export),
}
for panel, commands in PANELS.items():
    for command in commands:
        epilog = getattr(sys.modules[command.__module__], "EPILOG", None)
        app.command(command.__name__, rich_help_panel=panel, epilog=epilog)(command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (failure), 2 (misuse), or 128 plus the number of a signal."""
    try:
        with show_warnings_as_lines():
            return ended(app(arguments, prog_name="cceclust", standalone_mode=False) or 0)
    except USAGE_ERROR as error:
        # Without any argument the help has been printed, and there is no message.
        if message := error.format_message():
            command = error.ctx.command_path if error.ctx else "cceclust"
            print_error(f"{message.rstrip('.')}; {command} --help shows how", f"{command}: ")
        return MISUSE
    except SystemExit as stop:
        # Typer and rich turn a closed pipe into a plain failure.
        if isinstance(stop.__context__, BrokenPipeError):
            return PIPE_CLOSED
        return ended(stop.code if isinstance(stop.code, int) else FAILURE, getattr(stop, "advice", ""))
    except KeyboardInterrupt:
        return ended(INTERRUPTED)
    except BrokenPipeError:
        return PIPE_CLOSED
    except (CceclustError, OSError, MemoryError) as error:
        print_error(f"not enough memory: {error}" if isinstance(error, MemoryError) else str(error))
        return FAILURE


def ended(code: int, advice: str = "") -> int:
    """Say that a signal ended the command, if one did; return the exit code."""
    if code in ENDINGS:
        print_error(f"{ENDINGS[code]}; no file was left half-written{advice and f', and {advice}'}")
    return code


def main() -> None:
    """Run the command line and exit the process."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show, or a file name that is not valid text, must not cause a failure.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    for name in SIGNALS:
        # A process that was started with nohup continues when its terminal is closed.
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), stop)
    if sys.argv[1:2] not in (["deep"], ["extract"]):
        # Further threads of NumPy's products would only spend CPU time on waiting. It is read when NumPy is loaded.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = run()
    except (SystemExit, OSError):
        # Nobody reads stderr either.
        code = PIPE_CLOSED
    if code == PIPE_CLOSED:
        # Otherwise the interpreter would try to write the rest at exit, and fail with a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def stop(number: int, _: object) -> NoReturn:
    """End by an exception, as for Ctrl-C, so that incomplete files are removed before the process ends."""
    # A second signal must not interrupt the cleanup.
    signal.signal(number, signal.SIG_IGN)
    raise Stopped(128 + number)
