"""What was found in numbers: key figures, sizes and classes, confidence, and the number of clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cceclust.report.drawing import CHART, Html, bars, card, element, folded, meter, number, percent, plot, table
from cceclust.report.summary import Summary, is_number
from cceclust.scoring import ClassScore

# Longer lists are folded.
MOST_LISTED = 40
WEAKEST_CLASSES = 8
BINS = 25
# Numbers of clusters are shown up to so many times the largest good one.
SHOWN_BEYOND = 4


def key_figures(summary: Summary) -> Html:
    """Return a tile for each known figure, the most important first."""
    scores, facts = summary.scores, summary.label_free
    judged, neighbours = [], "how much more often neighbours share a cluster than by chance; near 1 is best"
    if scores is not None:
        judged = [
            tile("Accuracy", scores.accuracy, "under the best matching of clusters to classes", is_percent=True),
            tile("NMI", scores.nmi, "information shared with the classes; 1 is all"),
            tile("ARI", scores.ari, "pairs that agree with the classes; 0 is chance"),
            tile("Purity", scores.purity, "belong to the main class of their cluster", is_percent=True),
        ]
    unjudged = [
        tile("Modularity", facts.modularity, neighbours),
        tile("Confidence", facts.mean_confidence, "mean of the largest probability"),
        tile("Balance", facts.size_entropy, "entropy of the cluster sizes; 1 if all are equal"),
        tile("Silhouette", facts.silhouette, "of a sample, in the features; from −1 to 1"),
    ]
    groups = [
        element("section", element("h2", title), element("ul", *tiles, class_="tiles"))
        for title, tiles in (("Against the true labels", judged), ("Without labels", unjudged))
        if any(tiles)
    ]
    return element("div", *groups, class_="figures")


def tile(name: str, value: float | None, meaning: str, *, is_percent: bool = False) -> Html:
    """Return a figure with its name, a bar and its meaning; nothing if it is not known."""
    if value is None:
        return Html("")
    text = percent(value) if is_percent else f"{value:.3f}"
    return element("li", element("h3", name), element("b", text), meter(value), element("p", meaning))


def cluster_sizes(summary: Summary) -> Html:
    """Show the size of every cluster: one bar per cluster, or for many clusters a profile and a list to unfold."""
    sizes = summary.sizes
    largest = int(sizes.max(initial=1))
    note = f"From {int(sizes.min(initial=largest)):,} to {largest:,} points a cluster."
    parts = [size_table(summary)]
    if len(sizes) > MOST_LISTED:
        profile = plot(
            [bars(np.sort(sizes)[::-1] / largest)],
            last=len(sizes),
            highest=largest,
            x_label="clusters, largest first",
            y_label="points",
            description=f"Sizes of {len(sizes)} clusters, largest first. {note}",
        )
        parts = [profile, folded(f"All {len(sizes):,} clusters", *parts)]
    return card("Clusters", *parts, note=note, anchor="clusters")


def size_table(summary: Summary) -> Html:
    """Tabulate size, mean confidence and class of every cluster."""
    largest = max(1, int(summary.sizes.max(initial=1)))
    headers = ["cluster", *(["class"] if summary.classes else []), "points"]
    headers += ["mean confidence"] if summary.confidence is not None else []
    rows = []
    for position, size in enumerate(summary.sizes):
        style = f"width:{100 * size / largest:.1f}%;background:{summary.colour(position)}"
        cells: list[str] = [summary.chip(position, summary.names[position])]
        cells += [summary.classes[position] or "–"] if summary.classes else []
        bar = element("i", class_="size", style=style)
        cells.append(element("span", element("b", f"{size:,}"), bar, class_="sized"))
        if summary.confidence is not None:
            cells.append(f"{summary.confidence[summary.codes == position].mean():.3f}" if size else "–")
        rows.append(cells)
    return table(headers, rows, caption="Size of every cluster", class_="sizes")


def class_scores(summary: Summary) -> Html:
    """Tabulate recall and precision of every class; of many, show those of lowest recall and fold the others."""
    scores = summary.scores
    if scores is None:
        return Html("")
    note = "Recall: how much of the class is in its cluster. Precision: how much of the cluster is of the class."
    parts = [class_table(scores.classes)]
    if scores.n_classes > MOST_LISTED:
        note += f" These are the {WEAKEST_CLASSES} classes of lowest recall."
        weakest = sorted(scores.classes, key=lambda entry: entry.recall)[:WEAKEST_CLASSES]
        parts = [class_table(weakest), folded(f"All {scores.n_classes:,} classes", *parts)]
    return card("Classes", *parts, note=note, anchor="classes")


def class_table(classes: Sequence[ClassScore]) -> Html:
    """Tabulate some classes."""
    rows = []
    for entry in classes:
        shares = ["–" if share is None else meter(share, f"{share:.3f}") for share in (entry.recall, entry.precision)]
        cluster = "–" if entry.cluster is None else str(entry.cluster)
        rows.append([str(entry.label), cluster, f"{entry.size:,}", *shares])
    headers = ["class", "cluster", "points", "recall", "precision"]
    return table(headers, rows, caption="Recall and precision of classes", class_="classes")


def confidence_histogram(summary: Summary) -> Html:
    """Draw a histogram of the head's confidence."""
    if summary.confidence is None:
        return Html("")
    counts, edges = np.histogram(summary.confidence, bins=BINS, range=(0, 1))
    highest = float(max(1, counts.max()))
    sure = f"{percent(float((summary.confidence >= 0.9).mean()))} of the points are at 0.9 or above"
    chart = plot(
        [bars(counts / highest)],
        last=1.0,
        highest=highest,
        x_label="confidence",
        y_label="points",
        description=f"Histogram of confidence: {sure}; the most frequent value is about {edges[counts.argmax()]:.2f}",
    )
    return card("Confidence", chart, note=f"The largest probability of each point. {sure}.", anchor="confidence")


