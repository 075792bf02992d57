"""Shared code for the figures of the benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cceclust.errors import InputError, MissingExtraError
from cceclust.files.atomic import refuse_to_overwrite, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_figure_target", "new_figure", "save_figure"]

FORMATS = (".png", ".svg", ".pdf")


def check_figure_target(path: str | Path, *, force: bool) -> None:
    """Raise unless a figure can be drawn and written there; call this before long work."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"a figure is one of {', '.join(FORMATS)}; got {path.name!r}")
    refuse_to_overwrite(path, force=force)
    new_figure()


def new_figure() -> tuple[Figure, Axes]:
    """Return an empty figure with one pair of axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError.of("drawing", "matplotlib", "report") from error
    figure = Figure(figsize=(6, 4), layout="constrained")
    return figure, figure.subplots()


def save_figure(figure: Figure, path: str | Path, *, force: bool) -> None:
    """Write a figure in the format that its file name asks for."""
    with replacing(Path(path), force=force) as part:
        figure.savefig(part, format=Path(path).suffix[1:].lower(), dpi=150)
