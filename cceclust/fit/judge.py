"""How good clusters are, by a graph that depends on the rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cceclust.fit.modularity import neighbor_modularity
from cceclust.fit.pipeline import MOST_POINTS, Settings, metric_for, neighbors_of
from cceclust.fit.sample import take_sample
from cceclust.fit.source import Source

__all__ = ["modularity_of_rows"]


def modularity_of_rows(
    source: Source, labels: NDArray[np.integer[Any]], sample_weight: NDArray[Any], *, n_threads: int
) -> float:
    """Return the modularity of labels on the neighbours of rows, or of a sample of very many."""
    settings = Settings(1, max_rows=MOST_POINTS, n_threads=n_threads)
    with threadpool_limits(1, user_api="blas"):
        sample = take_sample(
            source,
            sample_weight,
            first=np.empty(0, np.intp),
            scale=settings.scale,
            n_components=settings.n_components,
            max_rows=settings.max_rows,
            seed=settings.seed,
        )
        if len(sample.points) == 1:
            return 0.0
        neighbors = neighbors_of(sample, metric_for(sample), settings)
    return float(neighbor_modularity(labels[sample.which], neighbors, sample.weights))
