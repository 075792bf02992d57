"""Twelve colours for clusters.

They were searched for, not picked: among all colours that stand out from both a white and a dark page, the twelve whose
closest pair is farthest apart (0.11 in OKLab) for normal sight and, as simulated by Machado, Oliveira and Fernandes
(2009), for protanopia, deuteranopia and tritanopia. Twelve is about as many as eyes can tell apart; clusters beyond
share them, those of one colour as far apart on the map as possible, and everything coloured carries the name of its
cluster as well.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLUSTER_COLOURS", "NO_CLUSTER_COLOUR", "colour_numbers", "colours_apart", "rgb"]

CLUSTER_COLOURS = (
    "#3c24fc", "#fca800", "#189000", "#f0546c", "#78cca8", "#9000b4",
    "#789cb4", "#b40c6c", "#cca8fc", "#3c6000", "#c06cfc", "#9060b4",
)  # fmt: skip
NO_CLUSTER_COLOUR = "#8a8f98"


def colour_numbers(n_clusters: int) -> NDArray[np.intp]:
    """Return the number of the colour of each cluster, in their order and then from the first again."""
    return np.arange(n_clusters) % len(CLUSTER_COLOURS)


def colours_apart(places: NDArray[np.float64], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a colour for each cluster, so that clusters of the same colour lie far from each other.

    Parameters
    ----------
    places : ndarray of shape (n_clusters, 2)
        Where clusters lie; NaN for those that lie nowhere.
    sizes : ndarray of shape (n_clusters,)
        The larger choose first.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.report.palette import colours_apart
    >>> colours_apart(np.arange(26).reshape(13, 2), np.arange(13, 0, -1))[-1]
    np.int64(0)
    """
    numbers = colour_numbers(len(sizes))
    if len(sizes) <= len(CLUSTER_COLOURS):
        return numbers
    # The distance from each cluster to the nearest one of each colour.
    nearest = np.full((len(sizes), len(CLUSTER_COLOURS)), np.inf)
    for cluster in np.argsort(-sizes, kind="stable"):
        if np.isfinite(places[cluster]).all():
            numbers[cluster] = nearest[cluster].argmax()
            distances = np.linalg.norm(places - places[cluster], axis=1)
            nearest[:, numbers[cluster]] = np.fmin(nearest[:, numbers[cluster]], distances)
    return numbers


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``.

    Examples
    --------
    >>> from cceclust.report.palette import rgb
    >>> rgb("#0a10ff")
    (10, 16, 255)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
