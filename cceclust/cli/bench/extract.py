"""``cceclust.torch.extraction_speed``: extraction beside the bare network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from cceclust.torch.extraction_speed import ExtractionSpeed


def extract(
    images: Annotated[
        Path | None,
        typer.Argument(
            help="Images as for [bold]extract[/]; by default JPEG files like ImageNet's, made up.", metavar="IMAGES"
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=2, help="Number of images.")] = 160,
    backbone: Annotated[
        Literal["resnet18", "resnet50"], typer.Option("--backbone", help="The network, with random weights.")
    ] = "resnet50",
    size: Annotated[int, typer.Option("--size", min=1, help="Side of the network's input in pixels.")] = 224,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="By default chosen for the device.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Decoding processes; by default as for extract.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds in which both run in turns.")] = 3,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare the images per second of extraction with those of the bare network on ready-made tensors."""
    from cceclust.files.images import open_images
    from cceclust.torch.extraction import usual_workers
    from cceclust.torch.extraction_speed import make_photographs, measure_extraction

    with tempfile.TemporaryDirectory() as folder, task_progress(quiet=quiet) as bar:
        task = bar.add_task("measuring", total=2 * rounds, detail="")
        if images is None:
            make_photographs(Path(folder), limit)
        collection = open_images(images or folder, limit=limit)
        speed = measure_extraction(
            collection,
            backbone=backbone,
            size=size,
            device=device,
            batch_size=batch_size,
            workers=usual_workers(device, len(collection)) if workers is None else workers,
            n_rounds=rounds,
            on_run=lambda name: bar.update(task, advance=1, detail=f"{name} done"),
        )
    if as_json:
        print_json(speed)
    elif not quiet:
        print_speed(speed)


def print_speed(speed: ExtractionSpeed) -> None:
    """Print the ratio and what it is made of."""
    console = results()
    console.print(
        f"{speed.backbone}, {speed.n_images:,} images in batches of {speed.batch_size}, {speed.device}, "
        f"{speed.precision}, {speed.workers} workers"
    )
    console.print(f"bare network  {speed.bare_images_per_second:9.1f} images/s")
    console.print(f"extraction    {speed.extraction_images_per_second:9.1f} images/s")
    console.print(f"ratio         {speed.ratio:9.3f}", style="bold")
    console.print(f"until the end of the first batch: {speed.start_up_seconds:.1f} s")
