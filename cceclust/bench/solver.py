"""How fast are the solvers for pseudo-labels? Table 1 of arXiv:2303.07321, rerun on this machine."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels import EMSolver, PGDSolver, Solver
from cceclust.validation import FloatArray

__all__ = ["SolverBenchmark", "SolverTiming", "StartUp", "benchmark_solvers", "measure_start_up"]

# Table 1's step sizes; for other numbers of clusters the paper's last ones are taken.
PAPER_STEP_SIZES = {2: (1.0, 10.0, 20.0), 20: (0.1, 1.0, 5.0), 200: (0.1, 1.0, 5.0)}
# The paper stops at the largest step that does not diverge. Here that depends on the data, so these are tried too.
MORE_STEP_SIZES = (2.0, 50.0, 500.0)
MAX_ITERATIONS = 3000
# A run that has not got any lower for so long circles around the minimum or has diverged.
PATIENCE = 200
REPEATS = 5

FIRST_CALL = """
import time
import numpy as np
from cceclust.pseudo_labels import estimate_pseudo_labels
probabilities = np.full((4, 2), 0.5, np.float32)
start = time.perf_counter()
estimate_pseudo_labels(probabilities)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class SolverTiming:
    """One row of the table: a method on probabilities over so many clusters."""

    n_clusters: int
    method: str
    step_size: float | None
    seconds_per_iteration: float
    iterations: int | None
    seconds: float | None


@dataclass(frozen=True)
class StartUp:
    """What the first call of EM in a fresh process takes: with nothing compiled yet, and with all of it on disk."""

    cold_seconds: float
    warm_seconds: float


@dataclass(frozen=True)
class SolverBenchmark:
    """Timings of all methods, and the ratios that matter.

    `iterations` and `seconds` lead to the same loss: all but `remaining` of the way from the start to the minimum.
    None means that a method did not get there. Ratios are keyed by the number of clusters.
    """

    n_points: int
    fairness: float
    remaining: float
    timings: list[SolverTiming]
    best_pgd_over_em: dict[int, float | None]
    row_loop_over_kernel: dict[int, float]


def benchmark_solvers(
    *,
    n_clusters: Iterable[int] = (2, 20, 200),
    n_points: int = 250,
    fairness: float = 1.0,
    remaining: float = 1e-2,
    random_state: int = 0,
    on_done: Callable[[int], None] = lambda _: None,
) -> SolverBenchmark:
    """Time EM and projected gradient descent to the same loss, and the EM kernel against a row-by-row loop.

    Parameters
    ----------
    n_clusters : iterable of int
        Numbers of clusters, one block of the table each.
    n_points : int
        Points in a batch.
    fairness : float
        λ of the loss.
    remaining : float
        The part of the way from the first loss to the lowest that may be left.
    random_state : int
        Seed of the probabilities.
    on_done : callable
        Told each number of clusters when it is measured.

    Returns
    -------
    SolverBenchmark
    """
    timings: list[SolverTiming] = []
    pgd_ratios: dict[int, float | None] = {}
    loop_ratios: dict[int, float] = {}
    for k in n_clusters:
        probabilities = _random_probabilities(k, n_points, random_state)
        target = _target_loss(probabilities, fairness, remaining)
        candidates: list[tuple[str, float | None, Solver]] = [("EM", None, EMSolver(fairness, tol=0.0))]
        for step_size in sorted({*PAPER_STEP_SIZES.get(k, PAPER_STEP_SIZES[200]), *MORE_STEP_SIZES}):
            # The paper's steps follow the gradient of the average over the points, the solver's that of a point.
            solver = PGDSolver(fairness, step_size=step_size / n_points, tol=0.0)
            candidates.append((f"PGD, step {step_size:g}", step_size, solver))
        block = _time_side_by_side(candidates, probabilities, target)
        timings += block
        pgd_ratios[k] = _best_pgd_over_em(block)
        loop_ratios[k] = _row_loop_over_kernel(probabilities, fairness)
        on_done(k)
    return SolverBenchmark(n_points, fairness, remaining, timings, pgd_ratios, loop_ratios)


