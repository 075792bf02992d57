"""Charts: loss curves, cluster sizes, confidence histogram.

Lines and bars are SVG stretched to the width of the page; the text of the axes is HTML, so that it keeps its size on
a phone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cceclust.report.markup import Html, card, element, number, percent, table
from cceclust.report.summary import Summary

__all__ = ["candidates", "cluster_sizes", "confidence_histogram", "loss_curves", "numbers_of_clusters"]

WIDTH, HEIGHT = 1000, 400
MOST_POINTS_OF_A_CURVE = 300
MOST_RESTARTS_LISTED = 24
MOST_CLUSTERS_LISTED = 40
BINS = 25
LEAST_SHARE_LISTED = 0.05


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return about ``n`` round numbers between two numbers.

    Examples
    --------
    >>> from cceclust.report.charts import ticks
    >>> ticks(0.3, 2.6)
    [0.5, 1.0, 1.5, 2.0, 2.5]
    """
    if high <= low:
        return [low]
    magnitude = 10.0 ** np.floor(np.log10((high - low) / n))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if (high - low) / (factor * magnitude) <= n + 1)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(round(k * step, 12)) for k in range(first, last + 1)]


def plot(
    shapes: Sequence[str],
    *,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    x_label: str,
    y_label: str,
    description: str,
    x_ticks: Sequence[float] | None = None,
) -> Html:
    """Put axes around shapes drawn in a box of WIDTH × HEIGHT."""
    x_ticks = ticks(*x_range) if x_ticks is None else x_ticks
    y_ticks = ticks(*y_range)
    grid = [
        element("line", x1=0, x2=WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
        for y in HEIGHT * (1 - relative(y_ticks, y_range))
    ]
    drawing = element(
        "svg",
        *grid,
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=description,
    )
    y_axis = [
        element("span", number(tick), style=f"bottom:{100 * at:.2f}%")
        for tick, at in zip(y_ticks, relative(y_ticks, y_range), strict=True)
    ]
    x_axis = [
        element("span", number(tick), style=f"left:{100 * at:.2f}%")
        for tick, at in zip(x_ticks, relative(x_ticks, x_range), strict=True)
    ]
    return element(
        "div",
        element("div", y_label, class_="y-label"),
        element("div", *y_axis, class_="y-axis", aria_hidden="true"),
        drawing,
        element("div", *x_axis, class_="x-axis", aria_hidden="true"),
        element("div", x_label, class_="x-label"),
        class_="plot",
    )


def relative(values: Sequence[float], limits: tuple[float, float]) -> NDArray[np.float64]:
    """Map values in a range to 0 to 1."""
    low, high = limits
    return (np.asarray(values, np.float64) - low) / ((high - low) or 1.0)


def loss_curves(summary: Summary) -> Html:
    """Draw the loss of every restart by epoch, with the chosen restart highlighted."""
    losses, curves = summary.clusters.losses, summary.clusters.loss_curves
    if curves is None or curves.ndim != 2 or not np.isfinite(curves).any():
        return Html("")
    is_judged = losses is not None and bool(np.isfinite(losses).any())
    chosen = summary.clusters.chosen_restart if is_judged else None
    finite = curves[np.isfinite(curves)]
    y_range = (float(finite.min()), float(finite.max()))
    x_range = (1.0, float(max(2, curves.shape[1])))
    # The chosen curve comes last, so that it lies on top.
    order = sorted(range(len(curves)), key=lambda restart: restart == chosen)
    shapes = [
        element(
            "path", d=curve_path(curves[restart], x_range, y_range), class_="chosen" if restart == chosen else "curve"
        )
        for restart in order
    ]
    description = f"Loss of {len(curves)} restarts over {curves.shape[1]} epochs"
    if chosen is not None:
        description += f"; restart {chosen + 1} was chosen"
    chart = plot(
        shapes, x_range=x_range, y_range=y_range, x_label="epoch", y_label="training loss", description=description
    )
    note = "Mean training loss of each restart: it tells whether training settled, not how good the clusters are."
    if chosen is not None:
        note += (
            f" Restart {chosen + 1} (thick) led to the chosen clusters, or has the lowest loss. Losses of restarts "
            "with different fairness cannot be compared."
        )
    if losses is not None and not isinstance(summary.clusters.diagnostics.get("candidates"), dict):
        note += f" {agreement_text(summary.clusters.diagnostics, len(losses))}".rstrip()
    return card("Training", chart, final_losses(losses, chosen), note=note, anchor="loss")


def curve_path(curve: NDArray[np.float64], x_range: tuple[float, float], y_range: tuple[float, float]) -> str:
    """Return the SVG path of a curve; what is not finite (after an early stop) is left out."""
    epochs = np.flatnonzero(np.isfinite(curve))
    if len(epochs) > MOST_POINTS_OF_A_CURVE:
        epochs = epochs[np.linspace(0, len(epochs) - 1, MOST_POINTS_OF_A_CURVE).astype(int)]
    x = WIDTH * relative((epochs + 1).tolist(), x_range)
    y = HEIGHT * (1 - relative(curve[epochs].tolist(), y_range))
    return "M" + " ".join(f"{left:.1f},{top:.1f}" for left, top in zip(x, y, strict=True)) if len(epochs) else ""


def final_losses(losses: NDArray[np.float64] | None, chosen: int | None) -> Html:
    """List the final losses, lowest first."""
    if losses is None or chosen is None:
        return Html("")
    order = [int(restart) for restart in np.argsort(losses) if np.isfinite(losses[restart])][:MOST_RESTARTS_LISTED]
    items = [
        element(
            "li",
            element("span", f"restart {restart + 1}"),
            " ",
            element("b", f"{losses[restart]:.4f}"),
            class_="is-chosen" if restart == chosen else None,
        )
        for restart in order
    ]
    return element("ul", *items, class_="chips", aria_label="Final loss of each restart, lowest first")


def candidates(summary: Summary) -> Html:
    """Tabulate the modularity of each candidate, the best first, with the chosen one marked."""
    diagnostics = summary.clusters.diagnostics
    scores, chosen = diagnostics.get("candidates"), diagnostics.get("chosen")
    known = {str(name): score for name, score in scores.items() if is_number(score)} if isinstance(scores, dict) else {}
    if len(known) < 2:
        return Html("")
    rows: list[list[str]] = []
    for name, score in sorted(known.items(), key=lambda entry: -entry[1]):
        bar = element("i", element("i", style=f"width:{100 * min(1.0, max(0.0, score)):.1f}%"), class_="meter")
        title = element("b", f"{name} (chosen)") if name == chosen else name
        rows.append([title, element("span", f"{score:.3f}", bar, class_="metered")])
    note = (
        "Several clusterings were tried. They are compared by their modularity: how much more often nearest neighbours "
        "share a cluster than random pairs of points do. It cannot tell nearly equal ones apart, so the chosen one "
        "need not be the first."
    )
    agreeing = agreement_text(diagnostics, len(known))
    return card(
        "Candidates",
        table(["candidate", "modularity"], rows, caption="Modularity of every candidate"),
        note=f"{note} {agreeing}" if agreeing else note,
        anchor="candidates",
    )


def is_number(value: object) -> bool:
    """Tell whether a value from a file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def agreement_text(diagnostics: Mapping[str, object], n_candidates: int) -> str:
    """Return how many other candidates found the chosen clusters; a fit counts the chosen one as well."""
    agreeing = diagnostics.get("agreeing_restarts")
    if not isinstance(agreeing, int) or not 1 <= agreeing <= n_candidates:
        return ""
    return f"{agreeing - 1} of the other {n_candidates - 1} found nearly the same clusters as the chosen one."


def numbers_of_clusters(summary: Summary) -> Html:
    """Draw the score of each number of clusters, and tabulate how other good numbers divide the points."""
    table_of_k = summary.clusters.k_search
    if table_of_k is None or not np.isfinite(table_of_k.scores).any():
        return Html("")
    ks, scores = table_of_k.ks.astype(np.float64), table_of_k.scores.astype(np.float64)
    chosen = len(summary.names)
    x_range = (float(ks[0]), float(max(ks[-1], ks[0] + 1)))
    y_range = (min(0.0, float(np.nanmin(scores))), max(float(np.nanmax(scores)), 1e-6))
    x, y = WIDTH * relative(ks.tolist(), x_range), HEIGHT * (1 - relative(scores.tolist(), y_range))
    points = " ".join(f"{left:.1f},{top:.1f}" for left, top in zip(x, y, strict=True) if np.isfinite(top))
    shapes = [element("path", d=f"M{points}", class_="curve")]
    at = WIDTH * relative([float(chosen)], x_range)[0]
    if chosen in table_of_k.ks:
        shapes.append(element("path", d=f"M{at:.1f},0V{HEIGHT}", class_="chosen"))
    chart = plot(
        shapes,
        x_range=x_range,
        y_range=y_range,
        x_label="number of clusters",
        y_label="score",
        description=f"Score of {int(ks[0])} to {int(ks[-1])} clusters; {chosen} was chosen",
    )
    words = summary.clusters.diagnostics.get("number_of_clusters")
    note = (f"Chosen: {words}. " if isinstance(words, str) else "") + (
        "The score is the share of pairs of neighbours that clusters keep together beyond what a cloud without "
        "clusters would, less where halves of the pairs disagree."
    )
    others = [int(level) for level in table_of_k.levels if level != chosen and level <= MOST_CLUSTERS_LISTED]
    relations = [relation_table(summary, level) for level in others]
    return card("Number of clusters", chart, *relations, note=note, wide=True, anchor="number-of-clusters")


def relation_table(summary: Summary, level: int) -> Html:
    """Tabulate how the clusters of another good number are made up of the chosen ones."""
    assert summary.clusters.k_search is not None
    counts = summary.clusters.k_search.relation(summary.codes, level)
    rows: list[list[str]] = []
    for part, row in enumerate(counts):
        shares = row / max(1, row.sum())
        largest = [
            int(cluster) for cluster in np.argsort(-shares, kind="stable") if shares[cluster] >= LEAST_SHARE_LISTED
        ]
        listed = ", ".join(f"{summary.title(cluster)} ({percent(shares[cluster])})" for cluster in largest)
        rows.append([f"part {part}", f"{row.sum():,}", listed or "–"])
    unfold = element("summary", f"With {level} instead: which clusters each part consists of")
    return element("details", unfold, table(["part", "points", "clusters"], rows, caption=f"Parts of {level}"))


def confidence_histogram(summary: Summary) -> Html:
    """Draw a histogram of the head's confidence."""
    if summary.confidence is None:
        return Html("")
    counts, edges = np.histogram(summary.confidence, bins=BINS, range=(0, 1))
    highest = float(max(1, counts.max()))
    shapes = bars(counts / highest)
    sure = float((summary.confidence >= 0.9).mean())
    chart = plot(
        shapes,
        x_range=(0.0, 1.0),
        y_range=(0.0, highest),
        x_label="confidence",
        y_label="points",
        description=f"Histogram of confidence: {percent(sure)} of the points are at 0.9 or above; "
        f"the most frequent value is about {edges[counts.argmax()]:.2f}",
    )
    note = f"Largest probability of each point. {percent(sure)} of the points are at 0.9 or above."
    return card("Confidence", chart, note=note, anchor="confidence")


def bars(heights: NDArray[np.float64]) -> list[Html]:
    """Draw upright bars side by side, of heights from 0 to 1."""
    width = WIDTH / max(1, len(heights))
    gap = min(4.0, 0.15 * width)
    path = "".join(
        f"M{k * width + gap / 2:.1f},{HEIGHT}V{HEIGHT * (1 - height):.1f}h{width - gap:.2f}V{HEIGHT}z"
        for k, height in enumerate(heights)
        if height
    )
    return [element("path", d=path, class_="bar")]


def cluster_sizes(summary: Summary) -> Html:
    """Show the size of every cluster: one bar per cluster, or for many clusters a profile and a list to unfold."""
    sizes = summary.sizes
    largest = int(sizes.max(initial=1))
    note = f"From {int(sizes.min(initial=largest)):,} to {largest:,} points a cluster."
    listing = size_table(summary)
    if len(sizes) <= MOST_CLUSTERS_LISTED:
        return card("Clusters", listing, note=note, anchor="clusters")
    profile = plot(
        bars(np.sort(sizes)[::-1] / largest),
        x_range=(0.0, float(len(sizes))),
        y_range=(0.0, float(largest)),
        x_label="clusters, largest first",
        y_label="points",
        description=f"Sizes of {len(sizes)} clusters, largest first. {note}",
    )
    unfold = element("details", element("summary", f"All {len(sizes):,} clusters"), listing)
    return card("Clusters", profile, unfold, note=note, anchor="clusters")


def size_table(summary: Summary) -> Html:
    """Tabulate size, mean confidence and class of every cluster."""
    largest = max(1, int(summary.sizes.max(initial=1)))
    headers = ["cluster", *(["class"] if summary.classes else []), "points"]
    headers += ["mean confidence"] if summary.confidence is not None else []
    rows = []
    for position, size in enumerate(summary.sizes):
        colour = summary.colour(position)
        swatch = element("i", class_="swatch", style=f"background:{colour}")
        bar = element("i", class_="size", style=f"width:{100 * size / largest:.1f}%;background:{colour}")
        cells: list[str] = [element("span", swatch, summary.names[position], class_="name")]
        cells += [summary.classes[position] or "–"] if summary.classes else []
        cells.append(element("span", element("b", f"{size:,}"), bar, class_="sized"))
        if summary.confidence is not None:
            mean = summary.mean_confidence(position)
            cells.append("–" if mean is None else f"{mean:.3f}")
        rows.append(cells)
    return table(headers, rows, caption="Size of every cluster", class_="sizes")
