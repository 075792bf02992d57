"""Rows unlike all others: how much farther they are from their neighbours than these are from theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.sample import FAR, Sample
from cceclust.fit.source import Source, block_slices

__all__ = ["outlier_scores"]


def outlier_scores(source: Source, sample: Sample, neighbors: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the outlier score of each row, about 1 for most; the sample holds all rows but those far away.

    A row far from all others has no neighbours, and gets the least score that such rows have.
    """
    points = sample.points
    reach = np.empty(len(points))
    for where in block_slices((len(points), neighbors.shape[1] * points.shape[1]), points.dtype):
        away = points[neighbors[where]] - points[where, None]
        reach[where] = np.sqrt(np.einsum("ijk,ijk->ij", away, away)).mean(axis=1)
    usual = reach[neighbors].mean(axis=1)
    # Rows that repeat have neighbours at no distance: they fit in.
    scores = np.divide(reach, usual, out=np.ones(len(points)), where=usual > 0)
    scores[(usual == 0) & (reach > 0)] = FAR
    every = np.full(source.shape[0], FAR)
    every[sample.which] = np.minimum(scores, np.finfo(np.float32).max)
    return every
