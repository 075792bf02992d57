"""``cceclust report``: a clustering as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cceclust.cli.console import results
from cceclust.cli.options import FeaturesOption, ForceOption, QuietOption, examples, input_option, output_option

EPILOG = examples("report features.clusters.h5", "report run --out run.html")


def report(
    file: Annotated[
        Path,
        typer.Argument(help="Clusters (.h5) of cceclust fit, or a run of cceclust deep.", metavar="CLUSTERS"),
    ],
    output: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="HTML", help="Page to write. [dim]\\[default: beside CLUSTERS][/]"),
    ] = None,
    features: FeaturesOption = None,
    images: Annotated[
        Path | None,
        input_option(metavar="PATH", help="Folder, archive or array of images. [dim]\\[default: beside CLUSTERS][/]"),
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a page that shows what a clustering found.

    It is one HTML file that needs no network. It shows the sizes, a map of the
    rows, typical and doubtful rows or images, and how the clusters compare
    with true labels if there are any.
    """
    from cceclust.io.reading import refuse_what_is_not_there
    from cceclust.io.run_folders import clusters_of

    if output is None:
        output = file.with_name(f"{file.stem.removesuffix('.clusters')}.report.html")
    if output.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{output} is no page; expected a name that ends in .html", param_hint="--out")
    refuse_what_is_not_there(file)
    clusters = clusters_of(file)
    from cceclust.report import write_report

    write_report(clusters, output, force=force, features=features, images=images)
    if not quiet:
        results().print(f"Wrote {output}", markup=False, soft_wrap=True)
