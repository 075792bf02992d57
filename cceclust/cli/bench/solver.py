"""``cceclust bench solver``: Table 1 of the paper."""

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
    fairness: Annotated[float, typer.Option("--fairness", min=0, help="Weight λ of the fairness term.")] = 1.0,
    remaining: Annotated[
        float,
        typer.Option("--remaining", min=0, max=1, help="Part of the way to the lowest loss that may be left."),
    ] = 0.01,
    seed: Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Seed of the random probabilities.")] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Time EM against projected gradient descent: Table 1 of the paper.

    All methods run in turns on the same random probabilities, in float32, to the same loss.
    """
    from cceclust.bench.solver import benchmark_solvers, measure_start_up

    sizes = clusters or [2, 20, 200]
    with task_progress(quiet=quiet) as bar:
        task = bar.add_task("measuring", total=len(sizes) + 1, detail="")
        benchmark = benchmark_solvers(
            n_clusters=sizes,
            n_points=points,
            fairness=fairness,
            remaining=remaining,
            random_state=seed,
            on_done=lambda k: bar.update(task, advance=1, detail=f"K = {k} done"),
        )
        start_up = measure_start_up()
    if as_json:
        print_json({"benchmark": benchmark, "start_up": start_up})
    elif not quiet:
        print_solver_benchmark(benchmark, start_up)


def print_solver_benchmark(benchmark: SolverBenchmark, start_up: StartUp) -> None:
    """Print the table and the ratios."""
    from rich.table import Table

    title = f"{benchmark.n_points} points, fairness {benchmark.fairness:g}"
    table = Table(title=title, title_justify="left")
    table.add_column("K", justify="right")
    table.add_column("method")
    for name in ("ms per iteration", "iterations", "ms to the same loss"):
        table.add_column(name, justify="right")
    for timing in benchmark.timings:
        if timing.step_size is None:
            table.add_section()
        table.add_row(
            str(timing.n_clusters),
            timing.method,
            f"{1e3 * timing.seconds_per_iteration:.4f}",
            "not reached" if timing.iterations is None else str(timing.iterations),
            "–" if timing.seconds is None else f"{1e3 * timing.seconds:.3f}",
        )
    console = results()
    console.print(table)
    for k, ratio in benchmark.best_pgd_over_em.items():
        reached = "no step size reached the loss" if ratio is None else f"best PGD takes {ratio:.3g} × EM's time"
        console.print(f"K = {k}: {reached}; a row-by-row loop {benchmark.row_loop_over_kernel[k]:.3g} × the kernel's")
    console.print(
        f"first call in a fresh process: {start_up.cold_seconds:.2f} s to compile, "
        f"{start_up.warm_seconds:.2f} s from the cache on disk"
    )
