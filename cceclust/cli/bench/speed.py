"""``cceclust bench speed``: training beside K-means and beside the bare products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.bench.tables import plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from cceclust.bench.speed import SpeedRatios


def speed(
    samples: Annotated[int, typer.Option(min=1000, help="Rows of the synthetic features.")] = 50_000,
    dimensions: Annotated[int, typer.Option(min=2, help="Columns of the synthetic features.")] = 2048,
    k: Annotated[int, typer.Option("--k", "-k", min=2, help="Number of clusters.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all run in turns.")] = 3,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure speed as ratios: restarts beside K-means, beside one restart, and an epoch beside its bare products."""
    from cceclust.bench.speed import RUNS, make_blobs, measure_speed

    with task_progress(quiet=quiet or as_json, unit="runs") as bar:
        task = bar.add_task("Measuring", total=rounds * len(RUNS), detail="")
        ratios = measure_speed(
            make_blobs(samples, dimensions, k),
            k,
            n_rounds=rounds,
            on_run=lambda name: bar.update(task, advance=1, detail=name),
        )
    if as_json:
        print_json(ratios)
    elif not quiet:
        print_ratios(ratios)


def print_ratios(ratios: SpeedRatios) -> None:
    """Print the ratios, and the times they come from."""
    rows, columns = ratios.shape
    table = plain_table(f"{rows:,} × {columns:,} float32", "ratio of times", "")
    for name, value in ratios.ratios.items():
        table.add_row(name, f"{value:.2f}")
    console = results()
    console.print(table)
    console.print("Median seconds: " + "; ".join(f"{name} {value:.2f}" for name, value in ratios.seconds.items()))
