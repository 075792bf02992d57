"""How fast do the solvers for pseudo-labels come near the minimum? Table 1 of arXiv:2303.07321, and beyond."""

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

from cceclust.pseudo_labels import EMSolver, ExactSolver, PGDSolver, Solver
from cceclust.validation import FloatArray

__all__ = ["SolverBenchmark", "SolverTiming", "StartUp", "benchmark_solvers", "measure_start_up"]

# Step sizes of Table 1; other numbers of clusters use the last ones in the table.
PAPER_STEP_SIZES = {2: (1.0, 10.0, 20.0), 20: (0.1, 1.0, 5.0), 200: (0.1, 1.0, 5.0)}
MAX_ITERATIONS = 20_000
# A run whose loss has not fallen for this many iterations circles around the minimum or has diverged.
PATIENCE = 200
# Number of iterations to time where the minimum is not reached.
SAMPLE = 20
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
    """One row of the table: one method, one number of clusters and one λ.

    `iterations` and `seconds` are those needed to come near the minimum. None means that the method did not get there.
    """

    n_clusters: int
    fairness: float
    method: str
    seconds_per_iteration: float
    iterations: int | None
    seconds: float | None
    seconds_over_em: float | None


@dataclass(frozen=True)
class StartUp:
    """Time of the first call of EM in a fresh process: with nothing compiled yet, and with compiled code on disk."""

    cold_seconds: float
    warm_seconds: float


@dataclass(frozen=True)
class SolverBenchmark:
    """Timings of all methods until the loss is above its minimum by no more than `tolerance` times the minimum.

    `pgd_wins` tells for which (n_clusters, fairness) projected gradient descent, at its best step size, is faster than
    plain EM.
    """

    n_points: int
    tolerance: float
    timings: list[SolverTiming]
    pgd_wins: list[tuple[int, float]]


def benchmark_solvers(
    *,
    n_clusters: Iterable[int] = (2, 20, 200),
    n_points: int = 250,
    fairness: Iterable[float] = (1.0, 10.0, 100.0),
    tolerance: float = 1e-4,
    random_state: int = 0,
    on_done: Callable[[int, float], None] = lambda k, fairness: None,
) -> SolverBenchmark:
    """Time EM, plain and accelerated, projected gradient descent and the exact solver to the same loss, in float64.

    Parameters
    ----------
    n_clusters : iterable of int
        Numbers of clusters.
    n_points : int
        Points in a batch.
    fairness : iterable of float
        Values of λ, each with its own block of the table.
    tolerance : float
        How far above the minimum the loss may be, as a fraction of it.
    random_state : int
        Seed of the random probabilities.
    on_done : callable
        Called with each number of clusters and λ once they are measured.

    Returns
    -------
    SolverBenchmark
    """
    timings: list[SolverTiming] = []
    pgd_wins: list[tuple[int, float]] = []
    values = list(fairness)
    for k in n_clusters:
        probabilities = _random_probabilities(k, n_points, random_state)
        for value in values:
            block = _time_side_by_side(_candidates(k, n_points, value, tolerance), probabilities, value, tolerance)
            timings += block
            ratios = [timing.seconds_over_em for timing in block if timing.method.startswith("PGD")]
            if min((ratio for ratio in ratios if ratio is not None), default=np.inf) < 1:
                pgd_wins.append((k, value))
            on_done(k, value)
    return SolverBenchmark(n_points, tolerance, timings, pgd_wins)


def measure_start_up() -> StartUp:
    """Time EM's first call in two fresh processes that share an empty compilation cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "CCECLUST_NUMBA_CACHE": "1"}
        command = [sys.executable, "-c", FIRST_CALL]
        runs = [subprocess.run(command, env=environment, check=True, capture_output=True, text=True) for _ in range(2)]
    return StartUp(*(float(run.stdout) for run in runs))


def _random_probabilities(n_clusters: int, n_points: int, random_state: int) -> FloatArray:
    """Softmax of normal logits, K-major."""
    logits = 3 * np.random.default_rng(random_state).normal(size=(1, n_clusters, n_points))
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _candidates(n_clusters: int, n_points: int, fairness: float, tolerance: float) -> dict[str, Solver]:
    """All methods; EM comes first."""
    methods: dict[str, Solver] = {
        "EM": EMSolver(fairness, tol=0.0),
        "EM, accelerated": EMSolver(fairness, tol=0.0, accelerate=True),
        "exact": ExactSolver(fairness, tol=tolerance),
    }
    # The paper's step sizes are for λ = 1 and for the gradient of the mean over the points, the solver's for one
    # point. Step sizes that suit one λ diverge at a larger one. The last is half of what diverges on average.
    steps = [*PAPER_STEP_SIZES.get(n_clusters, PAPER_STEP_SIZES[200]), n_points / n_clusters]
    for step in (size / max(1.0, fairness) for size in steps):
        methods[f"PGD, step {step:g}"] = PGDSolver(fairness, step_size=step / n_points, tol=0.0)
    return methods


def _run(solver: Solver, probabilities: FloatArray, start: FloatArray | None = None) -> tuple[FloatArray, float, float]:
    """Solve from a start; return the pseudo-labels, the loss and the seconds in the solver."""
    _, n_clusters, n_points = probabilities.shape
    labels = (probabilities if start is None else start).copy()
    weights = np.full(n_points, 1 / n_points)
    workspace = solver.workspace(n_clusters, n_points, probabilities.dtype)
    losses, iterations = np.empty(1), np.empty(1, np.int64)
    begin = time.perf_counter()
    solver.solve(probabilities, labels, weights, workspace, losses, iterations)
    return labels, float(losses[0]), time.perf_counter() - begin


def _with_iterations(solver: Any, n_iterations: int) -> Solver:
    return dataclasses.replace(solver, max_iter=n_iterations)  # type: ignore[no-any-return]


def _iterations_to(solver: Solver, probabilities: FloatArray, target: float) -> int | None:
    """Count the iterations until the loss reaches the target, if it does."""
    labels: FloatArray | None = None
    lowest, lowest_at = np.inf, 0
    for iteration in range(1, MAX_ITERATIONS + 1):
        labels, loss, _ = _run(
            _with_iterations(solver, iteration if solver.starts_afresh else 1), probabilities, labels
        )
        if loss <= target:
            return iteration
        if loss < lowest:
            lowest, lowest_at = loss, iteration
        if iteration - lowest_at > PATIENCE:
            break
    return None


def _time_side_by_side(
    candidates: dict[str, Solver], probabilities: FloatArray, fairness: float, tolerance: float
) -> list[SolverTiming]:
    """Return median times of all candidates; they take turns, so that a slow moment of the machine hits all of them."""
    lowest = _run(ExactSolver(fairness, tol=tolerance / 1000), probabilities)[1]
    target = (1 + tolerance) * lowest
    counts = [_iterations_to(solver, probabilities, target) for solver in candidates.values()]
    runs = [
        _with_iterations(solver, count or SAMPLE) for solver, count in zip(candidates.values(), counts, strict=True)
    ]
    seconds = np.median([[_run(solver, probabilities)[2] for solver in runs] for _ in range(REPEATS)], axis=0)
    em_seconds = seconds[0] if counts[0] else None
    return [
        SolverTiming(
            n_clusters=probabilities.shape[1],
            fairness=fairness,
            method=method,
            seconds_per_iteration=float(time_taken / (count or SAMPLE)),
            iterations=count,
            seconds=float(time_taken) if count else None,
            seconds_over_em=float(time_taken / em_seconds) if count and em_seconds else None,
        )
        for method, count, time_taken in zip(candidates, counts, seconds, strict=True)
    ]
