"""``cceclust extract``: from images to a feature file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cceclust.cli.console import advising, counting, print_json, results, task_progress, warn_of_skipped
from cceclust.cli.options import (
    DeviceOption,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    examples,
    network_option,
    output_option,
    refuse_missing_images,
    whole_number,
)

if TYPE_CHECKING:
    from cceclust.torch.extraction import Extraction

EPILOG = examples("extract photos/ --out photos.h5", "fit photos.h5 --k 12")


def extract(
    images: ImagesArgument,
    output: Annotated[Path, output_option("--out", "-o", metavar="FILE", help="The feature file (.h5) to write.")],
    backbone: Annotated[Literal["resnet18", "resnet50"], network_option(help="The network to use.")] = "resnet50",
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
            parser=whole_number(), metavar="PIXELS", help="Side of the square that the network sees of an image."
        ),
    ] = 224,
    batch_size: Annotated[
        int | None,
        network_option(
            parser=whole_number(), metavar="N", help="Images at a time. [dim]\\[default: chosen for the device][/]"
        ),
    ] = None,
    device: DeviceOption = "auto",
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
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
                progress=counting(bar, "Extracting"),
            )
    if not is_first:
        return
    warn_of_skipped(extraction.skipped, extraction.n_images)
    if as_json:
        print_json(extraction)
    elif not quiet:
        print_extraction(extraction)


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
