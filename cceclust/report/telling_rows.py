"""Lists of typical and of doubtful rows, for data that have no images to look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cceclust.report.markup import Html, card, element, table
from cceclust.report.neighbor_confusion import chip
from cceclust.report.summary import Summary

__all__ = ["telling_rows"]

MOST_DOUBTFUL = 12
ROWS_OF_A_CLUSTER = 3
MOST_CLUSTERS_UNFOLDED = 12
MOST_CLUSTERS = 200


def telling_rows(summary: Summary) -> Html:
    """List the rows that the head is least sure about, and for each cluster typical and doubtful ones."""
    if summary.confidence is None:
        return Html("")
    note = (
        "Rows that the head is surest and least sure about. Doubtful rows lie between clusters: look at them "
        "first. The number is the confidence, the largest probability of a row."
    )
    listing, n_listed = rows_of_clusters(summary)
    if n_listed <= MOST_CLUSTERS_UNFOLDED:
        parts = element("div", listing, doubtful_rows(summary), class_="side-by-side")
    else:
        heading = element("summary", f"Typical and doubtful rows of {n_listed:,} clusters")
        parts = Html(doubtful_rows(summary) + element("details", heading, listing))
    return card("Typical and doubtful rows", parts, note=note, wide=True, anchor="rows")


def in_order(summary: Summary, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows from the surest to the least sure; of equally sure ones, those nearest to their neighbours first."""
    assert summary.confidence is not None
    outliers = summary.clusters.outlier_scores
    ties = rows if outliers is None else outliers[rows]
    return rows[np.lexsort((ties, -summary.confidence[rows]))]


def rows_of_clusters(summary: Summary) -> tuple[Html, int]:
    """Tabulate typical and doubtful rows of the largest clusters; return also how many these are."""
    filled = [int(position) for position in np.argsort(-summary.sizes, kind="stable") if summary.sizes[position]]
    lines: list[list[str]] = []
    for position in sorted(filled[:MOST_CLUSTERS]):
        ordered = in_order(summary, np.flatnonzero(summary.codes == position))
        # A small cluster shows each of its rows once.
        half = (len(ordered) + 1) // 2
        typical, doubtful = ordered[:half][:ROWS_OF_A_CLUSTER], ordered[half:][::-1][:ROWS_OF_A_CLUSTER]
        lines.append([chip(summary, position), names_of(summary, typical), names_of(summary, doubtful)])
    caption = "Typical and doubtful rows of clusters"
    return table(["cluster", "typical", "doubtful"], lines, caption=caption, class_="telling"), len(lines)


def names_of(summary: Summary, rows: NDArray[np.intp]) -> Html:
    """Return the names of rows with their confidence."""
    assert summary.confidence is not None
    items = [
        element("li", summary.row_name(int(row)), " ", element("b", f"{summary.confidence[row]:.2f}")) for row in rows
    ]
    return element("ul", *items, class_="row-names") if items else Html("–")


def doubtful_rows(summary: Summary) -> Html:
    """Tabulate the rows with the lowest confidence, and between which two clusters they lie."""
    probabilities, truth = summary.clusters.probabilities, summary.clusters.true_labels
    assert summary.confidence is not None
    assert probabilities is not None
    if probabilities.shape[1] < 2 or probabilities.shape[1] != len(summary.names):
        return Html("")
    known = np.flatnonzero(summary.codes >= 0)
    rows = in_order(summary, known)[::-1][:MOST_DOUBTFUL]
    headers = ["row", "cluster", "or rather", *(["class"] if truth is not None else [])]
    lines: list[list[str]] = []
    for row in rows:
        others = probabilities[row].astype(np.float64)
        others[summary.codes[row]] = -1
        second = int(others.argmax())
        cells: list[str] = [element("span", summary.row_name(int(row)), class_="row-name")]
        cells.append(element("span", chip(summary, int(summary.codes[row])), f" {summary.confidence[row]:.2f}"))
        cells.append(element("span", chip(summary, second), f" {others[second]:.2f}"))
        cells += [] if truth is None else [str(truth[row])]
        lines.append(cells)
    return table(headers, lines, caption="Most doubtful rows", class_="doubtful")
