"""The rows on the map: which they are, who their neighbours are, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve
from threadpoolctl import threadpool_limits

from cceclust.fit.pipeline import MOST_POINTS, Settings, metric_for, neighbors_of
from cceclust.fit.sample import take_sample
from cceclust.fit.source import Source
from cceclust.report.layout import lay_out
from cceclust.validation import thread_count

MARGIN = 0.03
# The few points that were pushed far out are drawn at the edge, so that the others have the room.
PART_OUTSIDE = 0.0005
# Cells across and down in which points are counted to find the densest place.
GRID = (32, 24)


@dataclass(frozen=True)
class Placement:
    """Rows on a plane, their nearest neighbours among them, and their places from 0 to 1, the second downwards."""

    rows: NDArray[np.intp]
    neighbors: NDArray[np.int32]
    places: NDArray[np.float64]

    def dense(self, codes: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
        """Return the densest place of each group of the shown rows; NaN for a group without rows."""
        cells = np.minimum((self.places * GRID).astype(np.intp), np.array(GRID) - 1)
        dense = np.full((n_groups, 2), np.nan)
        for code in np.unique(codes[codes >= 0]):
            members = np.flatnonzero(codes == code)
            counts = np.zeros(GRID, np.intp)
            np.add.at(counts, tuple(cells[members].T), 1)
            # Neighbouring cells count as well, so that the border between two does not matter.
            around = convolve(counts, np.ones((3, 3), np.intp), mode="constant")
            peak = np.unravel_index(np.argmax(around), GRID)
            near = members[(np.abs(cells[members] - peak) <= 1).all(axis=1)]
            dense[code] = self.places[near].mean(axis=0)
        return dense


def place_rows(features: Source, *, columns_scaled: bool) -> Placement | None:
    """Find the neighbours of all rows, or of a fixed random choice of many, and lay them out; None for too few rows."""
    settings = Settings(1, n_threads=thread_count(None))
    with threadpool_limits(1, user_api="blas"):
        sample = take_sample(
            features,
            np.ones(features.shape[0]),
            first=np.empty(0, np.intp),
            scale="columns" if columns_scaled else "overall",
            n_components=settings.n_components,
            max_rows=MOST_POINTS,
            seed=settings.seed,
        )
        if len(sample.points) < 3:
            return None
        neighbors = neighbors_of(sample, metric_for(sample), settings)
    # The two leading principal components, of which there may be only one.
    plane = np.pad(sample.points, ((0, 0), (0, 1)))[:, :2]
    return Placement(sample.which, neighbors, to_unit_square(lay_out(neighbors, plane, settings.n_threads)))


def to_unit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn places so that their longer side is across, and scale them to the picture with a margin."""
    centred = places - places.mean(axis=0)
    turned = centred @ np.linalg.svd(centred.T @ centred)[0]
    low, high = np.quantile(turned, [PART_OUTSIDE, 1 - PART_OUTSIDE], axis=0)
    unit = np.clip((turned - low) / np.where(high > low, high - low, 1.0), 0, 1)
    return np.asarray(MARGIN + (1 - 2 * MARGIN) * unit)
