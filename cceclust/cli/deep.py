"""``cceclust deep``: images in, a trained network and clusters out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cceclust.cli.console import advising, counting, task_progress, warn_of_skipped
from cceclust.cli.options import (
    DeviceOption,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SeedOption,
    examples,
    method_option,
    network_option,
    output_option,
    refuse_missing_images,
    whole_number,
)
from cceclust.cli.summary import show

if TYPE_CHECKING:
    from cceclust.torch.deep import EpochMetrics

EPILOG = examples(
    "deep photos/ --k 12 --out run",
    "deep photos/ --k 12 --out run --epochs 100 --resume",
    "predict run new-photos/",
)
Objective = Literal["cce", "imsat", "iic", "sela", "miadm"]
Network = Literal[
    "auto", "vgg4-28", "vgg4-32", "vgg4-96", "vgg4-28-small", "vgg4-32-small", "vgg4-96-small", "resnet18"
]
WITHOUT_FAIRNESS = ("iic", "sela")


def above_zero(text: str) -> float:
    """Parse a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise typer.BadParameter(f"{text!r}; expected a number above 0")
    return number


def deep(
    images: ImagesArgument,
    k: Annotated[int, method_option("--k", "-k", parser=whole_number(2), metavar="N", help="Number of clusters.")],
    output: Annotated[Path, output_option("--out", "-o", help="The run's folder.", metavar="RUN")],
    objective: Annotated[
        Objective,
        method_option(
            metavar="NAME",
            help="[cyan]cce[/] (collision cross-entropy by EM), or to compare: imsat, iic, sela, miadm.",
        ),
    ] = "cce",
    fairness: Annotated[
        float | None,
        method_option(
            parser=above_zero,
            metavar="NUMBER",
            help="Weight of equal cluster sizes. [dim]\\[default: 100; imsat 4, miadm 1][/]",
        ),
    ] = None,
    network: Annotated[
        Network,
        network_option(
            metavar="NAME",
            help="vgg4-28, vgg4-32, vgg4-96, the same with [cyan]-small[/] (an eighth as wide), resnet18, or "
            "[cyan]auto[/]: VGG-4 for the size of the images.",
        ),
    ] = "auto",
    init: Annotated[
        Path | None,
        network_option(
            metavar="FILE",
            help="Weights to start from: a checkpoint of SCAN, SimCLR or MoCo, or the network of a run. "
            "[dim]\\[default: random][/]",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        method_option(
            metavar="FILE",
            help="Known labels of some images, to learn from: a .csv with the columns row (or path) and label, or a "
            "file with a label for each image (-1 is unknown).",
        ),
    ] = None,
    seed: SeedOption = 0,
    epochs: Annotated[
        int, network_option(parser=whole_number(), metavar="N", help="How often each image is seen.")
    ] = 50,
    batch_size: Annotated[
        int, network_option(parser=whole_number(), metavar="N", help="Images in a step, at most.")
    ] = 250,
    learning_rate: Annotated[
        float, network_option(parser=above_zero, metavar="NUMBER", help="Learning rate of Adam.")
    ] = 0.001,
    device: DeviceOption = "auto",
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    resume: Annotated[bool, output_option("--resume", help="Continue the run in the folder, if there is one.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cluster images while learning their features.

    It needs neither a pretrained network nor labels, though some labels help.

    RUN becomes a folder with the settings, the metrics of every epoch, the
    network and the clusters. If it is stopped or killed, the same command with
    --resume continues and gives the same result.

    With [bold]torchrun --nproc-per-node N -m cceclust deep[/], N processes
    train together.
    """
    from cceclust.io.images import open_images
    from cceclust.io.partial_labels import read_partial_labels

    if fairness is not None and objective in WITHOUT_FAIRNESS:
        raise typer.BadParameter(f"objective {objective} has no such weight", param_hint="--fairness")
    refuse_missing_images(images)
    from cceclust.torch.ranks import joined
    from cceclust.torch.runs import RunSettings, cluster_images

    settings = RunSettings(
        network=network,
        init=None if init is None else str(init),
        objective=objective,
        objective_parameters={} if fairness is None else {"fairness": fairness},
        learning_rate=learning_rate,
        batch_size=batch_size,
        n_epochs=epochs,
        seed=seed,
    )
    with advising("the same command with --resume continues after the last complete epoch"), joined() as is_first:
        collection = open_images(images, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
        known = None if labels is None else read_partial_labels(labels, len(collection), paths=collection.paths)
        with task_progress(quiet=quiet or as_json or not is_first, unit="steps") as bar:
            on_step = counting(bar, "Training")

            def on_epoch(metrics: EpochMetrics) -> None:
                accuracy = "" if metrics.accuracy is None else f", ACC {metrics.accuracy:.3f}"
                detail = f"epoch {metrics.epoch} of {epochs}: loss {metrics.loss:.4f}{accuracy}"
                bar.update(bar.task_ids[0], detail=detail)

            clusters, files = cluster_images(
                collection,
                output,
                k,
                settings,
                labels=known,
                device=device,
                resume=resume,
                force=force,
                on_step=on_step,
                on_epoch=on_epoch,
            )
    if not is_first:
        return
    warn_of_skipped(clusters.diagnostics["skipped"], len(collection))
    show(clusters, files, as_json=as_json, quiet=quiet)
