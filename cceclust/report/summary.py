"""What all parts of the report need to know about a clustering, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.modularity import neighbor_modularity
from cceclust.io import Clusters, FeatureFile
from cceclust.report.drawing import Html, element
from cceclust.report.palette import CLUSTER_COLOURS, colours_apart
from cceclust.report.placement import Placement
from cceclust.scoring import LabelFreeScores, Scores, is_missing, score_clusters, score_without_labels

# The silhouette needs the distances between all pairs of so many rows.
ROWS_FOR_SILHOUETTE = 1000


@dataclass(frozen=True)
class Summary:
    """A clustering prepared for the report."""

    clusters: Clusters
    # Of each cluster, empty ones included: its name, number of rows, colour, and the class it stands for, "" for none.
    names: list[str]
    sizes: NDArray[np.intp]
    colours: NDArray[np.intp]
    classes: list[str] | None
    # Of each row: the position of its cluster in `names`, −1 for none, and its largest probability.
    codes: NDArray[np.intp]
    confidence: NDArray[Any] | None
    scores: Scores | None
    label_free: LabelFreeScores
    placement: Placement | None

    def row_name(self, row: int) -> str:
        """Return the name of a row, that of its file without folders, or its number."""
        names, paths = self.clusters.names, self.clusters.paths
        name = str(names[row]) if names is not None else PurePath(str(paths[row])).name if paths is not None else ""
        return name or f"row {row}"

    def title(self, position: int) -> str:
        """Return the name of a cluster with the class it stands for."""
        stands_for = self.classes[position] if self.classes else ""
        return f"{self.names[position]} · {stands_for}" if stands_for else self.names[position]

    def colour(self, position: int) -> str:
        """Return the colour of a cluster."""
        return CLUSTER_COLOURS[self.colours[position]]

    def chip(self, position: int, text: str | None = None) -> Html:
        """Return the title of a cluster, or another text, beside its colour."""
        swatch = element("i", class_="swatch", style=f"background:{self.colour(position)}")
        return element("span", swatch, self.title(position) if text is None else text, class_="name")


def summarize(clusters: Clusters, features: FeatureFile | None = None, placement: Placement | None = None) -> Summary:
    """Compute what all parts of the report need."""
    probabilities, sample, rows = clusters.probabilities, None, None
    values, codes = cluster_codes(clusters.labels, 0 if probabilities is None else probabilities.shape[1])
    sizes = np.bincount(codes[codes >= 0], minlength=len(values))
    modularity = clusters.diagnostics.get("modularity")
    places = np.full((len(values), 2), np.nan)
    if placement is not None:
        shown = codes[placement.rows]
        places = placement.dense(shown, len(values))
        if not is_number(modularity) and (shown >= 0).all():
            modularity = neighbor_modularity(shown, placement.neighbors)
    if features is not None:
        count = min(ROWS_FOR_SILHOUETTE, features.n_samples)
        sample = np.sort(np.random.default_rng(0).choice(features.n_samples, count, replace=False))
        rows = features.read(sample)
    truth = clusters.true_labels
    is_judged = truth is not None and not (is_missing(truth) | (codes < 0)).all()
    scores = score_clusters(truth, clusters.labels) if truth is not None and is_judged else None
    stands_for = {} if scores is None else {entry.cluster: str(entry.label) for entry in scores.classes}
    return Summary(
        clusters,
        names=[str(value) for value in values],
        sizes=sizes,
        colours=colours_apart(places, sizes),
        classes=None if scores is None else [stands_for.get(value, "") for value in values],
        codes=codes,
        confidence=None if probabilities is None else np.asarray(probabilities.max(axis=1)),
        scores=scores,
        label_free=score_without_labels(
            clusters.labels,
            probabilities=probabilities,
            modularity=modularity if is_number(modularity) else None,
            sample=sample,
            sample_features=rows,
        ),
        placement=placement,
    )


def cluster_codes(labels: NDArray[Any], n_predicted: int) -> tuple[list[int | str], NDArray[np.intp]]:
    """Return all clusters, and for each row the position of its cluster among them."""
    missing = is_missing(labels)
    values, positions = np.unique(labels[~missing], return_inverse=True)
    codes, n_clusters = np.full(len(labels), -1, np.intp), max(len(values), n_predicted)
    if values.dtype.kind in "iu" and (not values.size or 0 <= values[0] <= values[-1] < n_clusters):
        # The head numbers its clusters, so empty ones can be shown as well.
        values, positions = np.arange(n_clusters), labels[~missing]
    codes[~missing] = positions
    return values.tolist(), codes


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value from a file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
