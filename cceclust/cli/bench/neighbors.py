"""``cceclust bench neighbors``: recall of the neighbours and what they do for the clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import DatasetOption, FeaturesArgument, JsonOption, LabelsDatasetOption, QuietOption

if TYPE_CHECKING:
    from cceclust.bench.neighbors import GraphResult


def neighbors(
    file: FeaturesArgument,
    n_neighbors: Annotated[int, typer.Option("--neighbors", "-n", min=1, help="Neighbours a row.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, help="Fits a graph.")] = 3,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare neighbours found exactly, on principal components and in cells: recall, time, and accuracy."""
    from cceclust.bench.files import read_labelled
    from cceclust.bench.neighbors import compare_graphs

    matrix, labels = read_labelled(file, dataset=dataset, labels_dataset=labels_dataset)
    with task_progress(quiet=quiet or as_json, unit="graphs") as bar:
        task = bar.add_task("Comparing", total=None, detail="")
        outcomes = compare_graphs(
            matrix,
            labels,
            n_neighbors=n_neighbors,
            n_seeds=seeds,
            on_graph=lambda name: bar.update(task, advance=1, detail=name),
        )
    if as_json:
        print_json(outcomes)
    elif not quiet:
        print_graphs(outcomes, f"{file.name}: {n_neighbors} neighbours, {seeds} fits each")


def print_graphs(outcomes: list[GraphResult], title: str) -> None:
    """Print the table; times are given as a ratio to the exact search."""
    exact = next(outcome.seconds for outcome in outcomes if outcome.graph == "exact")
    table = plain_table(title, "search", "recall", "same class", "time / exact", "ACC", "agreement")
    for outcome in outcomes:
        table.add_row(
            outcome.graph,
            "–" if outcome.recall is None else f"{outcome.recall:.3f}",
            "–" if outcome.purity is None else f"{outcome.purity:.3f}",
            "–" if outcome.graph == "none" else f"{outcome.seconds / exact:.2f}",
            mean_and_deviation(outcome.accuracies),
            f"{outcome.agreement:.2f}",
        )
    results().print(table)
