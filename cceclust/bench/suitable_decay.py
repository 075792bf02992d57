"""The value that weight_decay="auto" resolves to, so that multiples of it can be tried."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import NDArray

from cceclust.errors import ClusteringWarning
from cceclust.estimators import CCEClusterer

__all__ = ["suitable_weight_decay"]


def suitable_weight_decay(features: NDArray[Any], n_clusters: int) -> float:
    """Return the weight decay that a clusterer chooses for features."""
    model = CCEClusterer(n_clusters, n_init=1, max_epochs=1, n_neighbors=0, random_state=0)
    with warnings.catch_warnings():
        # One epoch is enough for the weight decay; warnings about its poor clusters would mislead.
        warnings.simplefilter("ignore", ClusteringWarning)
        return float(model.fit(features).weight_decay_)
