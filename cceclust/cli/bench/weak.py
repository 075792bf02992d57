"""``cceclust bench weak``: Table 5 of the paper on any labelled feature file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import DatasetOption, FeaturesArgument, JsonOption, LabelsDatasetOption, QuietOption

if TYPE_CHECKING:
    from cceclust.bench.weak import WeakResult


def weak(
    file: FeaturesArgument,
    ratio: Annotated[
        list[float] | None,
        typer.Option(
            min=0, max=1, help="Part of the rows that has a label; may be repeated. [default: 0.1, 0.05, 0.01]"
        ),
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Method to compare; may be repeated. [default: all]")] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of the labelled rows.")] = 5,
    restarts: Annotated[int, typer.Option(min=1, help="Restarts a fit.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first draw.")] = 0,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare what unlabelled rows add to a few labelled ones: Table 5 of the paper.

    Accuracy on the rows without a label, mean and deviation over the draws. Labelled rows are drawn class by class.
    """
    from cceclust.bench.files import read_labelled
    from cceclust.bench.weak import METHODS, compare_weak

    for name in method or []:
        if name not in METHODS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(METHODS)}", param_hint="--method")
    ratios, names = ratio or [0.1, 0.05, 0.01], method or list(METHODS)
    matrix, labels = read_labelled(file, dataset=dataset, labels_dataset=labels_dataset)
    with task_progress(quiet=quiet or as_json, unit="fits") as bar:
        task = bar.add_task("Learning", total=len(ratios) * len(names) * draws, detail="")
        outcomes = compare_weak(
            matrix,
            labels,
            ratios=ratios,
            methods=names,
            n_draws=draws,
            n_restarts=restarts,
            seed=seed,
            on_fit=lambda name: bar.update(task, advance=1, detail=name),
        )
    if as_json:
        print_json(outcomes)
    elif not quiet:
        print_weak(outcomes, f"{file.name}: accuracy on unlabelled rows, {draws} draws")


def print_weak(outcomes: list[WeakResult], title: str) -> None:
    """Print a row a method and a column a ratio."""
    ratios = list(dict.fromkeys(outcome.ratio for outcome in outcomes))
    table = plain_table(title, "method", *(f"{ratio:g}" for ratio in ratios), "seconds")
    for name in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == name]
        seconds = sum(outcome.seconds for outcome in own) / len(own)
        table.add_row(name, *(mean_and_deviation(outcome.accuracies) for outcome in own), f"{seconds:.1f}")
    results().print(table)
