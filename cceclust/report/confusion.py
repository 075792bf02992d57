"""Which clusters run into which, and which classes went to which clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cceclust.report.drawing import Html, card, drawing, element, percent, table
from cceclust.report.summary import Summary
from cceclust.scoring import Scores, worst_confusions

# A larger matrix is a picture.
MOST_COLUMNS_OF_A_TABLE = 25
# A picture shows the cells of the largest shares, and no cell of less than the least.
MOST_CELLS, LEAST_SHARE = 4000, 0.005
MOST_PAIRS, MOST_CONFUSIONS = 10, 20


def neighbor_confusion(summary: Summary) -> Html:
    """Show which clusters are neighbours of which: a matrix of the shares, and the closest pairs."""
    n_clusters, placement = len(summary.names), summary.placement
    if placement is None or n_clusters < 2:
        return Html("")
    shares = neighbor_shares(summary.codes[placement.rows], placement.neighbors, n_clusters)
    note = (
        f"Of the {placement.neighbors.shape[1]} nearest neighbours of each point of a cluster (down), the percentage "
        "in each cluster (across). A large share beside the diagonal means that two clusters run into each other: "
        "perhaps they are one, or points between them are in the wrong one."
    )
    whole = matrix(
        shares,
        np.where(shares >= LEAST_SHARE, np.char.mod("%.0f", 100 * shares), ""),
        [summary.title(position) for position in range(n_clusters)],
        summary.names,
        "cluster ↓ neighbours →",
    )
    parts = element("div", whole, pair_table(summary, shares), class_="matrix-and-list")
    return card("Confused clusters", parts, note=note, anchor="neighbours")


def neighbor_shares(codes: NDArray[np.intp], neighbors: NDArray[np.int32], n_clusters: int) -> NDArray[np.float64]:
    """Return, for each cluster, the share of its points' neighbours that are in each cluster."""
    own, other = np.repeat(codes, neighbors.shape[1]), codes[neighbors.ravel()]
    is_known = (own >= 0) & (other >= 0)
    pairs = own[is_known] * n_clusters + other[is_known]
    counts = np.bincount(pairs, minlength=n_clusters**2).reshape(n_clusters, n_clusters)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def pair_table(summary: Summary, shares: NDArray[np.float64]) -> Html:
    """Tabulate the pairs of clusters with the most neighbours in each other."""
    between = np.triu(shares + shares.T, 1)
    order = np.argsort(-between, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [divmod(int(place), len(shares)) for place in order if between.flat[place] >= 2 * LEAST_SHARE]
    if not pairs:
        return element("p", "No two clusters share more than 1 % of their neighbours.", class_="note")
    rows = [
        [
            element("span", summary.chip(first), " ↔ ", summary.chip(second), class_="pair"),
            percent(shares[first, second]),
            percent(shares[second, first]),
        ]
        for first, second in pairs
    ]
    headers = ["clusters", "neighbours of the first in the second", "of the second in the first"]
    return table(headers, rows, caption="Pairs of clusters with the most neighbours in each other", class_="pairs")


def class_confusion(summary: Summary) -> Html:
    """Show which classes went to which clusters; beside a picture, list the most frequent mistakes."""
    scores = summary.scores
    if scores is None:
        return Html("")
    counts = scores.confusion
    whole = matrix(
        counts / counts.sum(axis=1, keepdims=True),
        np.array([[f"{count:,}" if count else "" for count in row] for row in counts]),
        [str(entry.label) for entry in scores.classes],
        [str(cluster) for cluster in scores.clusters],
        "class ↓ cluster →",
    )
    if max(counts.shape) > MOST_COLUMNS_OF_A_TABLE:
        whole = element("div", whole, confusion_list(scores), class_="matrix-and-list")
    note = "Points of each true class (down) in each cluster (across); matched pairs are on the diagonal."
    return card("Confusion matrix", whole, note=note, anchor="confusion")


def confusion_list(scores: Scores) -> Html:
    """Return the most frequent mistakes as a table."""
    stands_for = {entry.cluster: str(entry.label) for entry in scores.classes}
    rows = [
        [str(label), str(cluster), stands_for.get(cluster, "no class"), f"{count:,}"]
        for label, cluster, count in worst_confusions(scores, MOST_CONFUSIONS)
    ]
    headers = ["class", "in cluster", "which stands for", "points"]
    return table(headers, rows, caption="Most frequent confusions") if rows else Html("")


def matrix(
    shares: NDArray[np.float64], texts: NDArray[np.str_], names: Sequence[str], columns: Sequence[str], corner: str
) -> Html:
    """Return a table with a colour behind each text, the stronger the larger its share; or a picture if it is large."""
    if max(shares.shape) > MOST_COLUMNS_OF_A_TABLE:
        return picture(shares, names, columns)
    rows = []
    for row, name in enumerate(names):
        cells = []
        for column, text in enumerate(texts[row].tolist()):
            look = look_of(shares[row, column], is_hit=row == column)
            cells.append(element("td", text, **look) if text else element("td", "·", class_="none"))
        rows.append([name, *cells])
    return table([corner, *columns], rows, caption=corner, class_="matrix")


def picture(shares: NDArray[np.float64], names: Sequence[str], columns: Sequence[str]) -> Html:
    """Return a square for each cell of a matrix, without those of tiny shares."""
    largest = np.argsort(-shares, axis=None, kind="stable")[:MOST_CELLS]
    cells = []
    for row, column in zip(*np.unravel_index(largest, shares.shape), strict=True):
        share = shares[row, column]
        if share >= LEAST_SHARE:
            title = element("title", f"{names[row]} → {columns[column]}: {percent(share)}")
            look = look_of(share, is_hit=row == column)
            cells.append(element("rect", title, x=int(column), y=int(row), width=1, height=1, **look))
    description = f"Matrix of {len(names)} by {len(columns)} as a picture"
    size = (len(columns), len(names))
    return element("figure", drawing(*cells, size=size, description=description, class_="matrix-picture"))


def look_of(share: float, *, is_hit: bool) -> dict[str, str]:
    """Return the colour of a cell; that of the diagonal is another."""
    return {"class_": "hit" if is_hit else "miss", "style": f"--share:{0.85 * share**0.6:.3g}"}
