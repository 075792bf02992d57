"""How the features vary along their principal directions, from a sample of rows."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices
from cceclust.training.rows import ArrayRows, Rows
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
    weights /= weights.sum()
    if not isinstance(rows, ArrayRows):
        return rows.take(chosen).astype(np.float64), weights
    sample = short_lived_array((len(chosen), rows.shape[1]), np.dtype(np.float64))
    for start in range(0, len(chosen), choices.ROWS_COPIED_AT_ONCE):
        where = slice(start, start + choices.ROWS_COPIED_AT_ONCE)
        sample[where] = rows.take(chosen[where])
    return sample, weights


def short_lived_array(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array whose memory goes back to the system with it: allocators keep that of arrays of some megabytes.

    Its contents are zeros.
    """
    memory = mmap.mmap(-1, max(1, shape[0] * shape[1] * dtype.itemsize))
    return np.frombuffer(memory, dtype, shape[0] * shape[1]).reshape(shape)


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
    return np.asarray(np.maximum(np.linalg.eigvalsh(products)[::-1], 0.0))


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
    scaled, n_axes = short_lived_array(centred.shape, np.dtype(np.float32)), min(count, *centred.shape)
    np.divide(centred, spread, out=scaled, casting="same_kind")
    return axes_of_products(scaled, n_axes, np.random.RandomState(seed))


def axes_of_products(rows: NDArray[np.float32], count: int, generator: np.random.RandomState) -> NDArray[np.float32]:
    """Return the leading right singular vectors of a matrix, from its products with a few random vectors.

    The method is that of Halko, Martinsson and Tropp (2011). scikit-learn has it, too, but takes a second to load.
    """
    n_drawn = min(count + choices.EXTRA_AXES, *rows.shape)
    span = generator.normal(size=(rows.shape[0], n_drawn)).astype(rows.dtype)
    for _ in range(choices.ROUNDS_FOR_AXES):
        # Normalised, so that small directions are not lost next to one that is a hundred times larger.
        span = rows @ np.linalg.qr(rows.T @ span)[0]
    basis = np.linalg.qr(rows.T @ span)[0]
    places = (rows @ basis).astype(np.float64)
    turn = np.linalg.eigh(places.T @ places)[1][:, : -count - 1 : -1]
    # Of the two directions of an axis, the one of the row that is farthest along it: libraries differ in this.
    along = places @ turn
    turn *= np.where(along.max(axis=0) >= -along.min(axis=0), 1.0, -1.0)
    return np.asarray((basis @ turn.astype(rows.dtype)).T)
