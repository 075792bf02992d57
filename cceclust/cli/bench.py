"""``cceclust bench …``: the paper's tables and our own measurements, rerun."""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Rerun the paper's tables and figures, and measure this tool, on your data and machine.",
    no_args_is_help=True,
)
