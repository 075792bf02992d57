"""``cceclust deep``: images in, a trained network and clusters out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cceclust.cli.console import advising, print_json, print_warning, task_progress
from cceclust.cli.fit import whole_number
from cceclust.cli.options import (
    LARGEST_COUNT,
    LARGEST_SEED,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    check_above_zero,
    examples,
    output_option,
    refuse_missing_images,
)
from cceclust.cli.summary import print_summary, summarize

if TYPE_CHECKING:
    from rich.progress import Progress

    from cceclust.torch.deep import EpochMetrics

EPILOG = examples(
    "deep photos/ --k 12 --out run",
    "deep photos/ --k 12 --out run --epochs 100 --resume",
    "predict run new-photos/",
)
METHOD_PANEL = "Method"
TRAINING_PANEL = "Training"

# In the order of the paper's tables.
Objective = Literal["cce", "cce-pgd", "imsat", "iic", "sela", "miadm"]
Network = Literal[
    "auto", "vgg4-28", "vgg4-32", "vgg4-96", "vgg4-28-small", "vgg4-32-small", "vgg4-96-small", "resnet18"
]
WITHOUT_FAIRNESS = ("iic", "sela")


def method_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on the method."""
    return typer.Option(*names, rich_help_panel=METHOD_PANEL, **settings)


def training_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on training."""
    return typer.Option(*names, rich_help_panel=TRAINING_PANEL, **settings)


def deep(
    images: ImagesArgument,
    k: Annotated[
        int, method_option("--k", "-k", parser=whole_number(2, LARGEST_COUNT), metavar="N", help="Number of clusters.")
    ],
    output: Annotated[Path, output_option("--out", "-o", help="The run's folder.", metavar="RUN")],
    objective: Annotated[
        Objective,
        method_option(
            metavar="NAME",
            help="[cyan]cce[/] (collision cross-entropy by EM), or to compare: cce-pgd, imsat, iic, sela, miadm.",
        ),
    ] = "cce",
    fairness: Annotated[
        float | None,
        method_option(
            metavar="NUMBER",
            callback=check_above_zero,
            help="Weight of equal cluster sizes. [dim]\\[default: 100; imsat 4, miadm 1][/]",
        ),
    ] = None,
    network: Annotated[
        Network,
        method_option(
            metavar="NAME",
            help="vgg4-28, vgg4-32, vgg4-96, the same with [cyan]-small[/] (an eighth as wide), resnet18, or "
            "[cyan]auto[/]: VGG-4 for the size of the images.",
        ),
    ] = "auto",
    init: Annotated[
        Path | None,
        method_option(
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
    epochs: Annotated[
        int,
        training_option(parser=whole_number(1, LARGEST_COUNT), metavar="N", help="How often each image is seen."),
    ] = 50,
    batch_size: Annotated[
        int, training_option(parser=whole_number(1, LARGEST_COUNT), metavar="N", help="Images in a step, at most.")
    ] = 250,
    learning_rate: Annotated[
        float, training_option(metavar="NUMBER", callback=check_above_zero, help="Learning rate of Adam.")
    ] = 0.001,
    seed: Annotated[
        int,
        training_option(
            parser=whole_number(0, LARGEST_SEED), metavar="N", help="Same seed and machine, same clusters."
        ),
    ] = 0,
    device: Annotated[str, training_option(metavar="NAME", help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    features: Annotated[
        bool, output_option("--features", help="Also write features.h5, the input of the head, for [bold]fit[/].")
    ] = False,
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
            on_step, on_epoch = report_to(bar, epochs)
            clusters, files = cluster_images(
                collection,
                output,
                k,
                settings,
                labels=known,
                device=device,
                features=features,
                resume=resume,
                force=force,
                on_step=on_step,
                on_epoch=on_epoch,
            )
    if not is_first:
        return
    skipped = clusters.diagnostics["skipped"]
    if skipped:
        print_warning(f"{len(skipped):,} of {len(collection):,} images could not be read; the first: {skipped[0]}")
    summary = summarize(clusters, files)
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary)


def report_to(bar: Progress, n_epochs: int) -> tuple[Callable[[int, int], None], Callable[[EpochMetrics], None]]:
    """Return one function that advances the bar by a step and one that shows the metrics of an epoch."""
    task = bar.add_task("Training", total=None, detail="")
    began = False

    def on_step(n_done: int, n_steps: int) -> None:
        nonlocal began
        if not began:
            # Steps of earlier runs must not count towards the speed of this run.
            bar.reset(task, total=n_steps, completed=n_done, detail="")
            began = True
        bar.update(task, completed=n_done)

    def on_epoch(metrics: EpochMetrics) -> None:
        accuracy = "" if metrics.accuracy is None else f", ACC {metrics.accuracy:.3f}"
        bar.update(task, detail=f"epoch {metrics.epoch} of {n_epochs}: loss {metrics.loss:.4f}{accuracy}")

    return on_step, on_epoch
