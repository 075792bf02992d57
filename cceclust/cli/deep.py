"""``cceclust deep``: images in, a trained network and clusters out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cceclust.cli.console import advising, print_json, print_warning, results, task_progress
from cceclust.cli.options import (
    LARGEST_SEED,
    OUTPUT_PANEL,
    ForceOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SplitOption,
    check_above_zero,
    refuse_missing_images,
)
from cceclust.cli.settings import Setting, parse_settings, print_settings, settings_of
from cceclust.cli.summary import print_summary, summarize
from cceclust.presets import PRESETS, NetworkName, ObjectiveName, PresetName, RunSettings

if TYPE_CHECKING:
    from rich.progress import Progress

    from cceclust.torch.deep import EpochMetrics

METHOD_PANEL = "Method"
TRAINING_PANEL = "Training"

# The fields of RunSettings that have an option of their own.
OPTIONS = {
    "network": "--network",
    "objective": "--objective",
    "learning_rate": "--learning-rate",
    "batch_size": "--batch-size",
    "n_epochs": "--epochs",
    "seed": "--seed",
}


def method_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on the method."""
    return typer.Option(*names, rich_help_panel=METHOD_PANEL, **settings)


def training_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on training."""
    return typer.Option(*names, rich_help_panel=TRAINING_PANEL, **settings)


def output_option(*names: str, **settings: Any) -> Any:
    """Return an option of the help panel on output."""
    return typer.Option(*names, rich_help_panel=OUTPUT_PANEL, **settings)


def with_default(text: str, default: Any) -> str:
    """Add the default to the help of an option whose value may also come from a preset."""
    return f"{text} [dim]\\[default: {default}][/]"


def check_count(value: int | None) -> int | None:
    """Refuse numbers below 1."""
    if value is not None and value < 1:
        raise typer.BadParameter(f"{value}; expected a whole number of at least 1")
    return value


def check_clusters(value: int) -> int:
    """Refuse fewer than two clusters."""
    if value < 2:
        raise typer.BadParameter(f"{value}; expected at least 2 clusters")
    return value


def check_seed(value: int) -> int:
    """Refuse seeds that random number generators do not accept."""
    if not 0 <= value <= LARGEST_SEED:
        raise typer.BadParameter(f"{value}; expected a whole number from 0 to {LARGEST_SEED}")
    return value


def rare_settings() -> dict[str, dict[str, Setting]]:
    """Return the settings that ``--set`` accepts for every objective, by title."""
    from cceclust.io.images import open_images

    return {
        "Training": settings_of(RunSettings, skip=OPTIONS),
        "Images": settings_of(open_images, skip=("split", "limit")),
    }


def objective_settings(objective: str) -> dict[str, Setting]:
    """Return the parameters of an objective."""
    from cceclust.torch.objectives import OBJECTIVES

    return settings_of(OBJECTIVES[objective])


def list_settings(texts: list[str] | None) -> list[str] | None:
    """On ``--set help``, print all settings and exit."""
    if texts is not None and "help" in texts:
        from cceclust.torch.objectives import OBJECTIVES

        of_objectives = {f"Objective {name}": objective_settings(name) for name in OBJECTIVES}
        print_settings(rare_settings() | {title: group for title, group in of_objectives.items() if group})
        raise typer.Exit
    return texts


def describe_presets() -> str:
    """List the presets for the help text."""
    return "\n\n".join(
        f"[cyan]{name}[/]: {preset.network}, learning rate {preset.learning_rate:g} (head "
        f"{preset.head_learning_rate:g}), weight_decay {preset.weight_decay:g}, batches of {preset.batch_size}, "
        f"{preset.n_epochs} epochs, "
        + ", ".join(f"{name} {value:g}" for name, value in preset.objective_parameters.items())
        for name, preset in PRESETS.items()
    )


EPILOG = "[bold]Presets[/]: the paper's settings, for Adam. Options override them.\n\n" + describe_presets()


def deep(
    images: ImagesArgument,
    k: Annotated[int, method_option("--k", "-k", callback=check_clusters, metavar="INT", help="Number of clusters.")],
    output: Annotated[Path, output_option("--out", "-o", help="The run's folder.", metavar="RUN")],
    objective: Annotated[
        ObjectiveName,
        method_option(
            metavar="NAME",
            help="[cyan]cce[/] (collision cross-entropy by EM), or to compare: cce-pgd, imsat, iic, sela, miadm, scan.",
        ),
    ] = "cce",
    preset: Annotated[
        PresetName | None,
        method_option(metavar="NAME", help="Settings of the paper, listed below."),
    ] = None,
    network: Annotated[
        NetworkName | None,
        method_option(
            metavar="NAME",
            help=with_default(
                "vgg4-28, vgg4-32, vgg4-96, the same with [cyan]-small[/] (an eighth as wide), resnet18, or "
                "[cyan]auto[/]: VGG-4 for the size of the images.",
                RunSettings.network,
            ),
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        method_option(
            help="Labels of some images: a .csv of [cyan]row[/] or [cyan]path[/] and [cyan]label[/], or a file with "
            "a label for each image, -1 for unknown.",
            metavar="FILE",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        method_option(
            "--set",
            metavar="NAME=VALUE",
            callback=list_settings,
            is_eager=True,
            help="Any other setting; may be repeated. [cyan]--set help[/] lists them.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        training_option(
            metavar="INT",
            callback=check_count,
            help=with_default("How often each image is seen.", RunSettings.n_epochs),
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        training_option(
            metavar="INT",
            callback=check_count,
            help=with_default("Images per batch, at most.", RunSettings.batch_size),
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        training_option(
            metavar="NUMBER",
            callback=check_above_zero,
            help=with_default("Learning rate of Adam.", RunSettings.learning_rate),
        ),
    ] = None,
    seed: Annotated[
        int, training_option(metavar="INT", callback=check_seed, help="Same seed and machine, same clusters.")
    ] = RunSettings.seed,
    device: Annotated[str, training_option(metavar="NAME", help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    split: SplitOption = None,
    limit: LimitOption = None,
    features: Annotated[
        bool, output_option("--features", help="Also write features.h5, the input of the head, for [bold]fit[/].")
    ] = False,
    resume: Annotated[bool, output_option("--resume", help="Continue the run in the folder, if there is one.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cluster images while learning the features: no pretrained network needed, and no labels, though some help.

    RUN becomes a folder with the settings, the metrics of every epoch, the network and the clusters. If stopped or
    killed, the same command with --resume continues and gives the same result. With [bold]torchrun --nproc-per-node N
    -m cceclust deep[/], N processes train together.
    """
    from cceclust.io.images import open_images
    from cceclust.io.partial_labels import read_partial_labels

    refuse_missing_images(images)
    from cceclust.torch.ranks import joined
    from cceclust.torch.runs import choose_settings, cluster_images

    with advising("the same command with --resume continues after the last complete epoch"), joined() as ranks:
        of_run, of_images, of_objective = parse_changes(changes or [], objective)
        options = given(network=network, n_epochs=epochs, batch_size=batch_size, learning_rate=learning_rate)
        settings = choose_settings(objective, preset, seed=seed, objective_parameters=of_objective, **options, **of_run)
        collection = open_images(images, split=split, limit=limit, **of_images)
        known = None if labels is None else read_partial_labels(labels, len(collection), paths=collection.paths)
        with task_progress(quiet=quiet or as_json or not ranks.is_first, unit="steps") as bar:
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
                ranks=ranks,
            )
    if not ranks.is_first:
        return
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


def given(**options: Any) -> dict[str, Any]:
    """Leave out the options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def parse_changes(texts: list[str], objective: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the changes by ``--set``: of the run, of how images are read, and of the objective."""
    groups = [*rare_settings().values(), objective_settings(objective)]
    known: dict[str, Setting] = {}
    for group in groups:
        known |= group
    for text in texts:
        name = text.partition("=")[0]
        if name in OPTIONS:
            raise typer.BadParameter(f"{name} has an option of its own: {OPTIONS[name]}", param_hint="--set")
    values = parse_settings(texts, known)

    def of(group: Mapping[str, Setting]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in group}

    of_run, of_images, of_objective = map(of, groups)
    return of_run, of_images, of_objective


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
