"""Which clusters run into which: the clusters of the nearest neighbours of each cluster's points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cceclust.report.confusion import MOST_COLUMNS_OF_A_TABLE, matrix_cell, share_picture
from cceclust.report.markup import Html, card, element, percent, table
from cceclust.report.placement import Placement
from cceclust.report.summary import Summary

__all__ = ["neighbor_confusion", "neighbor_shares"]

MOST_PAIRS = 10
LEAST_SHARE = 0.005


def neighbor_shares(codes: NDArray[np.intp], neighbors: NDArray[np.integer], n_clusters: int) -> NDArray[np.float64]:
    """Return, for each cluster, the share of its points' neighbours that are in each cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.report.neighbor_confusion import neighbor_shares
    >>> neighbor_shares(np.array([0, 0, 1]), np.array([[1, 2], [0, 2], [0, 1]]), 2)
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    own, other = np.repeat(codes, neighbors.shape[1]), codes[neighbors.ravel()]
    is_known = (own >= 0) & (other >= 0)
    pairs = own[is_known] * n_clusters + other[is_known]
    counts = np.bincount(pairs, minlength=n_clusters**2).reshape(n_clusters, n_clusters)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def neighbor_confusion(summary: Summary, placement: Placement | None) -> Html:
    """Show which clusters are neighbours of which: a table or a picture of the shares, and the closest pairs."""
    n_clusters = len(summary.names)
    if placement is None or n_clusters < 2:
        return Html("")
    shares = neighbor_shares(summary.codes[placement.rows], placement.neighbors, n_clusters)
    is_small = n_clusters <= MOST_COLUMNS_OF_A_TABLE
    note = (
        f"Of the {placement.neighbors.shape[1]} nearest neighbours of each point of a cluster (down), the share in "
        "each cluster (across), in per cent. Beside the diagonal, a large share means that two clusters run into "
        "each other: perhaps they are one, or points between them are in the wrong one."
    )
    alt = f"Shares of neighbours in the same and in other clusters, of {n_clusters} clusters, as a picture"
    whole = share_table(summary, shares) if is_small else share_picture(shares, alt)
    parts = element("div", whole, pair_table(summary, shares), class_="matrix-and-list")
    return card("Confused clusters", parts, note=note, wide=True, anchor="neighbours")


def share_table(summary: Summary, shares: NDArray[np.float64]) -> Html:
    """Return the shares as a table with a colour behind each."""
    corner = element("th", "cluster ↓ neighbours →", scope="col")
    head = element("tr", corner, *(element("th", name, scope="col") for name in summary.names))
    body = []
    for row, row_shares in enumerate(shares):
        cells = [
            matrix_cell(f"{100 * share:.0f}" if share >= LEAST_SHARE else "", share, is_hit=row == column)
            for column, share in enumerate(row_shares)
        ]
        body.append(element("tr", element("th", summary.title(row), scope="row"), *cells))
    caption = element("caption", "Per cent of the neighbours of each cluster that are in each cluster")
    contents = element("table", caption, element("thead", head), element("tbody", *body), class_="matrix")
    return element("div", contents, class_="scroll", tabindex=0)


def pair_table(summary: Summary, shares: NDArray[np.float64]) -> Html:
    """Tabulate the pairs of clusters with the most neighbours in each other."""
    between = np.triu(shares + shares.T, 1)
    order = np.argsort(-between, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [divmod(int(place), len(shares)) for place in order if between.flat[place] >= 2 * LEAST_SHARE]
    if not pairs:
        return element("p", "No two clusters share more than 1 % of their neighbours.", class_="note")
    rows: list[list[str]] = [
        [
            element("span", chip(summary, first), " ↔ ", chip(summary, second), class_="pair"),
            percent(shares[first, second]),
            percent(shares[second, first]),
        ]
        for first, second in pairs
    ]
    return table(
        ["clusters", "neighbours of the first in the second", "of the second in the first"],
        rows,
        caption="Pairs of clusters with the most neighbours in each other",
        class_="pairs",
    )


def chip(summary: Summary, position: int) -> Html:
    """Return the name of a cluster beside its colour."""
    swatch = element("i", class_="swatch", style=f"background:{summary.colour(position)}")
    return element("span", swatch, summary.title(position), class_="name")
