"""Balanced pseudo-labels by optimal transport: SeLa's solver (equation 4 of arXiv:2303.07321).

Y. M. Asano, C. Rupprecht, A. Vedaldi, "Self-labelling via simultaneous clustering and representation learning",
ICLR 2020 (arXiv:1911.05371): minimise the mean of H(y, σ) subject to ȳ = u, with an entropy term of weight 1/s that
makes Sinkhorn's scaling solve it (M. Cuturi, "Sinkhorn distances", NIPS 2013):

    y_ik = α_k β_i σ_ik^s,    Σ_k y_ik = 1,    Σ_i w_i y_ik = u_k.

SeLa takes the largest entry of each row as a one-hot label; the soft solution is useful as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.pseudo_labels.summation import sum_in_pairs
from cceclust.validation import (
    FloatArray,
    as_prior,
    check_count,
    check_non_negative,
    check_positive,
    uniform_unless_given,
)

__all__ = ["OptimalTransportSolver", "sinkhorn_stack"]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")


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

    def workspace(self, n_clusters: int, n_points: int, dtype: npt.DTypeLike) -> tuple[FloatArray, FloatArray]:
        """Allocate the scratch memory of one thread."""
        return np.empty((2, n_points), dtype), np.empty(n_clusters, dtype)

    def solve(
        self,
        probabilities: FloatArray,
        pseudo_labels: FloatArray,
        weights: FloatArray,
        workspace: tuple[FloatArray, FloatArray],
        losses: npt.NDArray[np.float64],
        iterations: npt.NDArray[np.int64],
        gaps: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Replace the pseudo-labels of every restart by balanced ones."""
        sinkhorn_stack(
            probabilities,
            pseudo_labels,
            uniform_unless_given(self.prior, probabilities.shape[1]),
            weights,
            float(self.sharpness),
            bool(self.one_hot),
            self.max_iter,
            float(self.tol),
            *workspace,
            losses,
            iterations,
        )


@kernel
def sinkhorn_stack(
    probabilities: FloatArray,
    pseudo_labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    sharpness: float,
    one_hot: bool,
    max_iter: int,
    tol: float,
    per_point: FloatArray,
    column_scale: FloatArray,
    losses: npt.NDArray[np.float64],
    iterations: npt.NDArray[np.int64],
) -> None:
    """Balance every restart of a K-major stack, as :class:`~cceclust.pseudo_labels.Solver` describes it."""
    for restart in range(probabilities.shape[0]):
        sigma = probabilities[restart]
        labels = pseudo_labels[restart]
        _sharpen(sigma, labels, sharpness, per_point[0])
        column_scale[:] = 1
        done = 0
        while done < max_iter:
            _scale_rows(labels, column_scale, per_point)
            done += 1
            if _scale_columns(labels, prior, weights, column_scale, per_point) < tol:
                break
        _scale_rows(labels, column_scale, per_point)
        _apply(labels, column_scale, per_point)
        if one_hot:
            _round(labels, per_point)
        losses[restart] = _cross_entropy(sigma, labels, weights)
        iterations[restart] = done


@part
def _sharpen(sigma: FloatArray, sharp: FloatArray, sharpness: float, largest: FloatArray) -> None:
    """(σ / σ_max)^s, kept above 0 so that every column can be scaled to its size."""
    n_clusters, n_points = sigma.shape
    smallest = np.finfo(sigma.dtype).tiny
    floor = sigma.dtype.type(smallest**0.5)
    power = sigma.dtype.type(sharpness)
    for i in range(n_points):
        largest[i] = smallest
    for k in range(n_clusters):
        row = sigma[k]
        for i in range(n_points):
            largest[i] = row[i] if row[i] > largest[i] else largest[i]
    for k in range(n_clusters):
        for i in range(n_points):
            sharp[k, i] = max((sigma[k, i] / largest[i]) ** power, floor)


@part
def _scale_rows(sharp: FloatArray, column_scale: FloatArray, per_point: FloatArray) -> None:
    """Scale by β, so that every point sums to 1."""
    n_clusters, n_points = sharp.shape
    zero = sharp.dtype.type(0)
    one = sharp.dtype.type(1)
    total = per_point[0]
    row_scale = per_point[1]
    for i in range(n_points):
        total[i] = zero
    for k in range(n_clusters):
        row = sharp[k]
        scale = column_scale[k]
        for i in range(n_points):
            total[i] += scale * row[i]
    for i in range(n_points):
        row_scale[i] = one / total[i]


@part
def _scale_columns(
    sharp: FloatArray, prior: FloatArray, weights: FloatArray, column_scale: FloatArray, per_point: FloatArray
) -> float:
    """Scale by α, so that every cluster has its size. Return the error of the sizes before."""
    n_clusters, n_points = sharp.shape
    terms = per_point[0]
    row_scale = per_point[1]
    off = 0.0
    largest = 0.0
    for k in range(n_clusters):
        row = sharp[k]
        for i in range(n_points):
            terms[i] = weights[i] * row_scale[i] * row[i]
        size = float(sum_in_pairs(terms))
        off += abs(column_scale[k] * size - prior[k])
        column_scale[k] = prior[k] / size
        largest = max(largest, column_scale[k])
    # Only the ratios of α matter; rescaling keeps them from overflow and underflow.
    for k in range(n_clusters):
        column_scale[k] /= largest
    return off


@part
def _apply(labels: FloatArray, column_scale: FloatArray, per_point: FloatArray) -> None:
    n_clusters, n_points = labels.shape
    row_scale = per_point[1]
    for k in range(n_clusters):
        row = labels[k]
        scale = column_scale[k]
        for i in range(n_points):
            row[i] *= scale * row_scale[i]


@part
def _round(labels: FloatArray, per_point: FloatArray) -> None:
    """Round to one-hot labels at the first of the largest entries."""
    n_clusters, n_points = labels.shape
    largest = per_point[0]
    winner = per_point[1]
    for i in range(n_points):
        largest[i] = labels[0, i]
        winner[i] = 0
    for k in range(1, n_clusters):
        row = labels[k]
        for i in range(n_points):
            if row[i] > largest[i]:
                largest[i] = row[i]
                winner[i] = k
    for k in range(n_clusters):
        row = labels[k]
        for i in range(n_points):
            row[i] = 1 if winner[i] == k else 0


@part
def _cross_entropy(sigma: FloatArray, labels: FloatArray, weights: FloatArray) -> float:
    """Mean of H(y, σ), with probabilities of 0 counted as the smallest number."""
    n_clusters, n_points = sigma.shape
    smallest = np.finfo(sigma.dtype).tiny
    loss = 0.0
    for k in range(n_clusters):
        for i in range(n_points):
            if labels[k, i] > 0:
                loss -= weights[i] * labels[k, i] * np.log(max(sigma[k, i], smallest))
    return loss
