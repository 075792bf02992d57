"""``cceclust report``: a clustering as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cceclust.cli.console import results
from cceclust.cli.options import OUTPUT_PANEL, FeaturesOption, ForceOption, QuietOption, examples

EPILOG = examples("report features.clusters.h5", "report run --out run.html")


def report(
    file: Annotated[
        Path,
        typer.Argument(help="Clusters (.h5) of cceclust fit, or a run of cceclust deep.", metavar="CLUSTERS"),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="HTML",
            help="The page to write. [dim]\\[default: CLUSTERS.report.html, beside them][/]",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    features: FeaturesOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a page that shows what a clustering found.

    It is one HTML file that needs no network. It shows the sizes, a map of the
    rows, typical and doubtful rows or images, and how the clusters compare
    with true labels if there are any.
    """
    from cceclust.io import read_clusters
    from cceclust.io.reading import refuse_what_is_not_there
    from cceclust.io.run_folders import clusters_of

    if output is None:
        output = file.with_name(f"{file.stem.removesuffix('.clusters')}.report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} is no page; expected a name that ends in .html", param_hint="--out")
    refuse_what_is_not_there(file)
    path = clusters_of(file)
    clusters = read_clusters(path)
    from cceclust.io.clustered import clustered_features
    from cceclust.report import write_report

    with clustered_features(clusters, path, features) as rows:
        write_report(file, output, force=force, features=rows)
    if not quiet:
        results().print(f"Wrote {output}", markup=False, soft_wrap=True)