def numbers_of_clusters(summary: Summary) -> Html:
    """Draw how reproducible each number of clusters is, with the chosen one and those about as good."""
    levels, facts = summary.clusters.levels, summary.clusters.diagnostics.get("number_of_clusters")
    if levels is None or not len(levels) or not isinstance(facts, dict):
        return Html("")
    chosen, low, high = (float(facts[key]) if is_number(facts.get(key)) else 0.0 for key in ("chosen", "low", "high"))
    numbers = np.unique(levels[:, 0])
    # Several clusterings may have the same number of clusters.
    reproducible = [levels[levels[:, 0] == value, 1].max() for value in numbers]
    width, height = CHART
    last = float(max(numbers[0], min(numbers[-1], SHOWN_BEYOND * high), chosen, high))
    shown = zip(numbers[numbers <= last], reproducible, strict=False)
    points = [f"{width * x / last:.1f},{height * (1 - y):.1f}" for x, y in shown]
    left, middle, right = (f"{width * value / last:.1f}" for value in (low, chosen, high))
    chart = plot(
        [
            element("path", d=f"M{left},0H{right}V{height}H{left}z", class_="band"),
            element("path", d="M" + " ".join(points), class_="curve"),
            element("path", d=f"M{middle},0V{height}", class_="chosen"),
        ],
        last=last,
        highest=1.0,
        x_label="number of clusters",
        y_label="reproducibility",
        description=f"How reproducible {number(numbers[0])} to {number(last)} clusters are",
    )
    note = (
        "How well random halves of the points find the same clusters again, beyond chance: 0 is chance, 1 is perfect. "
        f"The line marks the chosen number, {number(chosen)}."
    )
    if low < high:
        note += f" Numbers from {number(low)} to {number(high)} (shaded) are about as reproducible."
    for other in facts.get("further") or {}:
        note += f" {other} clusters are an alternative."
    for cluster, parts in (facts.get("splits") or {}).items():
        note += f" Cluster {cluster} looks like {parts} groups."
    if facts.get("is_weak") is True:
        note += " No number stands out clearly."
    if facts.get("at_edge") is True:
        note += " Numbers outside the allowed range are more reproducible."
    return card("Number of clusters", chart, note=note, anchor="number-of-clusters")
