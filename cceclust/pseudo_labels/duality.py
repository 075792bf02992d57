"""An upper bound of how far given pseudo-labels are above the minimum of L_CCE+ (equation 11 of arXiv:2303.07321).

The dual problem of :mod:`cceclust.pseudo_labels.exact` bounds the minimum from below for any w. With w_k = λ u_k / ȳ_k,
the slope of the fairness term at the labels, only s_i and ν_i = max_k (s_i σ_ik + w_k) of each point are free, and

    gap = Σ_i p_i (ν_i − λ − 1 − ln s_i x_i),    x_i = σ_i·y_i,

is smallest at the s that minimises ν − ln s. The lines s σ_k + w_k form a convex envelope: going down from its steepest
line, the best s is where a line a has slope 1/s = σ_a, or the corner of two neighbouring lines between whose slopes 1/s
lies. In other words, the best label of a point for this w has one class or two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cceclust.compiled import compiled
from cceclust.validation import FloatArray

__all__ = ["label_gap"]

kernel = compiled(error_model="numpy")
part = compiled(error_model="numpy", inline="always")


@kernel
def label_gap(
    probabilities: FloatArray, pseudo_labels: FloatArray, prior: FloatArray, weights: FloatArray, fairness: float
) -> float:
    """Bound how far pseudo-labels are above the minimum of L_CCE+; infinite where a cluster with a prior is empty."""
    n_clusters, n_points = probabilities.shape
    omega = np.empty(n_clusters)
    total_weight = 0.0
    for i in range(n_points):
        total_weight += weights[i]
    gap = 0.0 if _slopes(pseudo_labels, prior, weights, total_weight, fairness, omega) else np.inf
    for i in range(n_points):
        if weights[i] > 0:
            gap += weights[i] / total_weight * _gap_of_point(probabilities[:, i], pseudo_labels[:, i], omega)
    return gap


@part
def _slopes(
    labels: FloatArray,
    prior: FloatArray,
    weights: FloatArray,
    total_weight: float,
    fairness: float,
    omega: npt.NDArray[np.float64],
) -> bool:
    """Fill in ω = w − λ, which keeps the digits that a large λ would cost; tell whether all of w is finite."""
    finite = True
    for k in range(labels.shape[0]):
        mean = 0.0
        for i in range(labels.shape[1]):
            mean += weights[i] / total_weight * labels[k, i]
        omega[k] = -fairness
        if fairness * prior[k] > 0:
            finite = finite and mean > 0
            omega[k] = fairness * (prior[k] - mean) / mean if mean > 0 else 0.0
    return finite


@part
def _gap_of_point(sigma: FloatArray, labels: FloatArray, omega: npt.NDArray[np.float64]) -> float:
    """ν − λ − 1 − ln s x at the best s."""
    n_clusters = len(sigma)
    a = 0
    collision = 0.0
    for k in range(n_clusters):
        collision += float(sigma[k]) * labels[k]
        if sigma[k] > sigma[a] or (sigma[k] == sigma[a] and omega[k] > omega[a]):
            a = k
    while True:
        # The corner at which the line of a gives way, and the next line's class.
        corner = 0.0
        b = a
        for k in range(n_clusters):
            if sigma[k] < sigma[a] and omega[k] > omega[a]:
                place = (omega[k] - omega[a]) / (float(sigma[a]) - sigma[k])
                if place > corner or (place == corner and sigma[k] < sigma[b]):
                    corner = place
                    b = k
        s = 1 / float(sigma[a])
        if s >= corner:
            break
        if corner * sigma[b] <= 1:
            s = corner
            break
        a = b
    height = s * sigma[a] + omega[a]
    return float(height - 1 - np.log(s * collision))
