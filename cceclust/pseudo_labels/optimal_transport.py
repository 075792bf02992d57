"""Balanced pseudo-labels by optimal transport: SeLa's solver (equation 4 of arXiv:2303.07321).

Y. M. Asano, C. Rupprecht, A. Vedaldi, "Self-labelling via simultaneous clustering and representation learning",
ICLR 2020 (arXiv:1911.05371): minimise the mean of H(y, σ) subject to ȳ = u, with an entropy term of weight 1/s that
makes Sinkhorn's scaling solve it (M. Cuturi, "Sinkhorn distances", NIPS 2013):

    y_ik = α_k β_i σ_ik^s,    Σ_k y_ik = 1,    Σ_i w_i y_ik = u_k.

SeLa takes the largest entry of each row as a one-hot label; the soft solution is useful as well.

All is computed from ln σ, in float64: σ^s of a head that is sure of itself is 0 in every row of a cluster that it does
not predict, and such a column cannot be scaled to its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels.solver import Solved
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import (
    FloatArray,
    as_prior,
    check_count,
    check_non_negative,
    check_positive,
    uniform_unless_given,
)

__all__ = ["OptimalTransportSolver"]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")

Doubles = npt.NDArray[np.float64]

# A sum below this has lost the digits of terms that vanished in it; it is then computed from its largest term.
SMALLEST_SUM = 1e-200


@dataclass(frozen=True, eq=False)
class OptimalTransportSolver:
    """SeLa's balanced assignment, as a :class:`~cceclust.pseudo_labels.Solver`.

    The result does not depend on the start. The loss it reports is the mean of H(y, σ).

    Parameters
    ----------
    prior : array (n_clusters,), optional
        u, the sizes that the clusters must have; uniform by default.
    sharpness : float
        s, the exponent of the probabilities: larger values come closer to unregularised transport. SeLa uses 25.
    one_hot : bool
        Round to the largest entry of each row.
    max_iter : int
        Maximum number of Sinkhorn iterations.
    tol : float
        Stop when the error of the sizes, Σ_k |ȳ_k − u_k|, is below this. 0 runs all iterations.

    Examples
    --------
    >>> from cceclust.pseudo_labels import OptimalTransportSolver, solve_pseudo_labels
    >>> sigma = [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3]]
    >>> solve_pseudo_labels(OptimalTransportSolver(), sigma).pseudo_labels.round(1)
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    starts_afresh: ClassVar[bool] = True
    takes_logarithms: ClassVar[bool] = True

    prior: npt.ArrayLike | None = None
    sharpness: float = 25.0
    one_hot: bool = False
    max_iter: int = 1000
    tol: float = 1e-3

    def __post_init__(self) -> None:
        check_positive(self.sharpness, "sharpness")
        check_non_negative(self.tol, "tol")
        check_count(self.max_iter, "max_iter")
        object.__setattr__(self, "prior", as_prior(self.prior))

    def solve(
        self, probabilities: FloatArray, pseudo_labels: FloatArray, weights: FloatArray, *, certify: bool = False
    ) -> Solved:
        """Replace the pseudo-labels by balanced ones; `probabilities` are ln σ."""
        logarithms = probabilities.astype(np.float64)
        share = weights / weights.sum(dtype=np.float64)
        prior = uniform_unless_given(self.prior, len(probabilities))
        labels, done = _balance(self.sharpness * logarithms, prior, share, self.max_iter, float(self.tol))
        if self.one_hot:
            labels = np.eye(len(labels))[labels.argmax(axis=0)].T
        pseudo_labels[...] = labels
        return Solved(float(-((labels * logarithms).sum(axis=0) @ share)), done)


@kernel
def _balance(sharp: Doubles, prior: Doubles, weights: Doubles, max_iter: int, tol: float) -> tuple[Doubles, int]:
    """Scale exp(sharp), of shape (n_clusters, n_points); return the labels and the number of iterations."""
    labels, per_point = np.empty_like(sharp), np.empty((2, sharp.shape[1]))
    # Logarithms of the scales of the clusters.
    pull = np.where(prior > 0, 0.0, -np.inf)
    _scale_points(sharp, pull, labels, per_point)
    done = 0
    while done < max_iter:
        off = _scale_clusters(sharp, prior, weights, labels, per_point, pull)
        _scale_points(sharp, pull, labels, per_point)
        done += 1
        if off < tol:
            break
    return labels, done


@part
def _scale_points(sharp: Doubles, pull: Doubles, labels: Doubles, per_point: Doubles) -> None:
    """Fill in the labels, whose points sum to 1; leave the logarithms of the sums before that in per_point[0]."""
    n_clusters, n_points = sharp.shape
    largest, total = per_point
    for i in range(n_points):
        largest[i] = -np.inf
        total[i] = 0.0
    for k in range(n_clusters):
        for i in range(n_points):
            largest[i] = max(largest[i], sharp[k, i] + pull[k])
    for k in range(n_clusters):
        for i in range(n_points):
            labels[k, i] = np.exp(sharp[k, i] + pull[k] - largest[i])
            total[i] += labels[k, i]
    for k in range(n_clusters):
        for i in range(n_points):
            labels[k, i] /= total[i]
    for i in range(n_points):
        largest[i] += np.log(total[i])


@part
def _scale_clusters(
    sharp: Doubles, prior: Doubles, weights: Doubles, labels: Doubles, per_point: Doubles, pull: Doubles
) -> float:
    """Move `pull` so that every cluster has its size; return the error of the sizes before."""
    n_clusters, n_points = sharp.shape
    sums, terms = per_point
    off = 0.0
    for k in range(n_clusters):
        if prior[k] == 0:
            continue
        for i in range(n_points):
            terms[i] = weights[i] * labels[k, i]
        size = sum_in_pairs(terms)
        off += abs(size - prior[k])
        if size >= SMALLEST_SUM:
            pull[k] += np.log(prior[k] / size)
            continue
        largest = -np.inf
        for i in range(n_points):
            if weights[i] > 0:
                largest = max(largest, sharp[k, i] - sums[i])
        for i in range(n_points):
            terms[i] = weights[i] * np.exp(min(sharp[k, i] - sums[i] - largest, 0.0))
        pull[k] = np.log(prior[k] / sum_in_pairs(terms)) - largest
    return off
