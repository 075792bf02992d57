"""``cceclust bench solver``: how fast each solver comes near the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import LARGEST_SEED, JsonOption, QuietOption

if TYPE_CHECKING:
    from cceclust.bench.solver import SolverBenchmark, StartUp


def solver(
    clusters: Annotated[
        list[int] | None,
        typer.Option("--clusters", "-k", min=1, help="Number of clusters; may be repeated. By default: 2, 20, 200."),
    ] = None,
    points: Annotated[int, typer.Option("--points", min=1, help="Points in a batch.")] = 250,
    fairness: Annotated[
        list[float] | None,
        typer.Option(
            "--fairness", min=0, help="Weight λ of the fairness term; may be repeated. By default: 1, 10, 100."
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=1e-9, max=1, help="How far above the minimum to stop, as a fraction of it."),
    ] = 1e-4,
    seed: Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of the random probabilities.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time EM, projected gradient descent and the exact solver until the loss is near its minimum.

    All methods run in turns on the same random probabilities, in float64. The minimum is known from the exact solver.
    """
    from cceclust.bench.solver import benchmark_solvers, measure_start_up

    sizes = clusters or [2, 20, 200]
    values = fairness or [1.0, 10.0, 100.0]
    with task_progress(quiet=quiet) as bar:
        task = bar.add_task("measuring", total=len(sizes) * len(values) + 1, detail="")
        benchmark = benchmark_solvers(
            n_clusters=sizes,
            n_points=points,
            fairness=values,
            tolerance=tolerance,
            random_state=seed,
            on_done=lambda k, value: bar.update(task, advance=1, detail=f"K = {k}, λ = {value:g} done"),
        )
        start_up = measure_start_up()
    if as_json:
        print_json({"benchmark": benchmark, "start_up": start_up})
    elif not quiet:
        print_solver_benchmark(benchmark, start_up)


def print_solver_benchmark(benchmark: SolverBenchmark, start_up: StartUp) -> None:
    """Print the table, and the cases in which projected gradient descent is faster."""
    from rich.table import Table

    title = f"{benchmark.n_points} points, to a loss {benchmark.tolerance:g} × the minimum above it"
    table = Table(title=title, title_justify="left")
    table.add_column("K", justify="right")
    table.add_column("λ", justify="right")
    table.add_column("method")
    for name in ("ms per iteration", "iterations", "ms", "time / EM's"):
        table.add_column(name, justify="right")
    for timing in benchmark.timings:
        if timing.method == "EM":
            table.add_section()
        table.add_row(
            str(timing.n_clusters),
            f"{timing.fairness:g}",
            timing.method,
            f"{1e3 * timing.seconds_per_iteration:.4f}",
            "not reached" if timing.iterations is None else str(timing.iterations),
            "–" if timing.seconds is None else f"{1e3 * timing.seconds:.3f}",
            "–" if timing.seconds_over_em is None else f"{timing.seconds_over_em:.3g}",
        )
    console = results()
    console.print(table)
    places = "; ".join(f"K = {k}, λ = {value:g}" for k, value in benchmark.pgd_wins)
    console.print(f"PGD at its best step size is faster than plain EM at: {places or 'none of these'}")
    console.print(
        f"first call in a fresh process: {start_up.cold_seconds:.2f} s to compile, "
        f"{start_up.warm_seconds:.2f} s from the cache on disk"
    )
