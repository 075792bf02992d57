"""What all solvers for pseudo-labels have in common: one protocol, one result, one way to call them."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cceclust.errors import InputError
from cceclust.validation import FloatArray, as_distributions, as_weights

__all__ = ["PseudoLabels", "Solved", "Solver", "logarithms_of", "solve_pseudo_labels"]


class PseudoLabels(NamedTuple):
    """Pseudo-labels and how they were reached.

    Attributes
    ----------
    pseudo_labels : array (n_samples, n_clusters)
        Every row sums to 1; of the type of the probabilities.
    iterations : int
        Iterations done.
    converged : bool
        Whether the tolerance was met before the iterations ran out.
    loss_curve : array (iterations + 1,) or None
        The loss at the start and after every iteration, if asked for.
    gap : float or None
        Upper bound of the loss minus its minimum; known only for L_CCE+. The exact solver computes it before its
        labels are rounded to float32.
    """

    pseudo_labels: FloatArray
    iterations: int
    converged: bool
    loss_curve: npt.NDArray[np.float64] | None
    gap: float | None = None


class Solved(NamedTuple):
    """The loss of the labels that a solver leaves, its iterations, and a bound of the distance to the minimum."""

    loss: float
    iterations: int
    gap: float | None = None


class Solver(Protocol):
    """A way to find pseudo-labels; an immutable set of parameters that many threads may share.

    `solve` works in place, K-major: `probabilities` and `pseudo_labels` have shape (n_clusters, n_points), the same
    type, float32 or float64, and are C-contiguous. `pseudo_labels` holds the start and then the result. `weights`
    (n_points,) have that type too and sum to 1. With `certify`, a gap is returned if the solver can bound it.

    A solver with `starts_afresh` ignores the labels that it is given. One with `takes_logarithms` wants ln σ in the
    place of σ, since small probabilities decide its labels, and float32 rounds them to 0.
    """

    starts_afresh: ClassVar[bool]
    takes_logarithms: ClassVar[bool]

    @property
    def max_iter(self) -> int:
        """Maximum number of iterations."""

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Replace the pseudo-labels by better ones."""


def solve_pseudo_labels(
    solver: Solver,
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
    probabilities : array (n_samples, n_clusters)
        σ, one distribution per row. float32 is solved in float32, everything else in float64.
    sample_weight : array (n_samples,), optional
        Weights of the points; only their ratios matter.
    initial : array (n_samples, n_clusters), optional
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
    weights = as_weights(sample_weight, len(sigma), sigma.dtype)
    columns, first = np.array(sigma.T, order="C"), np.array(start.T, sigma.dtype, order="C")
    known = logarithms_of(columns) if solver.takes_logarithms else columns
    labels = first.copy()
    solved = solver.solve(known, labels, weights, certify=True)
    curve = _loss_curve(solver, known, first, weights, solved.iterations) if return_loss_curve else None
    converged = solved.iterations < solver.max_iter
    return PseudoLabels(np.ascontiguousarray(labels.T), solved.iterations, converged, curve, solved.gap)


def logarithms_of(probabilities: FloatArray) -> FloatArray:
    """Return ln σ, with 0 counted as the smallest number of the type."""
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).tiny)))


def _loss_curve(
    solver: Any, known: FloatArray, labels: FloatArray, weights: FloatArray, n_iterations: int
) -> npt.NDArray[np.float64]:
    """Repeat a solution one iteration at a time; a solver that starts afresh runs one more iteration each time."""
    curve = np.empty(n_iterations + 1)
    for done in range(n_iterations + 1):
        count = done if solver.starts_afresh else min(done, 1)
        curve[done] = dataclasses.replace(solver, max_iter=count, tol=0.0).solve(known, labels, weights).loss
    return curve
