"""The most and least confident rows of each cluster: their images, or else their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cceclust.report.drawing import Html, card, element, folded, table
from cceclust.report.pictures import SMALL_SIDE, Pictures, Pixels, shrink
from cceclust.report.summary import Summary

# Of very many clusters, the largest have images, and fewer each, so that the page stays small.
MOST_CLUSTERS, MOST_IMAGES = 60, 480
LEAST_IMAGES_A_LINE, MOST_IMAGES_A_LINE = 3, 8
SIDE = 80
TRIES_FOR_AN_IMAGE = 3
MOST_DOUBTFUL, ROWS_OF_A_CLUSTER = 12, 3
# The rows of more clusters are folded.
MOST_CLUSTERS_UNFOLDED = 12


def telling_images(summary: Summary, pictures: Pictures) -> Html:
    """Show images of every cluster; if none can be read, say so."""
    ordered = from_sure_to_doubtful(summary)
    filled = [int(position) for position in np.argsort(-summary.sizes, kind="stable") if summary.sizes[position]]
    shown = sorted(filled[:MOST_CLUSTERS])
    a_line = min(MOST_IMAGES_A_LINE, max(LEAST_IMAGES_A_LINE, MOST_IMAGES // (2 * max(1, len(shown)))))
    galleries = [gallery(summary, ordered, position, pictures, a_line) for position in shown]
    note = "The most and least confident images of each cluster; the number is the confidence."
    if summary.confidence is None:
        note = "The first images of each cluster."
    if len(shown) < len(filled):
        note += f" The {len(shown)} largest clusters are shown."
    if not any(galleries):
        note = (
            "None of the images could be opened. This needs Pillow, and the images in the folder of the clusters; "
            "cceclust report --images names another folder, archive or file."
        )
    return card("Images", element("div", *galleries, class_="galleries"), note=note, anchor="images")


def from_sure_to_doubtful(summary: Summary) -> NDArray[np.intp]:
    """Return the rows on the map, or all without a map, from the most to the least confident.

    Many heads are sure of nearly all rows. Of equally sure ones, to two digits, those with more neighbours in their own
    cluster come first.
    """
    placement = summary.placement
    rows = np.arange(len(summary.codes)) if placement is None else placement.rows
    codes = summary.codes[rows]
    alone = np.zeros(len(rows)) if placement is None else (codes[placement.neighbors] != codes[:, None]).mean(axis=1)
    sure = np.zeros(len(rows)) if summary.confidence is None else np.round(summary.confidence[rows], 2)
    order = np.lexsort((alone, -sure))
    return np.asarray(rows[order][codes[order] >= 0])


def most_and_least(summary: Summary, ordered: NDArray[np.intp], position: int) -> dict[str, NDArray[np.intp]]:
    """Return the rows of a cluster, the most and the least confident first; each row of a small cluster only once."""
    members = ordered[summary.codes[ordered] == position]
    if summary.confidence is None:
        return {"first": np.sort(members)}
    half = (len(members) + 1) // 2
    return {"most confident": members[:half], "least confident": members[half:][::-1]}


def gallery(summary: Summary, ordered: NDArray[np.intp], position: int, pictures: Pictures, n_images: int) -> Html:
    """Show the images of one cluster; nothing if none can be opened."""
    strips = []
    for kind, rows in most_and_least(summary, ordered, position).items():
        images: list[Html] = []
        for row in rows[: TRIES_FOR_AN_IMAGE * n_images].tolist():
            pixels = pictures(row) if len(images) < n_images else None
            if pixels is not None:
                images.append(thumbnail(pixels, summary, row))
        if images:
            strips.append(element("div", element("h4", kind), element("div", *images, class_="strip")))
    heading = element("h3", summary.chip(position, f"Cluster {summary.title(position)}"))
    return element("article", heading, *strips, class_="gallery") if strips else Html("")


def thumbnail(pixels: Pixels, summary: Summary, row: int) -> Html:
    """Return a small image with its confidence below."""
    truth, confidence = summary.clusters.true_labels, summary.confidence
    sure = "" if confidence is None else f"{confidence[row]:.2f}"
    text = summary.row_name(row) + ("" if truth is None else f", class {truth[row]}")
    text += sure and f", confidence {sure}"
    kind = "pixelated" if max(pixels.shape[:2]) <= SMALL_SIDE else None
    picture = element("img", src=shrink(pixels, SIDE), alt=text, title=text, class_=kind)
    return element("figure", picture, element("figcaption", sure))


def telling_rows(summary: Summary) -> Html:
    """List the most and least confident rows of each cluster, and the least confident ones of all."""
    if summary.confidence is None:
        return Html("")
    note = (
        "The number is the confidence, the largest probability of a row. Rows of low confidence lie between clusters: "
        "look at them first."
    )
    ordered, lines = from_sure_to_doubtful(summary), []
    for position in np.unique(summary.codes[ordered]).tolist():
        kinds = most_and_least(summary, ordered, position)
        lines.append([summary.chip(position), *(names_of(summary, rows) for rows in kinds.values())])
    headers = ["cluster", "most confident", "least confident"]
    listing = table(headers, lines, caption="Most and least confident rows of clusters", class_="telling")
    doubtful = doubtful_rows(summary, ordered)
    if len(lines) <= MOST_CLUSTERS_UNFOLDED:
        parts = element("div", listing, doubtful, class_="side-by-side")
    else:
        parts = Html(doubtful + folded(f"Most and least confident rows of {len(lines):,} clusters", listing))
    return card("Most and least confident rows", parts, note=note, anchor="rows")


def names_of(summary: Summary, rows: NDArray[np.intp]) -> Html:
    """Return the names of the first rows with their confidence."""
    assert summary.confidence is not None
    items = [
        element("li", summary.row_name(row), " ", element("b", f"{summary.confidence[row]:.2f}"))
        for row in rows[:ROWS_OF_A_CLUSTER].tolist()
    ]
    return element("ul", *items, class_="row-names") if items else Html("–")


def doubtful_rows(summary: Summary, ordered: NDArray[np.intp]) -> Html:
    """Tabulate the rows with the lowest confidence, and between which two clusters they lie."""
    probabilities, truth = summary.clusters.probabilities, summary.clusters.true_labels
    if probabilities is None or not 2 <= probabilities.shape[1] == len(summary.names):
        return Html("")
    lines = []
    for row in ordered[::-1][:MOST_DOUBTFUL].tolist():
        own, by_probability = summary.codes[row], np.argsort(-probabilities[row], kind="stable")
        second = by_probability[by_probability != own][0]
        choices = [
            element("span", summary.chip(position), f" {probabilities[row, position]:.2f}")
            for position in (own, second)
        ]
        name = element("span", summary.row_name(row), class_="row-name")
        lines.append([name, *choices, *([] if truth is None else [str(truth[row])])])
    headers = ["row", "cluster", "second choice", *(["class"] if truth is not None else [])]
    return table(headers, lines, caption="Least confident rows of all", class_="doubtful")
