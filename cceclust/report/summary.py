"""What all parts of the report need to know about a clustering, computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import InputError
from cceclust.io.clusters import Clusters
from cceclust.io.features import FeatureFile
from cceclust.io.scores import score_without_truth
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR, colour_numbers
from cceclust.scoring import LabelFreeScores, Scores, is_missing, score_clusters

__all__ = ["Summary", "summarize"]


@dataclass(frozen=True)
class Summary:
    """A clustering prepared for the report.

    Attributes
    ----------
    clusters : Clusters
        The clustering itself.
    names : list of str
        The name of each cluster, empty ones included.
    codes : ndarray of shape (n_samples,)
        The position of each row's cluster in ``names``; −1 for none.
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster.
    confidence : ndarray of shape (n_samples,) or None
        The largest probability of each row.
    classes : list of str or None
        The true class that each cluster stands for, empty for none; None without true labels.
    scores : Scores or None
        Scores of the clustering against true labels.
    label_free : LabelFreeScores
        Scores that need no true labels.
    colours : ndarray of shape (n_clusters,)
        The number of each cluster's colour.
    """

    clusters: Clusters
    names: list[str]
    codes: NDArray[np.intp]
    sizes: NDArray[np.intp]
    confidence: NDArray[Any] | None
    classes: list[str] | None
    scores: Scores | None
    label_free: LabelFreeScores
    colours: NDArray[np.intp]

    def colour(self, position: int) -> str:
        """Return the colour of a cluster; a negative position means no cluster."""
        return NO_CLUSTER_COLOUR if position < 0 else CLUSTER_COLOURS[self.colours[position]]

    @property
    def row_names(self) -> NDArray[Any] | None:
        """The names of rows, or else their paths."""
        names = self.clusters.names
        return self.clusters.paths if names is None else names

    def row_name(self, row: int) -> str:
        """Return the name of a row, that of its file without folders, or its number."""
        names = self.row_names
        if names is None or not str(names[row]):
            return f"row {row}"
        return PurePath(str(names[row])).name if names is self.clusters.paths else str(names[row])

    def title(self, position: int) -> str:
        """Return the name of a cluster with the class it stands for."""
        stands_for = self.classes[position] if self.classes else ""
        return f"{self.names[position]} · {stands_for}" if stands_for else self.names[position]

    def mean_confidence(self, position: int) -> float | None:
        """Return the mean confidence of a cluster's rows."""
        if self.confidence is None or not self.sizes[position]:
            return None
        return float(self.confidence[self.codes == position].mean())


def summarize(clusters: Clusters, features: FeatureFile | None) -> Summary:
    """Compute what all parts of the report need."""
    n_rows = len(clusters.labels)
    for name in ("true_labels", "paths", "names"):
        column = getattr(clusters, name)
        if column is not None and len(column) != n_rows:
            raise InputError(f"{len(column):,} {name} for {n_rows:,} clustered rows; expected one for each")
    if features is not None and features.n_samples != n_rows:
        raise InputError(
            f"{features.path} has {features.n_samples:,} rows, the clustering {n_rows:,}; is it another's?"
        )
    if features is not None:
        clusters = replace(
            clusters,
            paths=features.paths if clusters.paths is None else clusters.paths,
            names=features.names if clusters.names is None else clusters.names,
        )
    label_free = score_without_truth(clusters, features)
    values, codes = cluster_codes(clusters.labels, label_free.n_clusters)
    truth = clusters.true_labels
    is_judged = truth is not None and not (is_missing(truth) | (codes < 0)).all()
    scores = score_clusters(truth, clusters.labels) if truth is not None and is_judged else None
    stands_for = {} if scores is None else {entry.cluster: str(entry.label) for entry in scores.classes}
    return Summary(
        clusters=clusters,
        names=[str(value) for value in values],
        codes=codes,
        sizes=np.bincount(codes[codes >= 0], minlength=len(values)),
        confidence=None if clusters.probabilities is None else np.asarray(clusters.probabilities.max(axis=1)),
        classes=None if scores is None else [stands_for.get(value, "") for value in values],
        scores=scores,
        label_free=label_free,
        colours=colour_numbers(len(values)),
    )


def cluster_codes(labels: NDArray[Any], n_clusters: int) -> tuple[list[int | str], NDArray[np.intp]]:
    """Return all clusters, and for each row the position of its cluster among them."""
    missing = is_missing(labels)
    values, positions = np.unique(labels[~missing], return_inverse=True)
    codes = np.full(len(labels), -1, np.intp)
    is_numbered = values.dtype.kind in "iu" and (not values.size or 0 <= values[0] <= values[-1] < n_clusters)
    if is_numbered:
        # The head numbers its clusters, so empty ones can be shown as well.
        codes[~missing] = labels[~missing]
        return list(range(n_clusters)), codes
    codes[~missing] = positions
    return values.tolist(), codes
