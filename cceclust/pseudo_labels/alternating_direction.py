"""Pseudo-labels for Shannon's cross-entropy with a soft fairness term: the loss of MIADM.

Equation 5 of arXiv:2303.07321.

M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between discriminative models and
K-means", TPAMI 2021 (arXiv:1810.04246) train on

    L_CE+KL = Σ_i w_i H(y_i, σ_i) + λ KL(ȳ ‖ u),    ȳ = Σ_i w_i y_i,

alternating between the model and y, for which they give an approximate update. This solver reaches the minimum
over y. It alternates between an auxiliary distribution and y:

    r_ik = y_ik u_k / ȳ_k;    y_i = argmin H(y, σ_i) + λ KL(y ‖ r_i),  that is  y_ik ∝ r_ik σ_ik^(1/λ).

Since KL(ȳ ‖ u) ≤ Σ_i w_i KL(y_i ‖ r_i) with equality at the y that gave r (the log-sum inequality), no iteration
raises the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels.solver import Solved
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import FloatArray, as_prior, check_count, check_non_negative, uniform_unless_given

__all__ = ["AlternatingDirectionSolver"]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")


@dataclass(frozen=True, eq=False)
class AlternatingDirectionSolver:
    """Minimise the mean of H(y, σ) + λ KL(ȳ ‖ u), as a :class:`~cceclust.pseudo_labels.Solver`.

    Parameters
    ----------
    fairness : float
        λ; Jabi et al. use 1.
    prior : array (n_clusters,), optional
        u; uniform by default.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when an iteration lowers the loss by less than this fraction of it. 0 runs all iterations.

    Examples
    --------
    >>> from cceclust.pseudo_labels import AlternatingDirectionSolver, solve_pseudo_labels
    >>> sigma = [[0.95, 0.05], [0.9, 0.1], [0.6, 0.4], [0.55, 0.45]]
    >>> solve_pseudo_labels(AlternatingDirectionSolver(), sigma).pseudo_labels.round(1)
    array([[1. , 0. ],
           [1. , 0. ],
           [0.4, 0.6],
           [0. , 1. ]])
    """

    starts_afresh: ClassVar[bool] = False
    takes_logarithms: ClassVar[bool] = False

    fairness: float = 1.0
    prior: npt.ArrayLike | None = None
    max_iter: int = 1000
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_non_negative(self.fairness, "fairness")
        check_non_negative(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        object.__setattr__(self, "prior", as_prior(self.prior))

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Lower the loss over the pseudo-labels, in place."""
        prior = uniform_unless_given(self.prior, len(probabilities))
        fairness, tol = float(self.fairness), float(self.tol)
        return Solved(*_alternate(probabilities, pseudo_labels, prior, weights, fairness, self.max_iter, tol))


@kernel
def _alternate(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    max_iter: int,
    tol: float,
) -> tuple[float, int]:
    """Improve the labels, in place; return the loss at the end and the number of iterations."""
    cost, sharp = np.empty_like(sigma), np.empty_like(sigma)
    total, mean = np.empty(sigma.shape[1], sigma.dtype), np.empty(sigma.shape[0], sigma.dtype)
    _prepare(sigma, labels, prior, fairness, cost, sharp, total)
    loss = _evaluate(cost, labels, prior, weights, fairness, mean, total)
    done = 0
    while done < max_iter:
        _iterate(sharp, labels, prior, mean, total)
        previous = loss
        loss = _evaluate(cost, labels, prior, weights, fairness, mean, total)
        done += 1
        if tol > 0 and previous - loss <= tol * loss:
            break
    return loss, done


@part
def _prepare(
    sigma: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    fairness: float,
    cost: FloatArray,
    sharp: FloatArray,
    largest: FloatArray,
) -> None:
    """−ln σ, with 0 counted as the smallest number; (σ / σ_max)^(1/λ); and pseudo-labels above 0."""
    n_clusters, n_points = sigma.shape
    smallest = np.finfo(sigma.dtype).tiny
    floor = sigma.dtype.type(smallest**0.4)
    for i in range(n_points):
        largest[i] = smallest
    for k in range(n_clusters):
        for i in range(n_points):
            largest[i] = max(largest[i], sigma[k, i])
    for k in range(n_clusters):
        lift = floor if prior[k] > 0 else 0.0
        for i in range(n_points):
            cost[k, i] = -np.log(max(sigma[k, i], smallest))
            sharp[k, i] = max((sigma[k, i] / largest[i]) ** (1.0 / fairness), floor)
            labels[k, i] = max(labels[k, i], lift)


@part
def _iterate(sharp: FloatArray, labels: FloatArray, prior: FloatArray, mean: FloatArray, total: FloatArray) -> None:
    """y ∝ y · σ^(1/λ) · u / ȳ; entries with a positive prior are kept above 0."""
    n_clusters, n_points = labels.shape
    zero = labels.dtype.type(0)
    floor = labels.dtype.type(np.finfo(labels.dtype).tiny ** 0.4)
    for i in range(n_points):
        total[i] = zero
    for k in range(n_clusters):
        y = labels[k]
        power = sharp[k]
        ratio = labels.dtype.type(prior[k] / mean[k]) if prior[k] > 0 else zero
        for i in range(n_points):
            y[i] *= power[i] * ratio
            total[i] += y[i]
    for k in range(n_clusters):
        y = labels[k]
        lift = floor if prior[k] > 0 else zero
        for i in range(n_points):
            value = y[i] / total[i]
            y[i] = value if value > lift else lift


@part
def _evaluate(
    cost: FloatArray,
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    fairness: float,
    mean: FloatArray,
    terms: FloatArray,
) -> float:
    """Return the loss and leave ȳ in `mean`."""
    n_clusters, n_points = labels.shape
    loss = 0.0
    for k in range(n_clusters):
        y = labels[k]
        price = cost[k]
        for i in range(n_points):
            terms[i] = weights[i] * y[i]
        size = float(sum_in_pairs(terms))
        for i in range(n_points):
            terms[i] = weights[i] * y[i] * price[i]
        mean[k] = size
        loss += sum_in_pairs(terms)
        if fairness * size > 0:
            loss += fairness * size * np.log(size / prior[k])
    return loss
