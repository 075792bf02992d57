"""Twelve colours for clusters.

They were searched for, not picked: among all colours that stand out from both a white and a dark page, the twelve whose
closest pair is farthest apart (0.11 in OKLab) for normal sight and, as simulated by Machado, Oliveira and Fernandes
(2009), for protanopia, deuteranopia and tritanopia. Twelve is about as many as eyes can tell apart; clusters beyond
reuse them, and everything coloured carries the name of its cluster as well.
"""

from __future__ import annotations

__all__ = ["CLUSTER_COLOURS", "NO_CLUSTER_COLOUR", "cluster_colour", "rgb"]

CLUSTER_COLOURS = (
    "#3c24fc", "#fca800", "#189000", "#f0546c", "#78cca8", "#9000b4",
    "#789cb4", "#b40c6c", "#cca8fc", "#3c6000", "#c06cfc", "#9060b4",
)  # fmt: skip
NO_CLUSTER_COLOUR = "#8a8f98"


def cluster_colour(position: int) -> str:
    """Return the colour of the cluster at this position; a negative one means no cluster."""
    return NO_CLUSTER_COLOUR if position < 0 else CLUSTER_COLOURS[position % len(CLUSTER_COLOURS)]


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``.

    Examples
    --------
    >>> from cceclust.report.palette import rgb
    >>> rgb("#0a10ff")
    (10, 16, 255)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
