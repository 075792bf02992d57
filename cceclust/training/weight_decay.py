"""A weight decay that suits the data, from the variance along its leading directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.rows import in_memory
from cceclust.training.spectrum import Spectrum, measure_spectrum
from cceclust.training.standardization import measure

__all__ = ["automatic_weight_decay", "suitable_weight_decay"]

# Chosen on several data sets, from 4 to 2048 dimensions: see docs/defaults.md.
DECAY_PER_DEVIATION = 0.045
# Each cluster is taught by its part of the rows, against a decay that does not know of it: with more clusters than the
# multiple above was chosen with, the decay must fall as that part does.
CLUSTERS_OF_THE_CHOICE = 10
# K clusters are told apart along K − 1 directions; beyond some, the mean hardly changes.
MOST_DIRECTIONS = 20


def automatic_weight_decay(spectrum: Spectrum, n_clusters: int) -> float:
    """Return a multiple of the standard deviation along the leading directions, less where clusters are crowded.

    The larger the features along the directions that tell clusters apart, the smaller the weights that do it, and the
    larger the decay that keeps their softmax from saturating too early. The number of features says little about
    that: a whitened matrix has many columns and no leading direction. Where many clusters share few directions, they
    are close to each other, and only large weights tell them apart.
    """
    leading = spectrum.variances[: min(max(n_clusters - 1, 1), MOST_DIRECTIONS)]
    part = min(1.0, CLUSTERS_OF_THE_CHOICE / n_clusters)
    return float(DECAY_PER_DEVIATION * np.sqrt(leading.mean()) * part * spectrum.room_for(n_clusters))


def suitable_weight_decay(features: NDArray[Any], n_clusters: int) -> float:
    """Return what "auto" stands for, for features in memory that will be standardised."""
    rows = in_memory(features)
    weights = np.ones(rows.shape[0], rows.dtype)
    standardization = measure(rows, weights, standardize=True)
    return automatic_weight_decay(measure_spectrum(rows, standardization, weights, seed=0), n_clusters)
