"""The rows on the map: which they are, who their neighbours are, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from cceclust.errors import FileContentError
from cceclust.io.clusters import Clusters
from cceclust.io.features import FeatureFile
from cceclust.report.layout import lay_out

__all__ = ["Placement", "place_rows"]

MOST_ROWS = 20_000
MOST_BYTES = 256 << 20
NEIGHBORS = 15
MARGIN = 0.03
# The few points that were pushed far out are drawn at the edge, so that the others have the room.
PART_OUTSIDE = 0.0005


@dataclass(frozen=True)
class Placement:
    """Rows on a plane, and their neighbours.

    Attributes
    ----------
    rows : ndarray of shape (n_shown,)
        Which rows are shown, in ascending order.
    neighbors : ndarray of shape (n_shown, n_neighbors)
        The nearest neighbours of each, as positions in `rows`.
    places : ndarray of shape (n_shown, 2)
        Their coordinates, from 0 to 1; the second runs downwards.
    """

    rows: NDArray[np.intp]
    neighbors: NDArray[Any]
    places: NDArray[np.float64]


def place_rows(clusters: Clusters, features: FeatureFile) -> Placement | None:
    """Find the neighbours of all rows, or of a fixed random choice, and lay them out; None for too few rows."""
    return None
    rows = chosen_rows(features)
    matrix = features.read(rows)
    matrix = matrix.astype(in_memory(matrix).dtype, copy=False)
    is_finite = np.isfinite(matrix).all(axis=1)
    neighbors = stored_neighbors(features) if len(rows) == features.n_samples and is_finite.all() else None
    rows, matrix = rows[is_finite], matrix[is_finite]
    if len(rows) < 3:
        return None
    if clusters.diagnostics.get("columns_scaled") is True:
        deviations = np.std(matrix, axis=0, dtype=np.float64)
        matrix = matrix / np.where(deviations > 0, deviations, 1.0).astype(matrix.dtype)
    if clusters.diagnostics.get("directions_evened") is True and matrix.shape[1] <= choices.MOST_COLUMNS_TO_EVEN_OUT:
        matrix = evened_rows(ArrayRows(matrix), np.ones(len(matrix), matrix.dtype), is_certain=True)
    if neighbors is None:
        n_directions = directions_of(in_memory(matrix), np.ones(len(matrix), matrix.dtype))
        neighbors = find_graph(matrix, min(NEIGHBORS, len(matrix) - 1), n_directions, n_jobs=None)
    return Placement(rows, neighbors, to_unit_square(lay_out(neighbors, principal_plane(matrix))))


def chosen_rows(features: FeatureFile) -> NDArray[np.intp]:
    """Return all rows, or a fixed random choice of as many as can be laid out."""
    most = max(3, min(MOST_ROWS, MOST_BYTES // (4 * features.n_features)))
    if features.n_samples <= most:
        return np.arange(features.n_samples)
    return np.sort(np.random.default_rng(0).choice(features.n_samples, most, replace=False))


def stored_neighbors(features: FeatureFile) -> NDArray[Any] | None:
    """Return the neighbours that come with the features, if they are enough to lay out points."""
    try:
        graph = features.neighbors
    except FileContentError:
        # A page about the clusters can do without them; fit and neighbors refuse such a file.
        return None
    return None if graph is None or graph.shape[1] < choices.LEAST_JUDGE_NEIGHBORS else graph[:, :NEIGHBORS]


def principal_plane(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Return the first two principal components of the rows; 0 where they do not vary."""
    centred = matrix - matrix.mean(axis=0)
    # One thread, since the bits of a product may depend on the number of threads.
    with threadpool_limits(1, user_api="blas"):
        left, lengths, _ = randomized_svd(centred, min(2, *matrix.shape), random_state=0)
    plane = np.zeros((len(matrix), 2))
    plane[:, : len(lengths)] = left * lengths
    return plane


def to_unit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn places so that their longer side is across, and scale them to the picture with a margin."""
    centred = places - places.mean(axis=0)
    turned = centred @ np.linalg.svd(centred.T @ centred)[0]
    low, high = np.quantile(turned, [PART_OUTSIDE, 1 - PART_OUTSIDE], axis=0)
    unit = np.clip((turned - low) / np.where(high > low, high - low, 1.0), 0, 1)
    return np.asarray(MARGIN + (1 - 2 * MARGIN) * unit)
