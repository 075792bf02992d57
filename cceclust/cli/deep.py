"""``cceclust deep``."""

import typer

from cceclust.cli.options import ImagesArgument

EPILOG = ""


def deep(images: ImagesArgument) -> None:
    """Train a network."""
    raise typer.Exit(1)
