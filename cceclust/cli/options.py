"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "INPUT_PANEL",
    "OUTPUT_PANEL",
    "DatasetOption",
    "FeaturesArgument",
    "ForceOption",
    "JsonOption",
    "LabelsDatasetOption",
    "MemoryOption",
    "QuietOption",
]

INPUT_PANEL = "Input"
OUTPUT_PANEL = "Output"

DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Name of the array inside the file, e.g. [cyan]obsm/X_pca[/]; by default 'features' or the only 2-D one.",
        rich_help_panel=INPUT_PANEL,
    ),
]
LabelsDatasetOption = Annotated[
    str | None,
    typer.Option(
        "--labels-dataset",
        help="Name of the true labels inside the file, e.g. [cyan]obs/cell_type[/]; by default 'labels' if there.",
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


MemoryOption = Annotated[
    Any,
    typer.Option(
        "--memory",
        parser=parse_bytes,
        metavar="SIZE",
        help="Stream features that are larger than this, e.g. [cyan]1GB[/]. [default: half of the machine's memory]",
        rich_help_panel=INPUT_PANEL,
    ),
]
FeaturesArgument = Annotated[
    Path,
    typer.Argument(help="Features: .h5, .hdf5, .h5ad, .npy, .npz or .safetensors.", metavar="FEATURES"),
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite files that exist.", rich_help_panel=OUTPUT_PANEL)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT_PANEL)]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress bar and no text, only warnings and errors.", rich_help_panel=OUTPUT_PANEL
    ),
]
