"""``cceclust export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cceclust.cli.console import results
from cceclust.cli.options import ForceOption, QuietOption, examples

EPILOG = examples("export features.model.safetensors features.onnx")


def export(
    model: Annotated[Path, typer.Argument(help="A model that cceclust fit wrote.", metavar="MODEL")],
    output: Annotated[Path, typer.Argument(help="The .onnx file to write.", metavar="ONNX")],
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a model as an ONNX file, for programs without cceclust.

    It takes rows of features and returns their clusters and probabilities.
    """
    from cceclust.io import read_model, write_onnx
    from cceclust.io.atomic import check_targets

    content = read_model(model)
    check_targets([output], inputs=[model], force=True)
    write_onnx(output, content, force=force)
    if not quiet:
        results().print(f"Wrote {output}", markup=False, soft_wrap=True)
