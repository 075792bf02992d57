"""``cceclust bench features``: Table 2 of the paper on any labelled feature file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import (
    LARGEST_FIRST_SEED,
    DatasetOption,
    FeaturesArgument,
    JsonOption,
    LabelsDatasetOption,
    QuietOption,
)
from cceclust.cli.settings import parse_settings, settings_of

if TYPE_CHECKING:
    from cceclust.bench.features import MethodResult


def features(
    file: FeaturesArgument,
    k: Annotated[
        int | None, typer.Option("--k", "-k", min=1, help="Number of clusters; by default the number of classes.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Method to compare; may be repeated. By default: all.")
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="[cyan]default[/], [cyan]paper[/] (its settings on raw features), or [cyan]best[/] (each method's "
            "best settings of a grid, chosen with labels)."
        ),
    ] = "default",
    weight_decay: Annotated[
        float | None, typer.Option(min=0, help="Weight decay of the preset paper: 0.02, 0.009 or 0.001.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter to change from the preset, for the methods that have it, e.g. [cyan]max_epochs=50[/].",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials per method.")] = 6,
    restarts: Annotated[int, typer.Option(min=1, help="Restarts per trial.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first trial.")] = 0,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare collision cross-entropy with K-means, MIGD, SeLa and MIADM: Table 2 of the paper.

    Accuracy, NMI and ARI are means over the trials; "picked" is the accuracy of the trial with the lowest loss.
    """
    from cceclust.bench.features import PRESETS, compare_methods
    from cceclust.bench.files import read_labelled
    from cceclust.estimators.methods import METHODS

    if preset not in PRESETS:
        raise typer.BadParameter(f"{preset!r} is none of {', '.join(PRESETS)}", param_hint="--preset")
    for name in method or []:
        if name not in METHODS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(METHODS)}", param_hint="--method")
    known = {name: setting for each in method or METHODS for name, setting in settings_of(METHODS[each]).items()}
    matrix, labels = read_labelled(file, dataset=dataset, labels_dataset=labels_dataset)
    with task_progress(quiet=quiet or as_json, unit="fits") as bar:
        task = bar.add_task("Clustering", total=None, detail="")
        outcomes = compare_methods(
            matrix,
            labels,
            n_clusters=k,
            methods=method,
            preset=preset,
            weight_decay=weight_decay,
            changes=parse_settings(changes or [], known),
            n_trials=trials,
            n_restarts=restarts,
            seed=seed,
            on_fit=lambda name: bar.update(task, advance=1, detail=name),
        )
    if as_json:
        print_json(outcomes)
    elif not quiet:
        print_methods(outcomes, f"{file.name}: preset {preset}, {trials} trials of {restarts} restarts")


def print_methods(outcomes: list[MethodResult], title: str) -> None:
    """Print the table."""
    table = plain_table(title, "method", "ACC", "NMI", "ARI", "picked", "seconds", "settings")
    for outcome in outcomes:
        settings = ", ".join(f"{name}={value}" for name, value in outcome.settings.items())
        table.add_row(
            outcome.method,
            *(mean_and_deviation(values) for values in (outcome.accuracies, outcome.nmis, outcome.aris)),
            f"{outcome.picked_accuracy:.3f}",
            f"{outcome.seconds:.2f}",
            settings,
        )
    results().print(table)