def measure_start_up() -> StartUp:
    """Time EM's first call in two fresh processes that share an empty compilation cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "CCECLUST_NUMBA_CACHE": "1"}
        command = [sys.executable, "-c", FIRST_CALL]
        runs = [subprocess.run(command, env=environment, check=True, capture_output=True, text=True) for _ in range(2)]
    return StartUp(*(float(run.stdout) for run in runs))


def _random_probabilities(n_clusters: int, n_points: int, random_state: int) -> FloatArray:
    """Softmax of normal logits, K-major, in the precision that training uses."""
    logits = 3 * np.random.default_rng(random_state).normal(size=(1, n_clusters, n_points))
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float32)


def _target_loss(probabilities: FloatArray, fairness: float, remaining: float) -> float:
    precise = probabilities.astype(np.float64)
    _, first, _ = _run(EMSolver(fairness, max_iter=0), precise)
    _, lowest, _ = _run(EMSolver(fairness, max_iter=5000, tol=1e-9), precise)
    return lowest + remaining * (first - lowest)


def _run(solver: Solver, probabilities: FloatArray, start: FloatArray | None = None) -> tuple[FloatArray, float, float]:
    """Solve from a start; return the pseudo-labels, the loss and the seconds in the solver."""
    _, n_clusters, n_points = probabilities.shape
    labels = (probabilities if start is None else start).copy()
    weights = np.full(n_points, 1 / n_points, probabilities.dtype)
    workspace = solver.workspace(n_clusters, n_points, probabilities.dtype)
    losses, iterations = np.empty(1), np.empty(1, np.int64)
    begin = time.perf_counter()
    solver.solve(probabilities, labels, weights, workspace, losses, iterations)
    return labels, float(losses[0]), time.perf_counter() - begin


def _with_iterations(solver: Any, n_iterations: int) -> Solver:
    return dataclasses.replace(solver, max_iter=n_iterations)  # type: ignore[no-any-return]


def _iterations_to(solver: Solver, probabilities: FloatArray, target: float) -> int | None:
    """Count the iterations until the loss is at the target, if it gets there."""
    single = _with_iterations(solver, 1)
    labels: FloatArray | None = None
    lowest, lowest_at = np.inf, 0
    for iteration in range(1, MAX_ITERATIONS + 1):
        labels, loss, _ = _run(single, probabilities, labels)
        if loss <= target:
            return iteration
        if loss < lowest:
            lowest, lowest_at = loss, iteration
        if iteration - lowest_at > PATIENCE:
            break
    return None


def _time_side_by_side(
    candidates: list[tuple[str, float | None, Solver]], probabilities: FloatArray, target: float
) -> list[SolverTiming]:
    """Time all candidates in turns, so that a slow moment of the machine hits all of them; medians."""
    counts = [_iterations_to(solver, probabilities, target) for _, _, solver in candidates]
    runs = [_with_iterations(solver, count or 20) for (_, _, solver), count in zip(candidates, counts, strict=True)]
    seconds = np.median([[_run(solver, probabilities)[2] for solver in runs] for _ in range(REPEATS)], axis=0)
    return [
        SolverTiming(
            n_clusters=probabilities.shape[1],
            method=method,
            step_size=step_size,
            seconds_per_iteration=float(time_taken / (count or 20)),
            iterations=count,
            seconds=float(time_taken) if count else None,
        )
        for (method, step_size, _), count, time_taken in zip(candidates, counts, seconds, strict=True)
    ]


def _best_pgd_over_em(block: list[SolverTiming]) -> float | None:
    em = next(timing.seconds for timing in block if timing.step_size is None)
    pgd = [timing.seconds for timing in block if timing.step_size is not None and timing.seconds is not None]
    return min(pgd) / em if em is not None and pgd else None


def _row_loop_over_kernel(probabilities: FloatArray, fairness: float, n_iterations: int = 20) -> float:
    """Time per iteration of the row-by-row loop, in units of the kernel's."""
    rows = np.ascontiguousarray(probabilities[0].T, np.float64)
    solver = EMSolver(fairness, max_iter=n_iterations, tol=0.0)
    em_row_by_row(rows, rows.copy(), fairness, 1)
    ratios = []
    for _ in range(REPEATS):
        labels = rows.copy()
        begin = time.perf_counter()
        em_row_by_row(rows, labels, fairness, n_iterations)
        loop = time.perf_counter() - begin
        ratios.append(loop / _run(solver, probabilities)[2])
    return float(np.median(ratios))


@compiled(error_model="numpy")
def em_row_by_row(
    probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.float64], fairness: float, n_iterations: int
) -> None:
    """EM as Algorithm 1 has it (with λ of the loss): point by point in float64. The kernel's yardstick."""
    n_points, n_clusters = labels.shape
    mean = np.empty(n_clusters)
    for _ in range(n_iterations):
        mean[:] = 0.0
        for i in range(n_points):
            for k in range(n_clusters):
                mean[k] += labels[i, k] / n_points
        for i in range(n_points):
            reach = 1.0
            for k in range(n_clusters):
                labels[i, k] *= fairness / n_clusters / mean[k]
                reach += labels[i, k]
            x = 0.0
            for k in range(n_clusters):
                x = max(x, probabilities[i, k] / (reach - labels[i, k]))
            excess = 1.0
            while excess > 1e-9:
                excess = -1.0
                slope = 0.0
                for k in range(n_clusters):
                    inverse = 1 / (reach * x - probabilities[i, k])
                    excess += labels[i, k] * inverse * x
                    slope += labels[i, k] * inverse * inverse * probabilities[i, k]
                x += (1 + excess) * excess / slope
            for k in range(n_clusters):
                labels[i, k] *= x / (reach * x - probabilities[i, k])
