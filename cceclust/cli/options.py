"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

INPUT_PANEL = "Input"
OUTPUT_PANEL = "Output"
# Larger numbers are mistakes, and too large for compiled code.
LARGEST_COUNT = 2**31 - 1
# NumPy's RandomState, and therefore scikit-learn, accepts no larger seeds.
LARGEST_SEED = 2**32 - 1


def input_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on input."""
    return typer.Option(*names, rich_help_panel=INPUT_PANEL, **settings)


def output_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on output."""
    return typer.Option(*names, rich_help_panel=OUTPUT_PANEL, **settings)


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
ImagesArgument = Annotated[
    Path,
    typer.Argument(
        help="A folder of images (class subfolders become labels), a .zip, or an array of images (.npy, .npz, .h5).",
        metavar="IMAGES",
    ),
]
LimitOption = Annotated[int | None, input_option("--limit", min=1, help="Read only the first so many images.")]
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


def examples(*commands: str) -> str:
    """Return the end of a help page: commands to copy."""
    return "\n\n".join(["[bold]Examples[/]", *(f"[cyan]$ cceclust {command}[/]" for command in commands)])


def check_above_zero(value: Any) -> Any:
    """Refuse numbers that are not finite and above 0; words such as "auto", and None, are accepted."""
    if isinstance(value, int | float) and not 0 < value < math.inf:
        raise typer.BadParameter(f"{value:g}; expected a number above 0")
    return value


def check_output(features: list[Path], out: Path | None, *, as_json: bool) -> None:
    """Refuse output that has no place to go."""
    if out == Path("-") and as_json:
        raise typer.BadParameter("the clusters go to stdout; give --out a file", param_hint="--json")
    if Path("-") in features and out is None:
        raise typer.BadParameter("features from stdin need a name for the clusters: a file, or -", param_hint="--out")


def check_name(features: list[Path], out: Path | None) -> None:
    """Refuse features that are there but share no name that results could take."""
    from cceclust.io.features import existing_files, named_after

    existing_files(features)
    if out is None and named_after(features) is None:
        raise typer.BadParameter("several files need a name for the results; give a file", param_hint="--out")


def refuse_missing_images(images: Path) -> None:
    """Say that there are none before torch is loaded.

    Of several processes that torchrun started only one should say so, which they find out later, together.
    """
    from cceclust.io.reading import refuse_what_is_not_there

    if "TORCHELASTIC_RUN_ID" not in os.environ:
        refuse_what_is_not_there(images)
