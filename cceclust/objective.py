"""Collision cross-entropy, Shannon's, and the self-labeling losses, in plain NumPy (arXiv:2303.07321).

Every fast path is tested against these functions. Distributions are along the last axis; 0·ln 0 is 0, and a
probability of 0 where the target is positive costs infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "collision_cross_entropy",
    "collision_divergence",
    "collision_entropy",
    "cross_entropy",
    "entropy",
    "gradient_by_logits",
    "kl_divergence",
    "loss_cce",
    "loss_cce_plus",
    "loss_ce_kl",
]

FloatArray = npt.NDArray[np.floating[Any]]


def collision_cross_entropy(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Return H₂(p, q) = −ln Σ_k p_k q_k (equation 9).

    It is symmetric. For a one-hot p it is Shannon's cross-entropy; for a uniform p it does not depend on q.

    Parameters
    ----------
    p, q : array (..., n_clusters)
        Distributions.

    Returns
    -------
    array (...)

    Examples
    --------
    >>> from cceclust import collision_cross_entropy
    >>> collision_cross_entropy([[1.0, 0.0], [0.5, 0.5]], [[0.25, 0.75], [0.25, 0.75]]).round(4)
    array([1.3863, 0.6931])
    """
    return _negative_log(np.sum(np.multiply(p, q), axis=-1))


def collision_entropy(p: npt.ArrayLike) -> FloatArray:
    """Return H₂(p) = −ln Σ_k p_k², Rényi's entropy of order 2 (equation 6)."""
    return collision_cross_entropy(p, p)


def collision_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Return −ln cos(p, q), which is H₂(p, q) − ½(H₂(p) + H₂(q)): at least 0, and 0 where p = q (section 3)."""
    return collision_cross_entropy(_unit(p), _unit(q))


def entropy(p: npt.ArrayLike) -> FloatArray:
    """Return Shannon's H(p) = −Σ_k p_k ln p_k."""
    return cross_entropy(p, p)


def cross_entropy(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Return Shannon's H(p, q) = −Σ_k p_k ln q_k (equation 8)."""
    return np.asarray(np.sum(_times(p, _negative_log(q)), axis=-1))


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
    """Return KL(p ‖ q) = Σ_k p_k ln(p_k / q_k) (equation 7)."""
    return cross_entropy(p, q) - entropy(p)


def loss_cce(
    probabilities: npt.ArrayLike,
    pseudo_labels: npt.ArrayLike,
    *,
    fairness: float,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Return L_CCE = mean of H₂(y, σ) + λ KL(ȳ ‖ u) (equation 10)."""
    mean, u = _mean_and_prior(pseudo_labels, prior, sample_weight)
    fit = collision_cross_entropy(pseudo_labels, probabilities)
    return _total(fit, kl_divergence(mean, u), fairness, sample_weight)


def loss_cce_plus(
    probabilities: npt.ArrayLike,
    pseudo_labels: npt.ArrayLike,
    *,
    fairness: float,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Return L_CCE+ = mean of H₂(y, σ) + λ KL(u ‖ ȳ) (equation 11), the loss that EM minimises."""
    mean, u = _mean_and_prior(pseudo_labels, prior, sample_weight)
    fit = collision_cross_entropy(pseudo_labels, probabilities)
    return _total(fit, kl_divergence(u, mean), fairness, sample_weight)


def loss_ce_kl(
    probabilities: npt.ArrayLike,
    pseudo_labels: npt.ArrayLike,
    *,
    fairness: float,
    prior: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Return mean of H(y, σ) + λ KL(ȳ ‖ u) (equation 5), with Shannon's cross-entropy."""
    mean, u = _mean_and_prior(pseudo_labels, prior, sample_weight)
    return _total(cross_entropy(pseudo_labels, probabilities), kl_divergence(mean, u), fairness, sample_weight)


def gradient_by_logits(probabilities: npt.ArrayLike, pseudo_labels: npt.ArrayLike) -> FloatArray:
    """Return ∂H₂(y, σ)/∂logits = σ − q with q ∝ y·σ; 0 where y and σ share no class, so that there is no q."""
    sigma = np.asarray(probabilities)
    product = np.multiply(pseudo_labels, sigma)
    collision = product.sum(axis=-1, keepdims=True)
    return np.where(collision > 0, sigma - product / np.where(collision > 0, collision, 1), 0)


def _negative_log(values: npt.ArrayLike) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(values))


def _times(p: npt.ArrayLike, cost: FloatArray) -> FloatArray:
    """p · cost, where p = 0 gives 0 even for an infinite cost."""
    probability = np.asarray(p)
    return np.where(probability > 0, probability * np.where(probability > 0, cost, 0), 0)


def _unit(p: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.asarray(p) / np.linalg.norm(p, axis=-1, keepdims=True))


def _mean_and_prior(
    pseudo_labels: npt.ArrayLike, prior: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """ȳ, and u, which is uniform by default."""
    weights = None if sample_weight is None else np.asarray(sample_weight)
    mean = np.asarray(np.average(np.asarray(pseudo_labels), axis=0, weights=weights))
    return mean, np.full(mean.shape, 1 / mean.size) if prior is None else np.asarray(prior)


def _total(fit: FloatArray, divergence: FloatArray, fairness: float, sample_weight: npt.ArrayLike | None) -> float:
    # Points of weight 0, and a divergence with a fairness of 0, cost nothing, even where they are infinite.
    weights = np.ones(fit.shape) if sample_weight is None else np.asarray(sample_weight)
    mean_fit = _times(weights / weights.sum(), fit).sum()
    return float(mean_fit + _times(fairness, divergence))
