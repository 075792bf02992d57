"""``cceclust extract``: from images to a feature file."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cceclust.cli.console import advising, print_json, print_warning, results, task_progress
from cceclust.cli.options import (
    INPUT_PANEL,
    OUTPUT_PANEL,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SplitOption,
    refuse_missing_images,
)

if TYPE_CHECKING:
    from rich.progress import Progress

    from cceclust.torch.extraction import Extraction

NETWORK_PANEL = "Network"
SPEED_PANEL = "Speed"
SKIPPED_SHOWN = 10


def extract(
    images: ImagesArgument,
    output: Annotated[
        Path,
        typer.Option("--out", "-o", help="The feature file (.h5) to write.", rich_help_panel=OUTPUT_PANEL),
    ],
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    on_error: Annotated[
        Literal["skip", "fail"],
        typer.Option(help="Leave out images that cannot be read (skip), or stop (fail).", rich_help_panel=INPUT_PANEL),
    ] = "skip",
    backbone: Annotated[
        str,
        typer.Option(
            help="resnet18, resnet50, resnet50-v1 (strides as in Keras), or a .pt2 file saved by torch.export, which "
            "needs --trust.",
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = "resnet50",
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Load a .pt2 file. It is a program and can do on this machine whatever you can do.",
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = False,
    weights: Annotated[
        str | None,
        typer.Option(
            help="IMAGENET1K_V1 (the default), IMAGENET1K_V2 (resnet50), or a .pth or .safetensors file.",
            rich_help_panel=NETWORK_PANEL,
        ),
    ] = None,
    size: Annotated[
        int, typer.Option(min=1, help="Side length of the network's input in pixels.", rich_help_panel=NETWORK_PANEL)
    ] = 224,
    dtype: Annotated[
        Literal["float32", "float16"], typer.Option(help="Type of the features.", rich_help_panel=OUTPUT_PANEL)
    ] = "float32",
    device: Annotated[str, typer.Option(help="auto, cpu, mps, cuda or cuda:N.", rich_help_panel=SPEED_PANEL)] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        typer.Option(
            help="Precision of the network; auto is float32 on the CPU, half precision on a GPU.",
            rich_help_panel=SPEED_PANEL,
        ),
    ] = "auto",
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Images per batch; by default chosen for the device.", rich_help_panel=SPEED_PANEL),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="Decoding processes; by default chosen for the device.", rich_help_panel=SPEED_PANEL),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Start over instead of continuing an earlier run.", rich_help_panel=OUTPUT_PANEL
        ),
    ] = False,
    full_paths: bool = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn images into features with a frozen network, for [bold]fit[/].

    If it is stopped or killed, the same command continues where it stopped; the final file is the same. With
    [bold]torchrun --nproc-per-node N -m cceclust extract[/], N processes share the work.
    """
    from cceclust.io.images import open_images

    refuse_missing_images(images)
    from cceclust.torch.extraction import extract_features, usual_workers
    from cceclust.torch.ranks import joined

    with advising("the same command continues where it stopped"), joined() as ranks:
        collection = open_images(images, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
        with task_progress(quiet=quiet or as_json or not ranks.is_first, unit="images") as bar:
            extraction = extract_features(
                collection,
                output,
                backbone=backbone,
                weights=weights,
                size=size,
                device=device,
                precision=precision,
                batch_size=batch_size,
                workers=usual_workers(device, len(collection), ranks) if workers is None else workers,
                dtype=dtype,
                on_error=on_error,
                restart=restart,
                force=force,
                full_paths=full_paths,
                trust=trust,
                progress=report_to(bar),
                ranks=ranks,
            )
    if not ranks.is_first:
        return
    warn_of_skipped(extraction)
    if as_json:
        print_json(extraction)
    elif not quiet:
        print_extraction(extraction)


def report_to(bar: Progress) -> Callable[[int, int], None]:
    """Return a function that advances the progress bar and shows the speed."""
    task = bar.add_task("Extracting", total=None, detail="")
    began: tuple[float, int] | None = None

    def report(n_done: int, n_images: int) -> None:
        nonlocal began
        now = time.monotonic()
        if began is None:
            # Images of earlier runs must not count towards the speed of this run.
            began = (now, n_done)
            bar.reset(task, total=n_images, completed=n_done, detail="")
        else:
            speed = (n_done - began[1]) / max(now - began[0], 1e-9)
            bar.update(task, completed=n_done, detail=f"{speed:.1f} images/s")

    return report


def warn_of_skipped(extraction: Extraction) -> None:
    """List the images that have no row in the file."""
    n_skipped = len(extraction.skipped)
    if n_skipped:
        print_warning(f"{n_skipped:,} of {extraction.n_images:,} images could not be read and have no row:")
    for reason in extraction.skipped[:SKIPPED_SHOWN]:
        print_warning(reason)
    if n_skipped > SKIPPED_SHOWN:
        print_warning(f"… all of them are in the dataset 'skipped' of {extraction.target}")


def print_extraction(extraction: Extraction) -> None:
    """Print what was done and what to do next."""
    console = results()
    shape = f"{extraction.n_rows:,} × {extraction.n_features:,} {extraction.dtype}"
    how = ""
    if extraction.n_resumed == extraction.n_images:
        how = "; was complete already (--restart would start over)"
    elif extraction.n_resumed:
        how = f"; went on from image {extraction.n_resumed:,} of {extraction.n_images:,}"
    console.print(f"{extraction.target}: {shape}{how}", markup=False, soft_wrap=True)
    clusters = "K" if extraction.n_classes is None else extraction.n_classes
    command = f"cceclust fit --k {clusters} {shlex.quote(extraction.target)}"
    console.print(f"Next: {command}", markup=False, soft_wrap=True)
