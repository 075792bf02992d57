"""The key figures on top of the page."""

from __future__ import annotations

from collections.abc import Sequence

from cceclust.report.markup import Html, element, percent
from cceclust.report.summary import Summary

__all__ = ["key_figures"]


def key_figures(summary: Summary) -> Html:
    """Return a tile for each known figure, the most important first."""
    scores, facts = summary.scores, summary.label_free
    judged: list[Html | None] = []
    if scores is not None:
        judged = [
            tile(
                "Accuracy", percent(scores.accuracy), "under the best matching of clusters to classes", scores.accuracy
            ),
            tile("NMI", f"{scores.nmi:.3f}", "information shared with the classes; 1 is all", scores.nmi),
            tile("ARI", f"{scores.ari:.3f}", "pairs that agree with the classes; 0 is chance", scores.ari),
            tile("Purity", percent(scores.purity), "belong to the main class of their cluster", scores.purity),
        ]
    unjudged = [
        measured(
            "Modularity",
            facts.modularity,
            "how much more often neighbours share a cluster than by chance; near 1 is best",
        ),
        measured("Confidence", facts.mean_confidence, "mean of the largest probability"),
        measured(
            "Stability",
            facts.restart_agreement,
            "how alike the clusters of all candidates are (mean ARI); 1 if all agree",
        ),
        measured("Balance", facts.size_entropy, "entropy of the cluster sizes; 1 if all are equal"),
        measured("Silhouette", facts.silhouette, "of a sample, in the features; from −1 to 1"),
    ]
    return element("div", group("Against the true labels", judged), group("Without labels", unjudged), class_="figures")


def group(title: str, tiles: Sequence[Html | None]) -> Html:
    """Return the tiles of the known figures of a group."""
    known = [entry for entry in tiles if entry is not None]
    return element("section", element("h2", title), element("ul", *known, class_="tiles")) if known else Html("")


def measured(name: str, value: float | None, meaning: str) -> Html | None:
    """Return the tile of a figure between 0 and 1 that may be unknown."""
    return None if value is None else tile(name, f"{value:.3f}", meaning, value)


def tile(name: str, value: str, meaning: str, share: float | None = None) -> Html:
    """Return a figure with its name, its meaning and, if it is a share, a bar."""
    bar = Html("")
    if share is not None:
        filled = element("i", style=f"width:{100 * min(1.0, max(0.0, share)):.1f}%")
        bar = element("i", filled, class_="meter", aria_hidden="true")
    return element("li", element("h3", name), element("b", value), bar, element("p", meaning))
