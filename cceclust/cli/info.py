"""``cceclust info``: what a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cceclust.cli.console import print_json, results
from cceclust.cli.options import DatasetOption, IdOption, JsonOption, KeepOption, LabelsDatasetOption, examples

if TYPE_CHECKING:
    from cceclust.io.description import FileDescription

EPILOG = examples("info features.h5", "info features.clusters.h5 --json")


def info(
    file: Annotated[
        Path, typer.Argument(help="A feature, cluster or model file, or a run of cceclust deep.", metavar="FILE")
    ],
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    names_dataset: IdOption = None,
    keep: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a file holds: shape, type, labels, provenance, and problems."""
    from cceclust.io.description import describe

    description = describe(
        file, dataset=dataset, labels_dataset=labels_dataset, names_dataset=names_dataset, keep=keep or []
    )
    if as_json:
        print_json(description)
    else:
        print_description(description)


def print_description(description: FileDescription) -> None:
    """Print the facts and the provenance, each on a line."""
    from rich.filesize import decimal

    console = results()
    title = f"{description.path}  ({description.kind}, {decimal(description.bytes)})"
    console.print(title, style="bold", markup=False, soft_wrap=True)
    known = {name: value for name, value in description.facts.items() if value is not None}
    width = max(map(len, [*known, *description.provenance]), default=0)
    for name, value in [*known.items(), *description.provenance.items()]:
        console.print(f"{name.replace('_', ' '):<{width}}  {as_text(value)}", markup=False, soft_wrap=True)


def as_text(value: Any) -> str:
    """Format a value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        joined = " × ".join if all(isinstance(item, int) for item in value) else " … ".join
        return joined(as_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={as_text(item)}" for key, item in value.items() if item is not None) or "–"
    return str(value)
