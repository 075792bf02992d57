"""Table 1 of arXiv:2303.07321: how fast EM and projected gradient descent come near the minimum of L_CCE+.

python benchmarks/paper/table1.py [-k 2 20 200] [--fairness 1 10 100]

Iterations and time until the loss is above its minimum, which the exact solver knows, by at most a ten-thousandth. The
paper does not say its λ, when it stopped, or what it predicted; here predictions are the softmax of normal logits.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import print_table

from cceclust.pseudo_labels import EMSolver, ExactSolver, PGDSolver

# The paper's step sizes, by the number of clusters; they are for λ = 1 and the gradient of the mean over the points.
STEP_SIZES = {2: (1.0, 10.0, 20.0), 20: (0.1, 1.0, 5.0)}
N_POINTS = 250
DEVIATION = 3.0
TOLERANCE = 1e-4
# A run whose loss has not fallen for this many iterations circles around the minimum or has diverged.
PATIENCE = 200
# Number of iterations to time where the minimum is not reached, and how often all are timed, in turns.
SAMPLE = 20
REPEATS = 5

Array = NDArray[np.float64]


def solvers(n_clusters: int, fairness: float) -> dict[str, Any]:
    """Return what is compared: EM first, then each step size divided by λ, as larger ones diverge."""
    steps = [*STEP_SIZES.get(n_clusters, STEP_SIZES[20]), N_POINTS / n_clusters]
    by_step = {
        f"PGD, η = {step / max(1.0, fairness):g}": PGDSolver(fairness, step_size=step / max(1.0, fairness) / N_POINTS)
        for step in steps
    }
    return {"EM": EMSolver(fairness), **by_step, "exact": ExactSolver(fairness, tol=TOLERANCE)}


def solve(solver: Any, probabilities: Array, start: Array, n_iterations: int) -> tuple[Array, float]:
    """Return the labels and the loss after so many iterations."""
    labels = start.copy()
    solved = dataclasses.replace(solver, max_iter=n_iterations, tol=0.0).solve(probabilities, labels, WEIGHTS)
    return labels, solved.loss


WEIGHTS = np.full(N_POINTS, 1 / N_POINTS)


def iterations_to(solver: Any, probabilities: Array, target: float, most: int) -> int | None:
    """Count the iterations until the loss reaches the target, if it does."""
    if solver.starts_afresh:
        return int(solver.solve(probabilities, probabilities.copy(), WEIGHTS).iterations)
    labels, lowest, lowest_at = probabilities, np.inf, 0
    for iteration in range(1, most + 1):
        labels, loss = solve(solver, probabilities, labels, 1)
        if loss <= target:
            return iteration
        if loss < lowest:
            lowest, lowest_at = loss, iteration
        if iteration - lowest_at > PATIENCE:
            break
    return None


def measure(n_clusters: int, fairness: float, most: int, seed: int) -> Iterator[list[Any]]:
    """Yield a row of the table for each solver."""
    odds = np.exp(DEVIATION * np.random.default_rng(seed).normal(size=(n_clusters, N_POINTS)))
    probabilities = odds / odds.sum(axis=0)
    exact = ExactSolver(fairness, tol=TOLERANCE / 1000).solve(probabilities, probabilities.copy(), WEIGHTS)
    chosen = solvers(n_clusters, fairness)
    counts = [iterations_to(each, probabilities, (1 + TOLERANCE) * exact.loss, most) for each in chosen.values()]
    seconds = np.empty((REPEATS, len(chosen)))
    for turn in range(REPEATS):
        for place, (solver, count) in enumerate(zip(chosen.values(), counts, strict=True)):
            begin = time.perf_counter()
            solve(solver, probabilities, probabilities, count or SAMPLE)
            seconds[turn, place] = time.perf_counter() - begin
    for name, count, taken in zip(chosen, counts, np.median(seconds, axis=0), strict=True):
        ratio = f"{taken / np.median(seconds[:, 0]):.3g}" if count and counts[0] else "–"
        yield [
            n_clusters,
            f"{fairness:g}",
            name,
            f"{1e3 * taken / (count or SAMPLE):.3f}",
            count or "not reached",
            ratio,
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", type=int, nargs="+", default=[2, 20, 200], help="numbers of clusters")
    parser.add_argument("--fairness", type=float, nargs="+", default=[1.0, 10.0, 100.0], help="values of λ")
    parser.add_argument("--most", type=int, default=20_000, help="iterations after which to give up")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = (
        row
        for k in options.k
        for fairness in options.fairness
        for row in measure(k, fairness, options.most, options.seed)
    )
    print_table(["K", "λ", "solver", "ms per iteration", "iterations", "time / EM's"], rows)


if __name__ == "__main__":
    main()
