"""Lists of typical and of doubtful rows, for data that have no images to look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cceclust.report.markup import Html, card, element, table
from cceclust.report.neighbor_confusion import chip
from cceclust.report.placement import Placement
from cceclust.report.summary import Summary

__all__ = ["telling_rows"]

MOST_DOUBTFUL = 12
ROWS_OF_A_CLUSTER = 3
MOST_CLUSTERS_UNFOLDED = 12
MOST_CLUSTERS = 200


def telling_rows(summary: Summary, placement: Placement | None) -> Html:
    """List the rows that the head is least sure about, and for each cluster typical and doubtful ones."""
    if summary.confidence is None:
        return Html("")
    note = (
        "Rows that the head is surest and least sure about. Doubtful rows lie between clusters: look at them "
        "first. The number is the confidence, the largest probability of a row."
    )
    if placement is not None:
        note += " Of equally sure rows on the map, those with more neighbours in their own cluster are more typical."
    ordered = from_typical_to_doubtful(summary, placement)
    listing, n_listed = rows_of_clusters(summary, ordered)
    if n_listed <= MOST_CLUSTERS_UNFOLDED:
        parts = element("div", listing, doubtful_rows(summary, ordered), class_="side-by-side")
    else:
        heading = element("summary", f"Typical and doubtful rows of {n_listed:,} clusters")
        parts = Html(doubtful_rows(summary, ordered) + element("details", heading, listing))
    return card("Typical and doubtful rows", parts, note=note, wide=True, anchor="rows")


def from_typical_to_doubtful(summary: Summary, placement: Placement | None) -> NDArray[np.intp]:
    """Return the rows on the map, or all without a map, from the surest to the least sure.

    Many heads are sure of nearly all rows. Of equally sure ones, to two digits, those come first whose neighbours are
    in their own cluster, and then those nearest to their neighbours.
    """
    assert summary.confidence is not None
    rows = np.arange(len(summary.codes)) if placement is None else placement.rows
    alone, outliers = np.zeros(len(rows)), summary.clusters.outlier_scores
    if placement is not None:
        codes = summary.codes[rows]
        alone = (codes[placement.neighbors] != codes[:, None]).mean(axis=1)
    scores = alone if outliers is None else outliers[rows]
    ordered = rows[np.lexsort((scores, alone, -np.round(summary.confidence[rows], 2)))]
    return np.asarray(ordered[summary.codes[ordered] >= 0])


def rows_of_clusters(summary: Summary, ordered: NDArray[np.intp]) -> tuple[Html, int]:
    """Tabulate typical and doubtful rows of the largest clusters; return also how many these are."""
    listed = np.bincount(summary.codes[ordered], minlength=len(summary.names))
    largest = [int(position) for position in np.argsort(-listed, kind="stable") if listed[position]][:MOST_CLUSTERS]
    lines: list[list[str]] = []
    for position in sorted(largest):
        members = ordered[summary.codes[ordered] == position]
        # A small cluster shows each of its rows once.
        half = (len(members) + 1) // 2
        typical, doubtful = members[:half][:ROWS_OF_A_CLUSTER], members[half:][::-1][:ROWS_OF_A_CLUSTER]
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


def doubtful_rows(summary: Summary, ordered: NDArray[np.intp]) -> Html:
    """Tabulate the rows with the lowest confidence, and between which two clusters they lie."""
    probabilities, truth = summary.clusters.probabilities, summary.clusters.true_labels
    assert summary.confidence is not None
    assert probabilities is not None
    if probabilities.shape[1] < 2 or probabilities.shape[1] != len(summary.names):
        return Html("")
    headers = ["row", "cluster", "or rather", *(["class"] if truth is not None else [])]
    lines: list[list[str]] = []
    for row in ordered[::-1][:MOST_DOUBTFUL]:
        others = probabilities[row].astype(np.float64)
        others[summary.codes[row]] = -1
        second = int(others.argmax())
        cells: list[str] = [element("span", summary.row_name(int(row)), class_="row-name")]
        cells.append(element("span", chip(summary, int(summary.codes[row])), f" {summary.confidence[row]:.2f}"))
        cells.append(element("span", chip(summary, second), f" {others[second]:.2f}"))
        cells += [] if truth is None else [str(truth[row])]
        lines.append(cells)
    return table(headers, lines, caption="Most doubtful rows", class_="doubtful")
