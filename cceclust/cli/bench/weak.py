"""``cceclust bench weak``: Table 5 of the paper on any labelled feature file, or on any labelled images."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.deep import given
from cceclust.cli.options import (
    INPUT_PANEL,
    LARGEST_FIRST_SEED,
    JsonOption,
    LabelsDatasetOption,
    LimitOption,
    QuietOption,
    SplitOption,
)
from cceclust.presets import NetworkName, RunSettings

if TYPE_CHECKING:
    from cceclust.bench.weak import WeakResult
    from cceclust.files.images import ImageCollection
    from cceclust.torch.deep import EpochMetrics

DEEP_PANEL = "With --deep"
# The table has no networks that start from a checkpoint.
ScratchPreset = Literal["mnist", "cifar10", "cifar100-20", "stl10"]


def deep_option(**settings: Any) -> Any:
    """Return an option of the help panel on networks."""
    return typer.Option(rich_help_panel=DEEP_PANEL, **settings)


def weak(
    file: Annotated[
        Path,
        typer.Argument(
            help="Labelled features, as in [bold]cceclust fit[/]; with --deep labelled images, as in "
            "[bold]cceclust deep[/].",
            metavar="FILE",
        ),
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Train networks on images from scratch.")] = False,
    ratio: Annotated[
        list[float] | None,
        typer.Option(
            min=0, max=1, help="Fraction of the rows that have a label; may be repeated. By default 0.1, 0.05 and 0.01."
        ),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Method to compare; may be repeated. By default all.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Number of draws of the labelled rows.")] = 5,
    restarts: Annotated[int | None, typer.Option(min=1, help="Restarts per fit, on features; 1 by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first draw.")] = 0,
    preset: Annotated[
        ScratchPreset | None, deep_option(help="Settings of the paper, as in [bold]cceclust deep[/].")
    ] = None,
    network: Annotated[NetworkName | None, deep_option(help="As in [bold]cceclust deep[/].")] = None,
    epochs: Annotated[
        int | None, deep_option(min=1, help=f"Epochs per network; {RunSettings.n_epochs} by default.")
    ] = None,
    batch_size: Annotated[
        int | None, deep_option(min=1, help=f"Images per batch; {RunSettings.batch_size} by default.")
    ] = None,
    device: Annotated[str | None, deep_option(help="auto (the default), cpu, mps, cuda or cuda:N.")] = None,
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Name of the features, or of the images, inside the file.", rich_help_panel=INPUT_PANEL),
    ] = None,
    labels_dataset: LabelsDatasetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare how much unlabelled rows add to a few labelled rows: Table 5 of the paper.

    Accuracy on the rows without a label, mean and deviation over the draws. Labelled rows are drawn class by class.
    With --deep, rows are images, and every fit trains a network.
    """
    ratios, hidden = ratio or [0.1, 0.05, 0.01], quiet or as_json
    if deep:
        refuse_given({"--restarts": restarts}, "has no meaning with --deep")
        from cceclust.files.images import open_images

        options = given(seed=seed, network=network, n_epochs=epochs, batch_size=batch_size)
        settings = settings_by_method(method, preset, options)
        images = open_images(file, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
        outcomes = train_all(images, settings, ratios, draws, device or "auto", quiet=hidden)
    else:
        of_deep = {"--preset": preset, "--network": network, "--epochs": epochs, "--batch-size": batch_size}
        refuse_given(of_deep | {"--device": device, "--split": split, "--limit": limit}, "needs --deep")
        from cceclust.bench.files import read_labelled
        from cceclust.bench.weak import METHODS

        names = chosen_methods(method, METHODS)
        matrix, labels = read_labelled(file, dataset=dataset, labels_dataset=labels_dataset)
        outcomes = fit_all(matrix, labels, names, ratios, draws, restarts or 1, seed, quiet=hidden)
    if as_json:
        print_json(outcomes)
    elif not quiet:
        rows = "images" if deep else "rows"
        print_weak(outcomes, f"{file.name}: accuracy on unlabelled {rows}, {draws} draws")


def refuse_given(options: dict[str, Any], problem: str) -> None:
    """Refuse options that would have no effect."""
    for name in given(**options):
        raise typer.BadParameter(problem, param_hint=name)


def chosen_methods(names: list[str] | None, known: Collection[str]) -> list[str]:
    """Return the methods that were asked for, by default all."""
    for name in names or []:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint="--method")
    return names or list(known)


def settings_by_method(
    names: list[str] | None, preset: ScratchPreset | None, options: dict[str, Any]
) -> dict[str, RunSettings]:
    """Return how to train by each method that was asked for."""
    from cceclust.bench.weak_deep import METHODS
    from cceclust.torch.runs import choose_settings

    return {
        name: choose_settings(METHODS[name] or RunSettings.objective, preset, **options)
        for name in chosen_methods(names, METHODS)
    }


def fit_all(
    matrix: Any,
    labels: Any,
    names: list[str],
    ratios: list[float],
    draws: int,
    restarts: int,
    seed: int,
    *,
    quiet: bool,
) -> list[WeakResult]:
    """Compare methods on features, with a progress bar of fits."""
    from cceclust.bench.weak import compare_weak

    with task_progress(quiet=quiet, unit="fits") as bar:
        task = bar.add_task("Learning", total=len(ratios) * len(names) * draws, detail="")
        return compare_weak(
            matrix,
            labels,
            ratios=ratios,
            methods=names,
            n_draws=draws,
            n_restarts=restarts,
            seed=seed,
            on_fit=lambda name: bar.update(task, advance=1, detail=name),
        )


def train_all(
    images: ImageCollection,
    settings: dict[str, RunSettings],
    ratios: list[float],
    draws: int,
    device: str,
    *,
    quiet: bool,
) -> list[WeakResult]:
    """Compare methods on images, with a progress bar of epochs."""
    from cceclust.bench.weak_deep import compare_weak_deep

    with task_progress(quiet=quiet, unit="epochs") as bar:
        n_epochs = sum(each.n_epochs for each in settings.values()) * len(ratios) * draws
        task = bar.add_task("Training", total=n_epochs, detail="")

        def on_epoch(name: str, metrics: EpochMetrics) -> None:
            bar.update(task, advance=1, detail=f"{name}: loss {metrics.loss:.4f}")

        return compare_weak_deep(images, settings, ratios=ratios, n_draws=draws, device=device, on_epoch=on_epoch)


def print_weak(outcomes: list[WeakResult], title: str) -> None:
    """Print one row per method and one column per ratio."""
    ratios = list(dict.fromkeys(outcome.ratio for outcome in outcomes))
    table = plain_table(title, "method", *(f"{ratio:g}" for ratio in ratios), "seconds")
    for name in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == name]
        seconds = sum(outcome.seconds for outcome in own) / len(own)
        table.add_row(name, *(mean_and_deviation(outcome.accuracies) for outcome in own), f"{seconds:.1f}")
    results().print(table)
