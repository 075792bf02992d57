"""``cceclust extract``: from images to a feature file."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cceclust.cli.console import advising, print_json, print_warning, results, task_progress
from cceclust.cli.fit import whole_number
from cceclust.cli.options import (
    LARGEST_COUNT,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    examples,
    output_option,
    refuse_missing_images,
)

if TYPE_CHECKING:
    from rich.progress import Progress

    from cceclust.torch.extraction import Extraction

EPILOG = examples(
    "extract photos/ --out photos.h5",
    "extract photos.zip --out photos.h5 --weights IMAGENET1K_V2",
    "fit photos.h5 --k 12",
)
NETWORK_PANEL = "Network"
SPEED_PANEL = "Speed"
SKIPPED_SHOWN = 10


def network_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on the network."""
    return typer.Option(*names, rich_help_panel=NETWORK_PANEL, **settings)


def speed_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on speed."""
    return typer.Option(*names, rich_help_panel=SPEED_PANEL, **settings)


def extract(
    images: ImagesArgument,
    output: Annotated[Path, output_option("--out", "-o", metavar="FILE", help="The feature file (.h5) to write.")],
    backbone: Annotated[Literal["resnet18", "resnet50"], network_option(help="The network.")] = "resnet50",
    weights: Annotated[
        str | None,
        network_option(
            metavar="NAME|FILE",
            help="IMAGENET1K_V1, IMAGENET1K_V2 (resnet50 only), or a .pth or .safetensors file. "
            "[dim]\\[default: IMAGENET1K_V1][/]",
        ),
    ] = None,
    size: Annotated[
        int,
        network_option(
            parser=whole_number(1, LARGEST_COUNT),
            metavar="PIXELS",
            help="Side of the square that the network sees of an image.",
        ),
    ] = 224,
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    device: Annotated[str, speed_option(metavar="NAME", help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    batch_size: Annotated[
        int | None,
        speed_option(
            parser=whole_number(1, LARGEST_COUNT),
            metavar="N",
            help="Images at a time. [dim]\\[default: chosen for the device][/]",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16"], output_option(help="Type of the features; float16 halves the file.")
    ] = "float32",
    restart: Annotated[
        bool, output_option("--restart", help="Start over instead of continuing an earlier run.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn images into features for [bold]fit[/], with a network that is trained already.

    If it is stopped or killed, the same command continues where it stopped, and
    the final file is the same.

    With [bold]torchrun --nproc-per-node N -m cceclust extract[/], N processes
    share the work.
    """
    from cceclust.io.images import open_images

    refuse_missing_images(images)
    from cceclust.torch.extraction import extract_features
    from cceclust.torch.ranks import joined

    with advising("the same command continues where it stopped"), joined() as is_first:
        collection = open_images(images, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
        with task_progress(quiet=quiet or as_json or not is_first, unit="images") as bar:
            extraction = extract_features(
                collection,
                output,
                backbone=backbone,
                weights=weights,
                size=size,
                device=device,
                batch_size=batch_size,
                dtype=dtype,
                restart=restart,
                force=force,
                progress=report_to(bar),
            )
    if not is_first:
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
        how = "; it was complete already (--restart starts over)"
    elif extraction.n_resumed:
        how = f"; continued from image {extraction.n_resumed:,} of {extraction.n_images:,}"
    console.print(f"{extraction.target}: {shape}{how}", markup=False, soft_wrap=True)
    clusters = "auto" if extraction.n_classes is None else extraction.n_classes
    command = f"cceclust fit --k {clusters} {shlex.quote(extraction.target)}"
    console.print(f"Next: {command}", markup=False, soft_wrap=True)
