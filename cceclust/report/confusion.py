"""The matched confusion matrix, and recall and precision of every class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cceclust.report.markup import Html, card, data_uri, element, percent, table
from cceclust.report.palette import rgb
from cceclust.report.png import encode_png
from cceclust.report.summary import Summary
from cceclust.scoring import ClassScore, Scores, worst_confusions

__all__ = ["MOST_COLUMNS_OF_A_TABLE", "class_scores", "confusion_matrix", "matrix_cell", "share_picture"]

MOST_COLUMNS_OF_A_TABLE = 25
MOST_CLASSES_LISTED = 40
WORST_CONFUSIONS = 20
WEAKEST_CLASSES = 8
HIT, MISS = "#1f6fd0", "#d55e00"
SHADES = 120


def confusion_matrix(summary: Summary) -> Html:
    """Show which classes went to which clusters: a table, or where it would be too wide, a picture and a list."""
    scores = summary.scores
    if scores is None:
        return Html("")
    note = "Points of each true class (down) in each cluster (across); matched pairs are on the diagonal."
    if max(scores.n_classes, scores.n_clusters) <= MOST_COLUMNS_OF_A_TABLE:
        return card("Confusion matrix", matrix_table(scores), note=note, wide=True, anchor="confusion")
    shares = scores.confusion / scores.confusion.sum(axis=1, keepdims=True)
    description = f"Confusion matrix of {scores.n_classes} classes and {scores.n_clusters} clusters as a picture"
    parts = element("div", share_picture(shares, description), confusion_list(scores), class_="matrix-and-list")
    return card("Confusion matrix", parts, note=note, wide=True, anchor="confusion")


def matrix_table(scores: Scores) -> Html:
    """Return the matrix as a table with a colour behind every count."""
    head = element(
        "tr",
        element("th", "class ↓ cluster →", scope="col"),
        *(element("th", str(cluster), scope="col") for cluster in scores.clusters),
    )
    body = []
    for row, entry in enumerate(scores.classes):
        cells = [
            matrix_cell(f"{count:,}" if count else "", count / entry.size, is_hit=row == column)
            for column, count in enumerate(scores.confusion[row])
        ]
        body.append(element("tr", element("th", str(entry.label), scope="row"), *cells))
    caption = element("caption", "Confusion matrix with matched pairs on the diagonal")
    contents = element("table", caption, element("thead", head), element("tbody", *body), class_="matrix")
    return element("div", contents, class_="scroll", tabindex=0)


def matrix_cell(text: str, share: float, *, is_hit: bool) -> Html:
    """Return a cell; the larger its share of the line, the stronger its colour."""
    strength = round(0.85 * share**0.6, 3)
    if not text:
        return element("td", "·", class_="none")
    return element("td", text, class_="hit" if is_hit else "miss", style=f"--share:{strength:g}", title=percent(share))


def share_picture(shares: NDArray[np.float64], description: str) -> Html:
    """Return a large matrix of shares as a picture with one pixel per cell; the diagonal has another colour."""
    shade = np.ceil(SHADES * shares**0.6).astype(np.intp)
    is_hit = np.eye(*shares.shape) > 0
    pixels = np.where(shade > 0, shade + np.where(is_hit, 0, SHADES), 0).astype(np.uint8)
    opacities = np.arange(1, SHADES + 1) * 255 // SHADES
    palette = [(0, 0, 0, 0), *((*rgb(colour), opacity) for colour in (HIT, MISS) for opacity in opacities)]
    picture = element(
        "img",
        src=data_uri(encode_png(pixels, np.array(palette, np.uint8)), "image/png"),
        alt=description,
        class_="matrix-picture",
    )
    return element("figure", picture)


def confusion_list(scores: Scores) -> Html:
    """Return the most frequent mistakes as a table."""
    stands_for = {entry.cluster: str(entry.label) for entry in scores.classes}
    rows: list[list[str]] = [
        [str(label), str(cluster), stands_for.get(cluster, "no class"), f"{count:,}"]
        for label, cluster, count in worst_confusions(scores, WORST_CONFUSIONS)
    ]
    return table(["class", "in cluster", "which stands for", "points"], rows, caption="Most frequent confusions")


def class_scores(summary: Summary) -> Html:
    """Tabulate recall and precision of every class."""
    scores = summary.scores
    if scores is None:
        return Html("")
    listing = class_table(scores.classes, "Recall and precision of every class")
    note = "Recall: how much of the class is in its cluster. Precision: how much of the cluster is of the class."
    if scores.n_classes <= MOST_CLASSES_LISTED:
        return card("Classes", listing, note=note, anchor="classes")
    weakest = sorted(scores.classes, key=lambda entry: entry.recall)[:WEAKEST_CLASSES]
    unfold = element("details", element("summary", f"All {scores.n_classes:,} classes"), listing)
    note += f" The {WEAKEST_CLASSES} classes of lowest recall:"
    return card("Classes", class_table(weakest, "Classes of lowest recall"), unfold, note=note, anchor="classes")


def class_table(classes: Sequence[ClassScore], caption: str) -> Html:
    """Tabulate some classes."""
    rows: list[list[str]] = [
        [
            str(entry.label),
            "–" if entry.cluster is None else str(entry.cluster),
            f"{entry.size:,}",
            meter(entry.recall),
            "–" if entry.precision is None else meter(entry.precision),
        ]
        for entry in classes
    ]
    return table(["class", "cluster", "points", "recall", "precision"], rows, caption=caption, class_="classes")


def meter(share: float) -> Html:
    """Return a share as a number above a bar."""
    bar = element("i", element("i", style=f"width:{100 * share:.1f}%"), class_="meter")
    return element("span", f"{share:.3f}", bar, class_="metered")
