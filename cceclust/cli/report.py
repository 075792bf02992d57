"""``cceclust report``: a clustering as a page to look at."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from cceclust.cli.console import results
from cceclust.cli.options import INPUT_PANEL, OUTPUT_PANEL, ForceOption, FullPathsOption, QuietOption


def report(
    file: Annotated[
        Path,
        typer.Argument(
            help="Clusters (.h5), as cceclust fit writes them, or a run of cceclust deep.", metavar="CLUSTERS"
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--out", "-o", help="The page to write.", metavar="HTML", rich_help_panel=OUTPUT_PANEL),
    ] = Path("report.html"),
    images: Annotated[
        Path | None,
        typer.Option(
            help="Take images from this folder or archive only; by default from the folder of CLUSTERS.",
            rich_help_panel=INPUT_PANEL,
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(help="The features; by default looked for beside CLUSTERS.", rich_help_panel=INPUT_PANEL),
    ] = None,
    full_paths: FullPathsOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a page that shows what a clustering found.

    One HTML file without scripts that needs no network: key figures, loss
    curves, sizes, confidence, a map of the points, the confusion matrix if
    true labels are known, images if the features came from images.
    """
    from cceclust.files import open_features
    from cceclust.report import write_report

    if output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} is no page; expected a name that ends in .html", param_hint="--out")
    with nullcontext() if features is None else open_features(features) as rows:
        write_report(file, output, force=force, features=rows, images=images, full_paths=full_paths)
    if not quiet:
        results().print(f"wrote {output}", markup=False, soft_wrap=True)
