"""``cceclust bench loss-curves``: Figure 1 of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cceclust.cli.console import results
from cceclust.cli.options import OUTPUT_PANEL, ForceOption, QuietOption


def loss_curves(
    output: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The figure: .png, .svg or .pdf.", metavar="FILE", rich_help_panel=OUTPUT_PANEL
        ),
    ] = Path("loss-curves.png"),
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw collision cross-entropy beside Shannon's: Figure 1 of the paper."""
    from cceclust.bench.loss_curves import draw_loss_curves

    draw_loss_curves(output, force=force)
    if not quiet:
        results().print(f"wrote {output}", markup=False, soft_wrap=True)
