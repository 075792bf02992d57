"""What all solvers for pseudo-labels have in common: one protocol, one result, one way to call them."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cceclust.errors import InputError
from cceclust.validation import FloatArray, as_distributions, as_weights

__all__ = ["PseudoLabels", "Solver", "solve_pseudo_labels"]

SomeSolver = TypeVar("SomeSolver", bound="Solver")


class PseudoLabels(NamedTuple):
    """Pseudo-labels and how they were reached; for a stack, one entry or array per restart.

    Attributes
    ----------
    pseudo_labels : array, of the shape and type of the probabilities
        Every row sums to 1.
    iterations : int or array (n_restarts,)
        Iterations done.
    converged : bool or array (n_restarts,)
        Whether the tolerance was met before the iterations ran out.
    loss_curve : array (iterations + 1,), or a list of them, or None
        The loss at the start and after every iteration, if asked for.
    gap : float, or array (n_restarts,), or None
        Upper bound of the loss minus its minimum; known only for L_CCE+. The exact solver computes it before its
        labels are rounded to float32.
    """

    pseudo_labels: FloatArray
    iterations: int | npt.NDArray[np.int64]
    converged: bool | npt.NDArray[np.bool_]
    loss_curve: npt.NDArray[np.float64] | list[npt.NDArray[np.float64]] | None
    gap: float | npt.NDArray[np.float64] | None = None


class Solver(Protocol):
    """A way to find pseudo-labels; an immutable set of parameters that many threads may share.

    `solve` works in place on a K-major stack: `probabilities` and `pseudo_labels` have shape
    (n_restarts, n_clusters, n_points), the same type, float32 or float64, and are C-contiguous. `pseudo_labels` holds
    the start and then the result. `weights` (n_points,) have that type too and sum to 1. `workspace` comes from
    the method of this name, one for each thread. `losses` and `iterations` (n_restarts,) are outputs, and so are `gaps`
    (n_restarts,), if given, by solvers that can bound how far the losses are above the minimum.

    A solver with `starts_afresh` ignores the labels that it is given.
    """

    starts_afresh: ClassVar[bool]

    @property
    def max_iter(self) -> int:
        """Maximum number of iterations."""

    def workspace(self, n_clusters: int, n_points: int, dtype: npt.DTypeLike) -> Any:
        """Allocate the scratch memory of one thread."""

    def solve(
        self,
        probabilities: FloatArray,
        pseudo_labels: FloatArray,
        weights: FloatArray,
        workspace: Any,
        losses: npt.NDArray[np.float64],
        iterations: npt.NDArray[np.int64],
        gaps: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Replace the pseudo-labels of every restart by better ones."""


def solve_pseudo_labels(
    solver: SomeSolver,
    probabilities: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    initial: npt.ArrayLike | None = None,
    return_loss_curve: bool = False,
) -> PseudoLabels:
    """Find the pseudo-labels of rows of probabilities with any of the solvers.

    Parameters
    ----------
    solver : Solver
        For example ``PGDSolver(fairness=10, step_size=5)``.
    probabilities : array (n_samples, n_clusters) or (n_restarts, n_samples, n_clusters)
        σ, one distribution per row. float32 is solved in float32, everything else in float64.
    sample_weight : array (n_samples,), optional
        Weights of the points; only their ratios matter.
    initial : array of the shape of `probabilities`, optional
        Start of the iterations; by default the probabilities themselves.
    return_loss_curve : bool
        Also record the loss at the start and after every iteration; this repeats the iterations.

    Returns
    -------
    PseudoLabels

    Examples
    --------
    >>> from cceclust.pseudo_labels import OptimalTransportSolver, solve_pseudo_labels
    >>> result = solve_pseudo_labels(OptimalTransportSolver(one_hot=True), [[0.9, 0.1], [0.7, 0.3]])
    >>> result.pseudo_labels
    array([[1., 0.],
           [0., 1.]])
    """
    sigma = as_distributions(probabilities, "probabilities")
    start = sigma if initial is None else as_distributions(initial, "initial")
    if start.shape != sigma.shape:
        raise InputError(f"initial has shape {start.shape}, but probabilities have shape {sigma.shape}")
    weights = as_weights(sample_weight, sigma.shape[-2], sigma.dtype)
    stack = _to_cluster_major(sigma)
    labels = _to_cluster_major(start.astype(sigma.dtype, copy=False))
    first = labels.copy() if return_loss_curve else labels
    gaps = np.full(len(stack), np.nan)
    _, iterations = _run(solver, stack, labels, weights, gaps)

    curves = None
    if return_loss_curve:
        curves = [
            _loss_curve(solver, stack[r : r + 1], first[r : r + 1], weights, count)
            for r, count in enumerate(iterations)
        ]
    result = np.ascontiguousarray(labels.transpose(0, 2, 1)).reshape(sigma.shape)
    converged = iterations < solver.max_iter
    known = not np.isnan(gaps).any()
    if sigma.ndim == 3:
        return PseudoLabels(result, iterations, converged, curves, gaps if known else None)
    return PseudoLabels(
        result,
        int(iterations[0]),
        bool(converged[0]),
        curves[0] if curves else None,
        float(gaps[0]) if known else None,
    )


def _to_cluster_major(rows: FloatArray) -> FloatArray:
    """Copy (n, k) or (r, n, k) to a contiguous, writable (r, k, n)."""
    stack = rows if rows.ndim == 3 else rows[None]
    return np.array(stack.transpose(0, 2, 1), order="C")


def _run(
    solver: Solver,
    stack: FloatArray,
    labels: FloatArray,
    weights: FloatArray,
    gaps: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    n_restarts, n_clusters, n_points = stack.shape
    losses = np.empty(n_restarts)
    iterations = np.empty(n_restarts, np.int64)
    workspace = solver.workspace(n_clusters, n_points, stack.dtype)
    solver.solve(stack, labels, weights, workspace, losses, iterations, gaps)
    return losses, iterations


def _loss_curve(
    solver: Solver, stack: FloatArray, labels: FloatArray, weights: FloatArray, n_iterations: int
) -> npt.NDArray[np.float64]:
    """Repeat a solution one iteration at a time; a solver that starts afresh runs one more iteration each time."""
    curve = np.empty(n_iterations + 1)
    for done in range(n_iterations + 1):
        count = done if solver.starts_afresh else min(done, 1)
        single = dataclasses.replace(solver, max_iter=count, tol=0.0)  # type: ignore[type-var]
        curve[done] = _run(single, stack, labels, weights)[0][0]
    return curve
