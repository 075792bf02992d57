"""``cceclust bench deep``: Table 3 of the paper on any labelled images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.deep import given
from cceclust.cli.options import (
    LARGEST_FIRST_SEED,
    ImageDatasetOption,
    ImageLabelsOption,
    ImagesArgument,
    JsonOption,
    LimitOption,
    QuietOption,
    SplitOption,
    check_above_zero,
)
from cceclust.presets import NetworkName, ObjectiveName, PresetName

if TYPE_CHECKING:
    from cceclust.bench.deep import ObjectiveResult
    from cceclust.torch.deep import EpochMetrics
    from cceclust.torch.overhead import TrainingSpeed


def deep(
    images: ImagesArgument,
    k: Annotated[int | None, typer.Option("--k", "-k", min=2, help="Clusters; by default the classes.")] = None,
    objective: Annotated[
        list[str] | None, typer.Option(help="Objective to compare; may be repeated. By default all.")
    ] = None,
    preset: Annotated[
        PresetName | None, typer.Option(help="Settings of the paper, as in [bold]cceclust deep[/].")
    ] = None,
    network: Annotated[NetworkName | None, typer.Option(help="As in [bold]cceclust deep[/].")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs a trial.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images a step.")] = None,
    learning_rate: Annotated[float | None, typer.Option(callback=check_above_zero, help="Adam's.")] = None,
    weight_decay: Annotated[float | None, typer.Option(min=0, help="Adam's L2 term.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials an objective.")] = 6,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first trial.")] = 0,
    speed: Annotated[
        bool, typer.Option("--speed", help="Measure the trainer's speed beside a bare loop instead.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Pairs of epochs that take turns, for --speed.")] = 3,
    device: Annotated[str, typer.Option(help="auto, cpu, mps, cuda or cuda:N.")] = "auto",
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: ImageDatasetOption = None,
    labels_dataset: ImageLabelsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare objectives that train a network from scratch: Table 3 of the paper.

    All start from the same random weights and see the same batches and views; accuracy, NMI and ARI are those of the
    trained networks, as means over the trials.
    """
    from cceclust.bench.deep import compare_objectives, measure_training_speed
    from cceclust.files.images import open_images
    from cceclust.torch.runs import choose_settings

    names = objective or list(get_args(ObjectiveName))
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
    )
    settings = [choose_settings(name, preset, seed=seed, **chosen) for name in names]
    collection = open_images(images, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
    if speed:
        outcome: Any = measure_training_speed(collection, settings[-1], n_clusters=k, n_rounds=rounds, device=device)
    else:
        with task_progress(quiet=quiet or as_json, unit="epochs") as bar:
            n_epochs = sum(each.n_epochs for each in settings) * trials
            task = bar.add_task("Training", total=n_epochs, detail="")

            def on_epoch(name: str, trial: int, metrics: EpochMetrics) -> None:
                detail = f"{name}, trial {trial + 1}: loss {metrics.loss:.4f}, ACC {metrics.accuracy or 0:.3f}"
                bar.update(task, advance=1, detail=detail)

            outcome = compare_objectives(
                collection, settings, n_clusters=k, n_trials=trials, device=device, on_epoch=on_epoch
            )
    if as_json:
        print_json(outcome)
    elif speed and not quiet:
        print_speed(outcome, names[-1])
    elif not quiet:
        print_objectives(outcome, f"{collection.source}: {len(collection):,} images, {trials} trials")


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


def print_speed(speed: TrainingSpeed, objective: str) -> None:
    """Print the ratio."""
    results().print(
        f"{objective}: {speed.ratio:.2f} of the bare loop's speed "
        f"({speed.images_per_second:.1f} against {speed.bare_images_per_second:.1f} images a second, two views of each)"
    )
