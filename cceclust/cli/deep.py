"""``cceclust deep``: images in, a trained network and clusters out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cceclust.cli.console import print_json, print_warning, results, task_progress
from cceclust.cli.options import (
    LARGEST_SEED,
    OUTPUT_PANEL,
    ForceOption,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SplitOption,
    check_above_zero,
)
from cceclust.cli.summary import print_summary, summarize
from cceclust.presets import PRESETS

if TYPE_CHECKING:
    from rich.progress import Progress

    from cceclust.torch.deep import EpochMetrics

METHOD_PANEL = "Method"
TRAINING_PANEL = "Training"

ObjectiveName = Literal["cce", "cce-pgd", "imsat", "iic", "sela", "miadm"]
NetworkName = Literal["auto", "vgg4-28", "vgg4-32", "vgg4-96", "resnet18"]
PresetName = Literal[
    "mnist", "cifar10", "cifar100-20", "stl10", "cifar10-resnet18", "cifar100-20-resnet18", "stl10-resnet18"
]


def method_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on the method."""
    return typer.Option(*names, rich_help_panel=METHOD_PANEL, **settings)


def training_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on training."""
    return typer.Option(*names, rich_help_panel=TRAINING_PANEL, **settings)


def output_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on output."""
    return typer.Option(*names, rich_help_panel=OUTPUT_PANEL, **settings)


def describe_presets() -> str:
    """List the presets for the help text."""
    return "\n\n".join(
        f"[cyan]{name}[/]: {preset.network}, learning rate {preset.learning_rate:g}, of the head "
        f"{preset.head_learning_rate:g}, weight decay {preset.weight_decay:g}, batches of {preset.batch_size}, "
        f"{preset.n_epochs} epochs, fairness {preset.fairness:g}, augmentation weight {preset.augmentation_weight:g}"
        for name, preset in PRESETS.items()
    )


OBJECTIVES_HELP = (
    "[cyan]cce[/] (collision cross-entropy by EM), or one to compare with: [cyan]cce-pgd[/], [cyan]imsat[/], "
    "[cyan]iic[/], [cyan]sela[/], [cyan]miadm[/]."
)
EPILOG = "[bold]Presets[/]: the paper's settings, for Adam. Options override them.\n\n" + describe_presets()


