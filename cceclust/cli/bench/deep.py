"""``cceclust bench deep``: Tables 3 and 4 of the paper on any labelled images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.deep import given, objective_settings
from cceclust.cli.options import (
    LARGEST_FIRST_SEED,
    OUTPUT_PANEL,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SplitOption,
    check_above_zero,
)
from cceclust.cli.settings import parse_settings
from cceclust.presets import NetworkName, ObjectiveName, PrecisionName, PresetName

if TYPE_CHECKING:
    from cceclust.bench.deep import ObjectiveResult
    from cceclust.torch.deep import EpochMetrics


def deep(
    images: ImagesArgument,
    k: Annotated[
        int | None, typer.Option("--k", "-k", min=2, help="Number of clusters; by default the number of classes.")
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="Objective to compare; may be repeated. By default those of Table 3, with --init those of Table 4."
        ),
    ] = None,
    preset: Annotated[
        PresetName | None, typer.Option(help="Settings of the paper, as in [bold]cceclust deep[/].")
    ] = None,
    network: Annotated[NetworkName | None, typer.Option(help="As in [bold]cceclust deep[/].")] = None,
    init: Annotated[
        Path | None,
        typer.Option(
            help="Initial weights for all: a checkpoint of SCAN, SimCLR, MoCo or solo-learn, or the model of a run."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of an objective, for those that have it, e.g. [cyan]information_weight=0.3[/].",
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs per trial.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images per batch.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(callback=check_above_zero, help="Learning rate of Adam.")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(min=0, help="Weight decay of Adam (its L2 term).")] = None,
    precision: Annotated[
        PrecisionName | None, typer.Option(help="Precision of the products in training: float32 by default.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials per objective.")] = 6,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first trial.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder to keep the runs in, one per objective and trial; finished runs are not trained again.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare objectives that train a network from scratch (Table 3 of the paper) or from a checkpoint (Table 4).

    All start from the same weights and see the same batches; accuracy, NMI and ARI are those of the trained networks,
    as means over the trials. If it is stopped or killed, the same command with the same --out continues.
    """
    from cceclust.bench.deep import TABLE_3, TABLE_4, compare_objectives
    from cceclust.files.images import open_images
    from cceclust.torch.runs import choose_settings

    names = objective or list(TABLE_3 if init is None else TABLE_4)
    for name in names:
        if name not in get_args(ObjectiveName):
            known = ", ".join(get_args(ObjectiveName))
            raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--objective")
    chosen = given(
        network=network,
        n_epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        precision=precision,
        init=None if init is None else str(init),
    )
    parameters = parse_parameters(changes or [], names)
    settings = [
        choose_settings(name, preset, seed=seed, objective_parameters=parameters[name], **chosen) for name in names
    ]
    collection = open_images(images, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
    with task_progress(quiet=quiet or as_json, unit="epochs") as bar:
        n_epochs = sum(each.n_epochs for each in settings) * trials
        task = bar.add_task("Training", total=n_epochs, detail="")

        def on_epoch(name: str, trial: int, metrics: EpochMetrics) -> None:
            detail = f"{name}, trial {trial + 1}: loss {metrics.loss:.4f}, ACC {metrics.accuracy or 0:.3f}"
            bar.update(task, advance=1, detail=detail)

        outcomes = compare_objectives(
            collection, settings, n_clusters=k, n_trials=trials, device=device, folder=output, on_epoch=on_epoch
        )
    if as_json:
        print_json(outcomes)
    elif not quiet:
        print_objectives(outcomes, f"{collection.source}: {len(collection):,} images, {trials} trials")


def parse_parameters(texts: list[str], objectives: list[str]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each objective that ``--set`` changes; each must belong to some objective."""
    groups = {name: objective_settings(name) for name in objectives}
    known = {name: setting for group in groups.values() for name, setting in group.items()}
    values = parse_settings(texts, known)
    return {
        objective: {name: value for name, value in values.items() if name in group}
        for objective, group in groups.items()
    }


def print_objectives(outcomes: list[ObjectiveResult], title: str) -> None:
    """Print the table."""
    table = plain_table(title, "objective", "ACC", "NMI", "ARI", "seconds")
    for outcome in outcomes:
        table.add_row(
            outcome.objective,
            *(mean_and_deviation(values) for values in (outcome.accuracies, outcome.nmis, outcome.aris)),
            f"{outcome.seconds:.0f}",
        )
    results().print(table)
