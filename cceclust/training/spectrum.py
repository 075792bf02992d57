"""How the features vary along their principal directions, from a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from cceclust import choices
from cceclust.training.rows import Rows
from cceclust.training.standardization import Standardization

__all__ = [
    "Spectrum",
    "leading_axes",
    "longest_stable_step",
    "measure_spectrum",
    "principal_variances",
    "sample_rows",
]


@dataclass(frozen=True)
class Spectrum:
    """The variances of standardised rows.

    Attributes
    ----------
    variances : ndarray
        Variances along the principal directions, largest first.
    """

    variances: NDArray[np.float64]

    @property
    def n_directions(self) -> int:
        """The smallest number of directions that hold nearly all the variance; at least 1."""
        return choices.directions_in(self.variances)


def measure_spectrum(
    rows: Rows, standardization: Standardization, sample_weight: NDArray[Any], *, seed: int
) -> Spectrum:
    """Measure the variances of standardised rows on a sample.

    Parameters
    ----------
    rows : Rows
        The features.
    standardization : Standardization
        Applied to the features before training.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Seed of the sample.
    """
    sample, weights = sample_rows(rows, sample_weight, seed)
    # Variances around the mean of the sample, whether rows are centred or not.
    return Spectrum(principal_variances(sample, sample.T @ weights, weights) / standardization.scale**2)


def longest_stable_step(
    rows: Rows, n_classes: int, standardization: Standardization, sample_weight: NDArray[Any], *, seed: int
) -> float:
    """Return a learning rate at which cross-entropy with soft labels does not diverge.

    Pseudo-labels follow the predictions, so clustering tolerates longer steps. Labels that stay uncertain do not: on
    ResNet-50 features, a rate of 0.5 raises Shannon's cross-entropy with them far above its initial value.

    Gradient descent on cross-entropy is stable below 2 / (h v), with v the features' second moment along their leading
    direction and h the curvature with respect to the logits: 1/K where predictions are uniform, and at most 1/2.

    Parameters
    ----------
    rows : Rows
        The features.
    n_classes : int
        Number of classes.
    standardization : Standardization
        Applied to the features before training.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Seed of the sample of rows.

    Returns
    -------
    float
        Infinity for features that do not vary.
    """
    sample, weights = sample_rows(rows, sample_weight, seed)
    largest = principal_variances(sample, standardization.mean, weights)[0] / standardization.scale**2
    return float(min(n_classes, choices.MOST_CLASSES_FOR_STEPS) / largest) if largest > 0 else float(np.inf)


def sample_rows(
    rows: Rows, sample_weight: NDArray[Any], seed: int, *, most: int = choices.ROWS_FOR_SPECTRUM
) -> tuple[Any, NDArray[np.float64]]:
    """Return a sample of rows with a positive weight, in double precision, and their weights, which sum to 1."""
    chosen = np.flatnonzero(sample_weight > 0)
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
    weights = sample_weight[chosen].astype(np.float64)
    return rows.take(chosen).astype(np.float64), weights / weights.sum()


def principal_variances(sample: Any, centre: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the eigenvalues, largest first, of the weighted mean of ``(x − centre)(x − centre)ᵀ``.

    If there are more columns than rows, the zeros are left out.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> principal_variances(rows, np.zeros(2), np.full(4, 0.25))
    array([2. , 0.5])
    """
    roots = np.sqrt(weights)
    if sparse.issparse(sample) and sample.shape[1] > sample.shape[0]:
        # Centred rows would be dense: centre the products instead.
        cross = sample @ centre
        products = (sample @ sample.T).toarray() - cross[:, None] - cross + centre @ centre
        products *= roots[:, None] * roots
    else:
        dense = sample.toarray() if sparse.issparse(sample) else sample
        scaled = (dense - centre) * roots[:, None]
        products = scaled @ scaled.T if scaled.shape[1] > scaled.shape[0] else scaled.T @ scaled
    return np.asarray(np.maximum(linalg.eigvalsh(products)[::-1], 0.0))


def leading_axes(centred: NDArray[np.float64], count: int, seed: int) -> NDArray[np.float32]:
    """Return the unit vectors along which centred rows vary most: `count` vectors, or as many as there are rows.

    Examples
    --------
    >>> import numpy as np
    >>> axes = leading_axes(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 1, seed=0)
    >>> np.abs(axes).round(3)
    array([[1., 0.]], dtype=float32)
    """
    # Their size may be beyond the range of float32.
    spread = max(centred.max(), -centred.min()) or 1.0
    scaled, n_axes = np.empty(centred.shape, np.float32), min(count, *centred.shape)
    np.divide(centred, spread, out=scaled, casting="same_kind")
    # Normalised between iterations, so that small directions are not lost next to one that is a hundred times larger.
    return np.asarray(randomized_svd(scaled, n_axes, n_iter=2, power_iteration_normalizer="LU", random_state=seed)[2])
