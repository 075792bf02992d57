"""The ``cceclust`` command: its subcommands, and the one place that turns errors into lines and exit codes."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cceclust.cli import bench, deep, extract, fit, info, neighbors, predict, report, score
from cceclust.cli.console import print_error, show_warnings_as_lines
from cceclust.errors import CceclustError
from cceclust.version import __version__

__all__ = ["app", "main", "run"]

FAILURE = 1
INTERRUPTED = 130
TERMINATED = 143

app = typer.Typer(
    name="cceclust",
    help="Cluster precomputed features with collision cross-entropy.",
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
    """Cluster precomputed features with collision cross-entropy."""


app.command("fit", rich_help_panel="Clustering")(fit.fit)
app.command("neighbors", rich_help_panel="Features")(neighbors.neighbors)
app.command("predict", rich_help_panel="Clustering")(predict.predict)
app.command("score", rich_help_panel="Clustering")(score.score)
app.command("report", rich_help_panel="Clustering")(report.report)
app.command("deep", rich_help_panel="Clustering", epilog=deep.EPILOG)(deep.deep)
app.command("extract", rich_help_panel="Features")(extract.extract)
app.command("info", rich_help_panel="Files")(info.info)
app.add_typer(bench.app, name="bench", rich_help_panel="Research")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (failure), 2 (misuse), 130 (Ctrl-C) or 143 (terminated)."""
    try:
        with show_warnings_as_lines():
            app(arguments, prog_name="cceclust")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else FAILURE
        if code in (INTERRUPTED, TERMINATED):
            verb = "interrupted" if code == INTERRUPTED else "terminated"
            print_error(f"{verb}; no file was left half-written")
        return code
    except (CceclustError, OSError) as error:
        print_error(str(error))
        return FAILURE
    except MemoryError as error:
        print_error(f"not enough memory: {error}")
        return FAILURE
    return 0


def main() -> None:
    """Run the command line and leave the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character, or a file name that is not text, is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    # As for Ctrl-C, files that are not whole are removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    sys.exit(run())
