"""How much does a kernel that runs over many points at once gain over a loop that takes one point after the other?

Prints, for each number of clusters, the time of EM in a compiled loop over rows, as Algorithm 1 of arXiv:2303.07321 has
it, divided by that of :class:`cceclust.pseudo_labels.EMSolver`: 250 points, λ = 1, float64, medians of runs in turns.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels import EMSolver, solve_pseudo_labels

N_POINTS = 250
N_ITERATIONS = 20
REPEATS = 5


def main() -> None:
    """Check that both give the same labels, and print one line for each number of clusters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clusters", type=int, nargs="*", default=[2, 20, 200], help="numbers of clusters")
    for n_clusters in parser.parse_args().clusters:
        logits = 3 * np.random.default_rng(0).normal(size=(N_POINTS, n_clusters))
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        print(
            f"K = {n_clusters}: a row-by-row loop takes {ratio(odds / odds.sum(axis=1, keepdims=True)):.3g} × EM's time"
        )


def ratio(probabilities: npt.NDArray[np.float64], fairness: float = 1.0) -> float:
    """Return the loop's time in units of the kernel's, both in float64."""
    solver = EMSolver(fairness, max_iter=N_ITERATIONS, tol=0.0)
    stack = np.ascontiguousarray(probabilities.T)[None]
    weights = np.full(N_POINTS, 1 / N_POINTS)
    workspace = solver.workspace(*stack.shape[1:], np.float64)
    losses, iterations = np.empty(1), np.empty(1, np.int64)
    expected = solve_pseudo_labels(solver, probabilities).pseudo_labels
    ratios = []
    for _ in range(REPEATS + 1):
        rows, columns = probabilities.copy(), stack.copy()
        begin = time.perf_counter()
        em_row_by_row(probabilities, rows, fairness, N_ITERATIONS)
        middle = time.perf_counter()
        solver.solve(stack, columns, weights, workspace, losses, iterations)
        ratios.append((middle - begin) / (time.perf_counter() - middle))
        np.testing.assert_allclose(rows, expected, atol=1e-9)
    # The first run compiles the loop.
    return float(np.median(ratios[1:]))


@compiled(error_model="numpy")
def em_row_by_row(
    probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.float64], fairness: float, n_iterations: int
) -> None:
    """EM as Algorithm 1 has it (with λ of the loss): point by point."""
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


if __name__ == "__main__":
    main()
