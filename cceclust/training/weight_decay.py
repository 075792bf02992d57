"""A weight decay that suits the data, from the variance along its leading directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.training.components import TrainingSpace
from cceclust.training.spectrum import Spectrum
from cceclust.training.starts import heads_around_centres

__all__ = ["automatic_weight_decay"]

# Chosen on several data sets, from 4 to 2048 dimensions: see docs/defaults.md.
DECAY_PER_DEVIATION = 0.045
# Each cluster is taught by its part of the rows, against a decay that does not know of it: with more clusters than the
# multiple above was chosen with, the decay must fall as that part does.
CLUSTERS_OF_THE_CHOICE = 10
# K clusters are told apart along K − 1 directions; beyond some, the mean hardly changes.
MOST_DIRECTIONS = 20
# Where clusters are crowded: decay · ‖W‖² of heads around their centres.
PENALTY = 0.3


def automatic_weight_decay(
    space: TrainingSpace, spectrum: Spectrum, n_clusters: int, sample_weight: NDArray[Any], *, seed: int
) -> float:
    """Return a multiple of the standard deviation along the leading directions, or less where clusters are crowded.

    The larger the features along the directions that tell clusters apart, the smaller the weights that do it, and the
    larger the decay that keeps their softmax from saturating too early. The number of features says little about
    that: a whitened matrix has many columns and no leading direction. Where many clusters share few directions, they
    are close to each other, and only large weights tell them apart: how large, K-means tells.

    Parameters
    ----------
    space : TrainingSpace
        Holds the rows.
    spectrum : Spectrum
        How the rows vary.
    n_clusters : int
        Number of clusters.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    seed : int
        Decides what is drawn for K-means.
    """
    leading = spectrum.variances[: min(max(n_clusters - 1, 1), MOST_DIRECTIONS)]
    part = min(1.0, CLUSTERS_OF_THE_CHOICE / n_clusters)
    decay = float(DECAY_PER_DEVIATION * np.sqrt(leading.mean()) * part)
    if not spectrum.is_crowded_by(n_clusters) or (sample_weight > 0).sum() < n_clusters:
        return decay
    heads = heads_around_centres(
        1,
        np.random.default_rng(seed),
        space=space,
        n_clusters=n_clusters,
        spectrum=spectrum,
        sample_weight=sample_weight,
    )
    squares = float((heads.weights.astype(np.float64) ** 2).sum())
    return min(decay, PENALTY / squares) if squares > 0 else decay
