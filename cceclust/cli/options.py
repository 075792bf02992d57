"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

# Larger numbers are mistakes, and too large for compiled code.
LARGEST_COUNT = 2**31 - 1
# NumPy's RandomState, and therefore scikit-learn, accepts no larger seeds.
LARGEST_SEED = 2**32 - 1

# Options by the panel of the help that they are in.
input_option, method_option, network_option, output_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Input", "Method", "Network", "Output")
)


def whole_number(least: int = 1, most: int = LARGEST_COUNT) -> Any:
    """Return a parser of whole numbers in a range, which the help then need not show."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise typer.BadParameter(f"{text!r}; expected a whole number from {least} to {most:,}")
        return number

    return parse


FeaturesArguments = Annotated[
    list[Path],
    typer.Argument(
        help="Features: .h5, .h5ad, .npy, .npz, .safetensors, .csv, .tsv, .parquet, .arrow or .jsonl. Several files, a "
        "folder or a 'pattern*.h5' are one matrix; - reads a .csv from stdin.",
        metavar="FEATURES",
        show_default=False,
    ),
]
DatasetOption = Annotated[
    str | None,
    input_option(
        "--dataset",
        metavar="NAME",
        help="Array to cluster, such as [cyan]obsm/X_pca[/], or columns, such as [cyan]x,y,z[/]. "
        "[dim]\\[default: features, the only 2-D array, or all columns][/]",
    ),
]
LabelsDatasetOption = Annotated[
    str | None,
    input_option(
        "--labels-dataset",
        metavar="NAME",
        help="Column or array of true labels, such as [cyan]obs/cell_type[/]; only compared with. "
        "[dim]\\[default: labels, label or class, if there][/]",
    ),
]
IdOption = Annotated[
    str | None,
    input_option(
        "--id",
        metavar="NAME",
        help="Column or array of row names. [dim]\\[default: id, name or an index, if there][/]",
    ),
]
KeepOption = Annotated[
    list[str] | None,
    input_option(
        "--keep", metavar="NAME", help="Column or array to copy to the clusters, not used as a feature; repeatable."
    ),
]
FeaturesOption = Annotated[
    Path | None,
    input_option(metavar="FILE", help="The features that were clustered. [dim]\\[default: found beside CLUSTERS][/]"),
]
OutOption = Annotated[
    Path | None,
    output_option(
        "--out",
        "-o",
        metavar="FILE",
        help="Clusters to write: .h5, .csv, .parquet or .npy; - for a .csv on stdout. "
        "[dim]\\[default: a .h5 beside FEATURES][/]",
    ),
]
ForceOption = Annotated[bool, output_option("--force", "-f", help="Overwrite files that exist.")]
JsonOption = Annotated[bool, output_option("--json", help="Print the result as JSON, with all figures.")]
QuietOption = Annotated[bool, output_option("--quiet", "-q", help="Print only warnings and errors.")]
SeedOption = Annotated[
    int,
    method_option(parser=whole_number(0, LARGEST_SEED), metavar="N", help="The same seed gives the same clusters."),
]
ImagesArgument = Annotated[
    Path,
    typer.Argument(
        help="A folder of images (class subfolders become labels), a .zip, or an array of images (.npy, .npz, .h5).",
        metavar="IMAGES",
    ),
]
LimitOption = Annotated[
    int | None, input_option("--limit", parser=whole_number(), metavar="N", help="Read only the first N images.")
]
ImageDatasetOption = Annotated[
    str | None,
    input_option(
        "--dataset",
        metavar="NAME",
        help="Array of images inside a .npz or .h5 file. [dim]\\[default: images, or the only ones][/]",
    ),
]
ImageLabelsOption = Annotated[
    str | None,
    input_option(
        "--labels-dataset",
        metavar="NAME",
        help="Array of labels inside a .npz or .h5 file. [dim]\\[default: labels, if there][/]",
    ),
]
DeviceOption = Annotated[str, network_option("--device", metavar="NAME", help="auto, cpu, mps, cuda or cuda:N.")]


def examples(*commands: str) -> str:
    """Return the end of a help page: commands to copy."""
    return "\n\n".join(["[bold]Examples[/]", *(f"[cyan]$ cceclust {command}[/]" for command in commands)])


def check_output(out: Path | None, *, as_json: bool) -> None:
    """Refuse two results on stdout."""
    if out == Path("-") and as_json:
        raise typer.BadParameter("the clusters go to stdout; give --out a file", param_hint="--json")


def check_name(features: list[Path], out: Path | None) -> None:
    """Refuse features that are there but share no name that results could take."""
    from cceclust.io.features import existing_files, named_after

    existing_files(features)
    if out is None and (Path("-") in features or named_after(features) is None):
        raise typer.BadParameter("such features need a name for the clusters: a file, or -", param_hint="--out")


def refuse_missing_images(images: Path) -> None:
    """Say that there are none before torch is loaded; processes of torchrun find out later which of them says so."""
    from cceclust.io.reading import refuse_what_is_not_there

    if "TORCHELASTIC_RUN_ID" not in os.environ:
        refuse_what_is_not_there(images)