def deep(
    images: ImagesArgument,
    k: Annotated[int, method_option("--k", "-k", min=2, help="Number of clusters.")],
    output: Annotated[Path, output_option("--out", "-o", help="The run's folder.", metavar="RUN")],
    objective: Annotated[ObjectiveName, method_option(help=OBJECTIVES_HELP)] = "cce",
    preset: Annotated[PresetName | None, method_option(help="Settings of the paper; they are listed below.")] = None,
    network: Annotated[
        NetworkName | None, method_option(help="By default VGG-4 in the form for the images' size.")
    ] = None,
    init: Annotated[
        Path | None,
        method_option(help="Weights of the backbone: SCAN's pretext checkpoint, or the model of an earlier run."),
    ] = None,
    fairness: Annotated[
        float | None, method_option(min=0, help="How much the clusters are held to equal sizes.")
    ] = None,
    augmentation: Annotated[
        Literal["digits", "photos"] | None,
        method_option(help="Views that move and slant, or crop, mirror and recolour; by default as the network."),
    ] = None,
    augmentation_weight: Annotated[
        float | None, method_option(min=0, help="Weight of the loss of the augmented views.")
    ] = None,
    solver_iterations: Annotated[
        int | None, method_option(min=1, help="Iterations of the pseudo-label solver a batch.")
    ] = None,
    epochs: Annotated[int | None, training_option(min=1, help="How often an image is seen; 50 by default.")] = None,
    batch_size: Annotated[int | None, training_option(min=1, help="Images a step at most; 250 by default.")] = None,
    learning_rate: Annotated[
        float | None, training_option(callback=check_above_zero, help="Adam's; 0.001 by default.")
    ] = None,
    head_learning_rate: Annotated[
        float | None, training_option(callback=check_above_zero, help="That of the head; by default the same.")
    ] = None,
    weight_decay: Annotated[float | None, training_option(min=0, help="Adam's L2 term; 0.01 by default.")] = None,
    seed: Annotated[int, training_option(min=0, max=LARGEST_SEED, help="Same seed and machine, same clusters.")] = 0,
    device: Annotated[str, training_option(help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    labels: Annotated[
        Path | None,
        method_option(
            help="Labels of some images: a .csv of [cyan]row[/] or [cyan]path[/] and [cyan]label[/], or a file of one "
            "label an image with -1 for unknown.",
            metavar="FILE",
        ),
    ] = None,
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    features: Annotated[
        bool, output_option("--features", help="Also write features.h5, what the head sees, for [bold]fit[/].")
    ] = False,
    resume: Annotated[
        bool, output_option("--resume", help="Go on with the run in the folder, if there is one.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cluster images while learning the features: no pretrained network needed, and no labels, though some help.

    RUN becomes a folder with the settings, the metrics of every epoch, the network and the clusters. Stopped or
    killed, the same command with --resume goes on to the same result.
    """
    from cceclust.files.images import open_images
    from cceclust.files.partial_labels import read_partial_labels
    from cceclust.torch.runs import RunSettings, cluster_images

    settings = RunSettings(objective=objective) if preset is None else RunSettings.from_preset(preset, objective)
    parameters = {"fairness": fairness, "augmentation_weight": augmentation_weight, "n_iterations": solver_iterations}
    chosen = {
        "network": network,
        "init": None if init is None else str(init),
        "augmentation": augmentation,
        "n_epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "head_learning_rate": head_learning_rate,
        "weight_decay": weight_decay,
        "objective_parameters": settings.objective_parameters | check_parameters(objective, given(parameters)),
    }
    settings = replace(settings, seed=seed, **given(chosen))
    collection = open_images(images, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
    known = None if labels is None else read_partial_labels(labels, len(collection), paths=collection.paths)
    with task_progress(quiet=quiet or as_json, unit="steps") as bar:
        on_step, on_epoch = report_to(bar, settings.n_epochs)
        run = cluster_images(
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
    if run.skipped:
        print_warning(
            f"{len(run.skipped):,} of {len(collection):,} images could not be read; the first: {run.skipped[0]}"
        )
    summary = summarize(run.clusters, run.files)
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary)
        if run.n_resumed:
            results().print(f"Went on after epoch {run.n_resumed} of {settings.n_epochs}.")


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out the options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def check_parameters(objective: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that the objective has no use for."""
    from cceclust.torch.objectives import parameters_of

    for name in parameters:
        if name not in parameters_of(objective):
            option = "--solver-iterations" if name == "n_iterations" else "--" + name.replace("_", "-")
            raise typer.BadParameter(f"objective {objective} has no such parameter", param_hint=option)
    return parameters


def report_to(bar: Progress, n_epochs: int) -> tuple[Callable[[int, int], None], Callable[[EpochMetrics], None]]:
    """Return functions that move the bar a step, and tell how an epoch went."""
    task = bar.add_task("Training", total=None, detail="")
    began = False

    def on_step(n_done: int, n_steps: int) -> None:
        nonlocal began
        if not began:
            # What earlier runs did must not count as this one's speed.
            bar.reset(task, total=n_steps, completed=n_done, detail="")
            began = True
        bar.update(task, completed=n_done)

    def on_epoch(metrics: EpochMetrics) -> None:
        accuracy = "" if metrics.accuracy is None else f", ACC {metrics.accuracy:.3f}"
        bar.update(task, detail=f"epoch {metrics.epoch} of {n_epochs}: loss {metrics.loss:.4f}{accuracy}")

    return on_step, on_epoch
