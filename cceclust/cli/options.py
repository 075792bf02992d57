"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = [
    "INPUT_PANEL",
    "LARGEST_COUNT",
    "LARGEST_FIRST_SEED",
    "LARGEST_SEED",
    "OUTPUT_PANEL",
    "DatasetOption",
    "FeaturesArgument",
    "FeaturesArguments",
    "ForceOption",
    "FullPathsOption",
    "IdOption",
    "ImageDatasetOption",
    "ImageLabelsOption",
    "ImagesArgument",
    "JsonOption",
    "KeepOption",
    "LabelsDatasetOption",
    "LimitOption",
    "MemoryOption",
    "QuietOption",
    "SplitOption",
    "WriteObsOption",
    "check_above_zero",
    "check_not_negative",
    "check_output",
]

INPUT_PANEL = "Input"
OUTPUT_PANEL = "Output"
# Larger numbers are mistakes, and too large for compiled code.
LARGEST_COUNT = 2**31 - 1
# NumPy's RandomState, and therefore scikit-learn, accepts no larger seeds.
LARGEST_SEED = 2**32 - 1
# Trials use the seeds after the first one; half of the range is reserved for them.
LARGEST_FIRST_SEED = 2**31 - 1

DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Name of the array inside the file, e.g. [cyan]obsm/X_pca[/], or of columns, e.g. [cyan]x,y,z[/]; by "
        "default 'features', the only 2-D one, or all columns.",
        rich_help_panel=INPUT_PANEL,
    ),
]
LabelsDatasetOption = Annotated[
    str | None,
    typer.Option(
        "--labels-dataset",
        help="Name of the true labels inside the file, e.g. [cyan]obs/cell_type[/]; by default 'labels' if there, in "
        "tables also 'label' or 'class'.",
        rich_help_panel=INPUT_PANEL,
    ),
]
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_bytes(text: str) -> int:
    """Turn "1.5GB" into a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)B?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise typer.BadParameter(f"{text!r}; expected a size such as 500MB or 1.5GB")
    return int(float(match[1]) * UNITS[match[2].upper()])


def check_above_zero(value: Any) -> Any:
    """Refuse numbers that are not finite and above 0; words such as "auto", and None, are accepted."""
    if isinstance(value, int | float) and not 0 < value < math.inf:
        raise typer.BadParameter(f"{value:g}; expected a number above 0")
    return value


def check_not_negative(value: Any) -> Any:
    """Refuse numbers that are not finite and at least 0; words such as "auto", and None, are accepted."""
    if isinstance(value, int | float) and not 0 <= value < math.inf:
        raise typer.BadParameter(f"{value:g}; expected a number of at least 0")
    return value


def check_output(features: list[Path], out: Path | None, *, as_json: bool) -> None:
    """Refuse output that has no place to go."""
    if Path("-") in features and out is None:
        raise typer.BadParameter("features from stdin need a name for the clusters: a file, or -", param_hint="--out")
    if out == Path("-") and as_json:
        raise typer.BadParameter("the clusters go to stdout; give --out a file", param_hint="--json")


MemoryOption = Annotated[
    Any,
    typer.Option(
        "--memory",
        parser=parse_bytes,
        metavar="SIZE",
        help="Read features larger than this in parts, e.g. [cyan]1GB[/]. By default: half of the machine's memory.",
        rich_help_panel=INPUT_PANEL,
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="NAME",
        help="Column or dataset of row names. [dim]\\[default: id, name, an index, if there][/]",
        rich_help_panel=INPUT_PANEL,
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="NAME",
        help="Column or dataset to copy to the clusters; no feature. May be repeated.",
        rich_help_panel=INPUT_PANEL,
    ),
]
WriteObsOption = Annotated[
    bool,
    typer.Option(
        "--write-obs",
        help="Also write obs/cce and obs/cce_confidence into the .h5ad file itself.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
FeaturesArgument = Annotated[
    Path,
    typer.Argument(help="Features: .h5, .hdf5, .h5ad, .npy, .npz or .safetensors.", metavar="FEATURES"),
]
FeaturesArguments = Annotated[
    list[Path],
    typer.Argument(
        help="Features: .h5, .h5ad, .npy, .npz, .safetensors, .csv, .tsv, .parquet, .arrow or .feather; several files, "
        "a folder or a 'pattern*.h5' are one matrix; - reads a .csv from stdin.",
        metavar="FEATURES",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite files that exist.", rich_help_panel=OUTPUT_PANEL)
]
FullPathsOption = Annotated[
    bool,
    typer.Option(
        "--full-paths", help="Keep absolute paths of this machine, not only file names.", rich_help_panel=OUTPUT_PANEL
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT_PANEL)]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress bar and no text, only warnings and errors.", rich_help_panel=OUTPUT_PANEL
    ),
]
ImagesArgument = Annotated[
    Path,
    typer.Argument(
        help="A folder of images (class subfolders become labels), a .txt list of paths, a .zip or .tar, an array "
        "of images (.npy, .npz, .h5), idx files, batches of CIFAR-10/100 or STL-10.",
        metavar="IMAGES",
    ),
]
SplitOption = Annotated[
    Literal["train", "test", "unlabeled"] | None,
    typer.Option(
        "--split",
        help="Which batches of a data set's folder to read; by default all labelled ones.",
        rich_help_panel=INPUT_PANEL,
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Read only this many images, from the first.", rich_help_panel=INPUT_PANEL),
]
ImageDatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Name of the images inside a .npz or .h5 file; by default 'images' or the only ones.",
        rich_help_panel=INPUT_PANEL,
    ),
]
ImageLabelsOption = Annotated[
    str | None,
    typer.Option(
        "--labels-dataset",
        help="Name of the labels inside a .npz or .h5 file, by default 'labels' if there; for CIFAR-100 "
        "[cyan]fine_labels[/] or, by default, [cyan]coarse_labels[/].",
        rich_help_panel=INPUT_PANEL,
    ),
]


def refuse_missing_images(images: Path) -> None:
    """Say that there are none before torch is loaded.

    Of several processes that torchrun started only one should say so, which they find out later, together.
    """
    from cceclust.io.reading import refuse_what_is_not_there

    if "TORCHELASTIC_RUN_ID" not in os.environ:
        refuse_what_is_not_there(images)
