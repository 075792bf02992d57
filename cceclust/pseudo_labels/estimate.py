"""Pseudo-labels for the self-labeling loss L_CCE+, with a choice of solvers."""

from __future__ import annotations

import dataclasses

import numpy.typing as npt

from cceclust.errors import InputError
from cceclust.pseudo_labels.em import EMSolver
from cceclust.pseudo_labels.exact import ExactSolver
from cceclust.pseudo_labels.solver import PseudoLabels, solve_pseudo_labels

__all__ = ["SOLVERS", "estimate_pseudo_labels"]

# All of them minimise L_CCE+ and take fairness, prior, max_iter and tol.
SOLVERS: dict[str, type[EMSolver | ExactSolver]] = {"em": EMSolver, "exact": ExactSolver}


def estimate_pseudo_labels(
    probabilities: npt.ArrayLike,
    *,
    solver: str = "em",
    fairness: float = 1.0,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    max_iter: int | None = None,
    tol: float = 1e-6,
    initial: npt.ArrayLike | None = None,
    return_loss_curve: bool = False,
) -> PseudoLabels:
    """Find the pseudo-labels y that minimise L_CCE+ = mean of H₂(y, σ) + λ KL(u ‖ ȳ) (equation 11).

    Parameters
    ----------
    probabilities : array (n_samples, n_clusters)
        σ, one distribution per row. EM solves float32 in float32; everything else is computed in float64.
    solver : {"em", "exact"}
        The paper's EM (:class:`EMSolver`), or the minimum itself, to a duality gap of `tol` (:class:`ExactSolver`).
        Where λ is 10 or more, EM stops far from the minimum.
    fairness : float
        λ, the weight of the divergence in the loss. (In Algorithm 1 of the paper, as printed, it is smaller by a
        factor of n_samples.)
    prior : array (n_clusters,), optional
        u, the expected sizes of the clusters; uniform by default. Zeros are allowed.
    sample_weight : array (n_samples,), optional
        Weights of the points; only their ratios matter.
    max_iter : int, optional
        Maximum number of iterations; by default 1000 for EM and 100 for the exact solver.
    tol : float
        EM stops when an iteration lowers the loss by less than this fraction of it, the exact solver when the loss is
        at most this fraction of it above the minimum. 0 runs all iterations.
    initial : array (n_samples, n_clusters), optional
        Where EM starts; the probabilities by default. Exact zeros become tiny numbers where the prior is
        positive, since EM could never leave them. The exact solver ignores it.
    return_loss_curve : bool
        Also record the loss at the start and after every iteration; this repeats the iterations.

    Returns
    -------
    PseudoLabels
        A named tuple: pseudo_labels, iterations, converged, loss_curve, gap.

    Examples
    --------
    The first cluster is crowded, so the least certain of its points go to the other one.

    >>> import numpy as np
    >>> from cceclust import estimate_pseudo_labels
    >>> sigma = np.array([[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]])
    >>> estimate_pseudo_labels(sigma, fairness=10).pseudo_labels.argmax(axis=1)
    array([0, 0, 1, 1])

    After 20 iterations EM is far from the minimum; the gap is an upper bound of the distance.

    >>> estimate_pseudo_labels(sigma, fairness=100, max_iter=20).gap.__round__(2)
    0.08
    >>> estimate_pseudo_labels(sigma, fairness=100, solver="exact").gap < 1e-6
    True
    """
    if solver not in SOLVERS:
        raise InputError(f"solver={solver!r}; expected one of {', '.join(map(repr, SOLVERS))}")
    chosen = SOLVERS[solver](fairness=fairness, prior=prior, tol=tol)
    if max_iter is not None:
        chosen = dataclasses.replace(chosen, max_iter=max_iter)
    return solve_pseudo_labels(
        chosen, probabilities, sample_weight=sample_weight, initial=initial, return_loss_curve=return_loss_curve
    )
