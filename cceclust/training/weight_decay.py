"""A weight decay that suits the data, from the variance along its leading directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.rows import Rows, in_memory
from cceclust.training.spectrum import leading_variances, sample_rows
from cceclust.training.standardization import Standardization, measure

__all__ = ["automatic_weight_decay", "suitable_weight_decay"]

# Chosen on several data sets, from 4 to 2048 dimensions: see docs/defaults.md.
DECAY_PER_DEVIATION = 0.045
# K clusters are told apart along K − 1 directions; beyond some, the mean hardly changes.
MOST_DIRECTIONS = 20


def automatic_weight_decay(
    rows: Rows, n_clusters: int, standardization: Standardization, sample_weight: NDArray[Any], *, seed: int
) -> float:
    """Return a multiple of the standard deviation along the leading directions.

    The larger the features along the directions that tell clusters apart, the smaller the weights that do it, and the
    larger the decay that keeps their softmax from saturating too early. The number of features says little about
    that: a whitened matrix has many columns and no leading direction.

    Parameters
    ----------
    rows : Rows
        The features.
    n_clusters : int
        Number of clusters.
    standardization : Standardization
        What is done to the features before training.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Decides the sample of rows that is looked at.

    Returns
    -------
    float
    """
    sample, weights = sample_rows(rows, sample_weight, seed)
    n_directions = min(max(n_clusters - 1, 1), MOST_DIRECTIONS)
    # The sample's own mean: whatever `standardize` is, the variance is meant.
    variances = leading_variances(sample, sample.T @ weights, weights, n_directions)
    return float(DECAY_PER_DEVIATION * np.sqrt(variances.mean()) / standardization.scale)


def suitable_weight_decay(features: NDArray[Any], n_clusters: int) -> float:
    """Return what "auto" stands for, for features in memory that will be standardised."""
    rows = in_memory(features)
    weights = np.ones(rows.shape[0], rows.dtype)
    return automatic_weight_decay(rows, n_clusters, measure(rows, weights, standardize=True), weights, seed=0)
