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

CLUSTER_COLOURS = (
    "#3c24fc", "#fca800", "#189000", "#f0546c", "#78cca8", "#9000b4",
    "#789cb4", "#b40c6c", "#cca8fc", "#3c6000", "#c06cfc", "#9060b4",
)  # fmt: skip
NO_CLUSTER_COLOUR = "#8a8f98"


def colours_apart(places: NDArray[np.float64], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a colour for each cluster so that those of one colour lie far from each other; the larger choose first.

    A cluster that lies nowhere, at NaN, gets the next colour in order.
    """
    colours = np.arange(len(sizes)) % len(CLUSTER_COLOURS)
    if len(sizes) <= len(CLUSTER_COLOURS):
        return colours
    # The distance from each cluster to the nearest one of each colour.
    nearest = np.full((len(sizes), len(CLUSTER_COLOURS)), np.inf)
    for cluster in np.argsort(-sizes, kind="stable"):
        if np.isfinite(places[cluster]).all():
            colours[cluster] = nearest[cluster].argmax()
            distances = np.linalg.norm(places - places[cluster], axis=1)
            nearest[:, colours[cluster]] = np.fmin(nearest[:, colours[cluster]], distances)
    return colours
