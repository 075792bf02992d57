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
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The page to write; by default beside CLUSTERS: features.report.html for features.clusters.h5.",
            metavar="HTML",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="Take images from this folder, archive or file of an array only; by default from the folder of "
            "CLUSTERS.",
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

    One HTML file that needs no network: key figures, a map of the points by
    their neighbours, typical and doubtful images or rows, sizes, confused
    clusters, the confusion matrix if true labels are known.
    """
    from cceclust.io import read_clusters
    from cceclust.io.reading import refuse_what_is_not_there
    from cceclust.io.run_folders import clusters_of

    if output is None:
        output = file.with_name(f"{file.stem.removesuffix('.clusters')}.report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} is no page; expected a name that ends in .html", param_hint="--out")
    refuse_what_is_not_there(file)
    from cceclust.io.scores import open_again
    from cceclust.report import write_report

    with nullcontext() if features is None else open_again(read_clusters(clusters_of(file)), features) as rows:
        write_report(file, output, force=force, features=rows, images=images, full_paths=full_paths)
    if not quiet:
        results().print(f"wrote {output}", markup=False, soft_wrap=True)
