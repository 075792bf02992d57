"""Scores of clusters, with true labels and without.

Only NumPy is needed: scikit-learn, and the part of SciPy that matches, take longer to load than all of this to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from cceclust.errors import InputError

__all__ = [
    "ClassScore",
    "LabelFreeScores",
    "Scores",
    "adjusted_rand_of_counts",
    "clustering_accuracy",
    "is_missing",
    "label_accuracy",
    "match_clusters",
    "name_extra_clusters",
    "score_clusters",
    "score_without_labels",
    "worst_confusions",
]

# The table of all pairs is dense; with more cells than this, the "labels" are probably not labels.
MAX_CELLS = 100_000_000
# With more clusters, matching in NumPy would take longer than loading SciPy's.
MOST_MATCHED_HERE = 400
# The silhouette needs the distances of this many rows to all others at once.
SILHOUETTE_BLOCK = 512


@dataclass(frozen=True)
class ClassScore:
    """How well one true class was found.

    Attributes
    ----------
    label : int or str
        The class.
    size : int
        Its number of rows.
    cluster : int, str or None
        The cluster that stands for it; None if there are fewer clusters than classes and none was left.
    recall : float
        The share of the class that is in its cluster; 0 without a cluster.
    precision : float or None
        The share of its cluster that belongs to the class; None without a cluster.
    """

    label: int | str
    size: int
    cluster: int | str | None
    recall: float
    precision: float | None


@dataclass(frozen=True)
class Scores:
    """Scores of a clustering against true labels.

    Attributes
    ----------
    n_samples : int
        Number of rows that were scored.
    n_without_label, n_without_cluster : int
        Rows left out because their true label, or their cluster, is −1 or empty.
    n_classes, n_clusters : int
        Distinct labels among the scored rows.
    accuracy : float
        Share of rows whose cluster stands for their class, under the best one-to-one matching.
    nmi : float
        Normalised mutual information (arithmetic mean), as in scikit-learn.
    ari : float
        Adjusted Rand index.
    purity : float
        Share of rows that belong to the most frequent class of their cluster.
    classes : tuple of ClassScore
        One entry per class, in the order of the rows of ``confusion``.
    clusters : tuple of int or str
        The clusters, in the order of the columns of ``confusion``.
    confusion : ndarray of shape (n_classes, n_clusters)
        Counts, ordered so that matched pairs are on the diagonal.
    """

    n_samples: int
    n_without_label: int
    n_without_cluster: int
    n_classes: int
    n_clusters: int
    accuracy: float
    nmi: float
    ari: float
    purity: float
    classes: tuple[ClassScore, ...]
    clusters: tuple[int | str, ...]
    confusion: NDArray[np.int64]


@dataclass(frozen=True)
class LabelFreeScores:
    """Scores of a clustering that need no true labels; None where a score is not available.

    Attributes
    ----------
    n_samples : int
        Number of rows that have a cluster.
    n_clusters : int
        Number of clusters; empty ones are counted if probabilities are given.
    n_empty : int
        Number of clusters without a row.
    smallest, largest : int
        Sizes of the smallest and largest cluster.
    size_entropy : float or None
        Entropy of the cluster sizes divided by its maximum, ``log(n_clusters)``: 1 when all are equally large.
    loss : float or None
        Loss of the chosen restart on all the data.
    mean_confidence : float or None
        Mean of the largest probability of each row.
    modularity : float or None
        How much more often nearest neighbours share a cluster than random pairs of rows would.
    silhouette : float or None
        Mean silhouette of a sample of rows, from −1 to 1.
    restart_agreement : float or None
        Mean adjusted Rand index between the labels of any two restarts: 1 when all found the same.
    """

    n_samples: int
    n_clusters: int
    n_empty: int
    smallest: int
    largest: int
    size_entropy: float | None
    loss: float | None
    mean_confidence: float | None
    modularity: float | None
    silhouette: float | None
    restart_agreement: float | None


def clustering_accuracy(true_labels: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of rows whose cluster stands for their class, under the best one-to-one matching.

    Rows whose true label or cluster is missing (−1, empty or NaN) are left out.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings; their numbers may differ.

    Examples
    --------
    >>> from cceclust import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    pairs = count_pairs(true_labels, labels)
    return float(pairs.counts[matched_cells(pairs.counts)].sum() / pairs.counts.sum())


def match_clusters(true_labels: ArrayLike, labels: ArrayLike) -> dict[int | str, int | str]:
    """Return the class that each cluster stands for: the one-to-one matching that most rows agree with.

    When there are more clusters than classes, the clusters left over are not in the result.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings. Rows with −1, an empty string or NaN are left out.

    Examples
    --------
    >>> from cceclust import match_clusters
    >>> match_clusters(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    {1: 'cat', 0: 'dog'}
    """
    pairs = count_pairs(true_labels, labels)
    rows, columns = matched_cells(pairs.counts)
    return {pairs.clusters[column]: pairs.classes[row] for row, column in zip(rows, columns, strict=True)}


def score_clusters(true_labels: ArrayLike, labels: ArrayLike) -> Scores:
    """Score clusters against true labels.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings. Rows with −1, an empty string or NaN are left out and counted.

    Returns
    -------
    Scores

    Examples
    --------
    >>> from cceclust import score_clusters
    >>> scores = score_clusters(["cat", "cat", "dog", "dog", ""], [1, 1, 0, 1, 0])
    >>> scores.accuracy, scores.n_without_label
    (0.75, 1)
    >>> scores.confusion
    array([[2, 0],
           [1, 1]])
    """
    pairs = count_pairs(true_labels, labels)
    counts = pairs.counts
    rows, columns = matched_cells(counts)
    row_order = matched_first(rows, counts.shape[0])
    column_order = matched_first(columns, counts.shape[1])
    confusion = counts[np.ix_(row_order, column_order)]
    classes = [pairs.classes[row] for row in row_order]
    clusters = [pairs.clusters[column] for column in column_order]
    total = counts.sum()
    return Scores(
        n_samples=int(total),
        n_without_label=pairs.n_without_label,
        n_without_cluster=pairs.n_without_cluster,
        n_classes=len(classes),
        n_clusters=len(clusters),
        accuracy=float(np.trace(confusion) / total),
        nmi=normalized_mutual_information(counts),
        ari=adjusted_rand_of_counts(counts, counts.sum(axis=1), counts.sum(axis=0)),
        purity=float(counts.max(axis=0).sum() / total),
        classes=class_scores(confusion, classes, clusters),
        clusters=tuple(clusters),
        confusion=confusion,
    )


def class_scores(
    confusion: NDArray[np.int64], classes: Sequence[int | str], clusters: Sequence[int | str]
) -> tuple[ClassScore, ...]:
    """Compute recall and precision of each class from a confusion matrix with matched pairs on the diagonal."""
    found = np.diagonal(confusion)
    class_sizes, cluster_sizes = confusion.sum(axis=1), confusion.sum(axis=0)
    scores = [
        ClassScore(label, int(size), cluster, float(hits / size), float(hits / cluster_size))
        for label, size, cluster, hits, cluster_size in zip(
            classes, class_sizes, clusters, found, cluster_sizes, strict=False
        )
    ]
    unmatched = range(len(found), len(classes))
    return tuple(scores + [ClassScore(classes[i], int(class_sizes[i]), None, 0.0, None) for i in unmatched])


def worst_confusions(scores: Scores, n: int = 10) -> list[tuple[int | str, int | str, int]]:
    """Return the largest counts off the diagonal as ``(class, cluster, rows)``, largest first.

    Examples
    --------
    >>> from cceclust.scoring import score_clusters, worst_confusions
    >>> worst_confusions(score_clusters(["cat", "cat", "dog", "dog"], [1, 1, 0, 1]))
    [('dog', 1, 1)]
    """
    mistakes = scores.confusion.copy()
    np.fill_diagonal(mistakes, 0)
    largest = np.argsort(-mistakes, axis=None, kind="stable")[:n]
    cells = zip(*np.unravel_index(largest, mistakes.shape), strict=True)
    return [
        (scores.classes[row].label, scores.clusters[column], int(mistakes[row, column]))
        for row, column in cells
        if mistakes[row, column]
    ]


def score_without_labels(
    labels: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    loss: float | None = None,
    modularity: float | None = None,
    restart_agreement: float | None = None,
    sample: ArrayLike | None = None,
    sample_features: ArrayLike | None = None,
) -> LabelFreeScores:
    """Score clusters without true labels.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Clusters, integers or strings. Rows with −1, an empty string or NaN have none.
    probabilities : array-like of shape (n_samples, n_clusters), optional
        The head's softmax.
    loss : float, optional
        Loss of the chosen head.
    modularity : float, optional
        Modularity of the clusters on the graph of neighbours, see :func:`cceclust.neighbor_modularity`.
    restart_agreement : float, optional
        Mean adjusted Rand index between restarts.
    sample : array-like of shape (n_sampled,), optional
        Rows to compute the silhouette on. All distances between them are computed: a few thousand rows are enough.
    sample_features : array-like of shape (n_sampled, n_features), optional
        The features of these rows.

    Examples
    --------
    >>> from cceclust.scoring import score_without_labels
    >>> scores = score_without_labels([0, 0, 1], sample=[0, 1, 2], sample_features=[[0.0], [0.1], [9.0]])
    >>> round(scores.size_entropy, 3), round(scores.silhouette, 3)
    (0.918, 0.659)
    """
    values = as_labels(labels, "labels")
    clustered = ~is_missing(values)
    softmax = None if probabilities is None else np.asarray(probabilities)
    if softmax is not None and (softmax.ndim != 2 or len(softmax) != len(values)):
        raise InputError(f"probabilities have shape {softmax.shape}; expected ({len(values)}, n_clusters)")
    sizes = np.unique(values[clustered], return_counts=True)[1]
    n_clusters = max(len(sizes), softmax.shape[1] if softmax is not None else 0)
    n_empty = n_clusters - len(sizes)
    return LabelFreeScores(
        n_samples=int(clustered.sum()),
        n_clusters=n_clusters,
        n_empty=n_empty,
        smallest=0 if n_empty else int(sizes.min(initial=len(values))),
        largest=int(sizes.max(initial=0)),
        size_entropy=relative_entropy(sizes, n_clusters),
        loss=loss if finite(loss).size else None,
        mean_confidence=mean_confidence(softmax),
        modularity=modularity if finite(modularity).size else None,
        silhouette=None if sample is None or sample_features is None else silhouette(values, sample, sample_features),
        restart_agreement=restart_agreement if finite(restart_agreement).size else None,
    )


def finite(values: ArrayLike | None) -> NDArray[np.float64]:
    """Return the finite values."""
    numbers = np.empty(0) if values is None else np.atleast_1d(np.asarray(values, np.float64))
    return numbers[np.isfinite(numbers)]


def mean_confidence(probabilities: NDArray[Any] | None) -> float | None:
    """Return the mean of the largest probability of each row."""
    if probabilities is None or not probabilities.size:
        return None
    mean = float(probabilities.max(axis=1).mean(dtype=np.float64))
    return mean if np.isfinite(mean) else None


def relative_entropy(sizes: NDArray[np.int64], n_clusters: int) -> float | None:
    """Return the entropy of the sizes as a share of its maximum."""
    if n_clusters < 2 or not sizes.size:
        return None
    shares = sizes / sizes.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(n_clusters))


def silhouette(labels: NDArray[Any], sample: ArrayLike, features: ArrayLike) -> float | None:
    """Return the mean silhouette of sampled rows; None if it is not defined for them."""
    rows, points = labels[np.asarray(sample)], np.asarray(features, np.float32)
    usable = ~is_missing(rows) & np.isfinite(points).all(axis=1)
    rows, points = rows[usable], points[usable]
    if not 2 <= len(np.unique(rows)) < len(rows):
        return None
    # Distances come from products of float32, which lose digits far from the origin, and may be too large to square.
    centred = points.astype(np.float64)
    centred -= centred.mean(axis=0)
    scaled = centred / (np.abs(centred).max() or 1.0)
    # For products of this size, several threads only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        return mean_silhouette(scaled.astype(np.float32), np.unique(rows, return_inverse=True)[1])


def mean_silhouette(points: NDArray[np.float32], codes: NDArray[np.intp]) -> float:
    """Return the mean of (b − a) / max(a, b), for each row's mean distance a to its own and b to the nearest cluster.

    A row that is alone in its cluster counts as 0, as in scikit-learn.
    """
    squares = (points**2).sum(axis=1)
    sizes = np.bincount(codes)
    members = np.eye(len(sizes), dtype=np.float32)[codes]
    total = 0.0
    for start in range(0, len(points), SILHOUETTE_BLOCK):
        block = np.arange(start, min(start + SILHOUETTE_BLOCK, len(points)))
        products = points[block] @ points.T
        distances = np.sqrt(np.maximum(squares[block, None] + squares - 2 * products, 0.0))
        distances[np.arange(len(block)), block] = 0.0
        sums, own = distances @ members, codes[block]
        inside = sums[np.arange(len(block)), own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[np.arange(len(block)), own] = np.inf
        outside = means.min(axis=1)
        largest = np.maximum(inside, outside)
        is_defined = (sizes[own] > 1) & (largest > 0)
        total += float(((outside - inside)[is_defined] / largest[is_defined]).sum())
    return total / len(points)


def adjusted_rand_of_counts(cells: NDArray[Any], sizes: NDArray[Any], other_sizes: NDArray[Any]) -> float:
    """Return the adjusted Rand index of two groupings of the same rows.

    Parameters
    ----------
    cells : ndarray of any shape
        Number of rows for each pair of groups.
    sizes, other_sizes : ndarray of shape (n_groups,)
        Number of rows in each group.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_rand_of_counts(np.array([[2, 0], [0, 2]]), np.array([2, 2]), np.array([2, 2]))
    1.0
    """

    def pairs(counts: Any) -> float:
        return float((counts.astype(np.float64) * (counts - 1) / 2).sum())

    together, in_one, in_other, everything = pairs(cells), pairs(sizes), pairs(other_sizes), pairs(sizes.sum())
    expected = in_one * in_other / everything if everything else 0.0
    highest = (in_one + in_other) / 2
    return 1.0 if highest == expected else (together - expected) / (highest - expected)


def normalized_mutual_information(counts: NDArray[np.int64]) -> float:
    """Return the mutual information of classes and clusters, divided by the mean of their entropies.

    Examples
    --------
    >>> import numpy as np
    >>> normalized_mutual_information(np.array([[2, 0], [0, 2]]))
    1.0
    """

    def entropy(sizes: NDArray[np.int64]) -> float:
        shares = sizes[sizes > 0] / sizes.sum()
        return float(-(shares * np.log(shares)).sum())

    of_classes, of_clusters = entropy(counts.sum(axis=1)), entropy(counts.sum(axis=0))
    if of_classes == of_clusters == 0:
        return 1.0
    shared = of_classes + of_clusters - entropy(counts.ravel())
    return float(np.clip(2 * shared / (of_classes + of_clusters), 0.0, 1.0))


@dataclass(frozen=True)
class Pairs:
    """How often each class occurs in each cluster."""

    counts: NDArray[np.int64]
    classes: list[int | str]
    clusters: list[int | str]
    n_without_label: int
    n_without_cluster: int


def count_pairs(true_labels: ArrayLike, labels: ArrayLike) -> Pairs:
    """Count all pairs of class and cluster."""
    truth, found = as_labels(true_labels, "true_labels"), as_labels(labels, "labels")
    if len(truth) != len(found):
        raise InputError(f"{len(truth):,} true labels for {len(found):,} clustered rows; expected as many")
    no_label, no_cluster = is_missing(truth), is_missing(found)
    judged = ~(no_label | no_cluster)
    if not judged.any():
        raise InputError(
            f"no row has both a true label and a cluster: of {len(truth):,} rows {int(no_label.sum()):,} have no true "
            f"label and {int(no_cluster.sum()):,} no cluster (−1 or empty)"
        )
    classes, class_codes = np.unique(truth[judged], return_inverse=True)
    clusters, cluster_codes = np.unique(found[judged], return_inverse=True)
    if len(classes) * len(clusters) > MAX_CELLS:
        raise InputError(
            f"{len(classes):,} distinct true labels and {len(clusters):,} distinct clusters are too many to match; "
            "are these labels, or row numbers or paths?"
        )
    codes = class_codes * len(clusters) + cluster_codes
    counts = np.bincount(codes, minlength=len(classes) * len(clusters)).reshape(len(classes), len(clusters))
    return Pairs(
        counts,
        classes.tolist(),
        clusters.tolist(),
        int(no_label.sum()),
        int((no_cluster & ~no_label).sum()),
    )


def matched_cells(counts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the one-to-one matching with the largest sum, by row."""
    if min(counts.shape) > MOST_MATCHED_HERE:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(counts, maximize=True)
        return rows, columns
    if counts.shape[0] > counts.shape[1]:
        columns, rows = matched_cells(counts.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    return np.arange(len(counts)), cheapest_columns(-counts)


def cheapest_columns(costs: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return a column for each row, no column twice, so that the sum of their costs is the lowest.

    This is the Hungarian method with shortest augmenting paths, for a table with at least as many columns as rows.
    """
    n_rows, n_columns = costs.shape
    row_prices, column_prices = np.zeros(n_rows, np.int64), np.zeros(n_columns, np.int64)
    # The row of each column, -1 for none.
    owners = np.full(n_columns, -1)
    for first in range(n_rows):
        # Distances over reduced costs from the first row to each column, and the column before on the shortest path.
        distances = np.full(n_columns, np.iinfo(np.int64).max)
        previous = np.full(n_columns, -1)
        is_open = np.ones(n_columns, bool)
        row, column, so_far = first, -1, 0
        while row >= 0:
            through = costs[row] - row_prices[row] - column_prices + so_far
            shorter = is_open & (through < distances)
            distances[shorter], previous[shorter] = through[shorter], column
            column = int(np.argmin(np.where(is_open, distances, np.iinfo(np.int64).max)))
            so_far = int(distances[column])
            is_open[column] = False
            row = int(owners[column])
        visited = np.flatnonzero(~is_open)
        inner = visited[visited != column]
        row_prices[first] += so_far
        row_prices[owners[inner]] += so_far - distances[inner]
        column_prices[visited] -= so_far - distances[visited]
        while column >= 0:
            before = int(previous[column])
            owners[column] = first if before < 0 else owners[before]
            column = before
    taken = np.flatnonzero(owners >= 0)
    return np.asarray(taken[np.argsort(owners[taken])])


def matched_first(matched: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return the order that puts matched entries first, in the order of the matching, and then the others."""
    return np.concatenate([matched, np.setdiff1d(np.arange(n), matched)])


def as_labels(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as a vector of integers or strings, with −1 or the empty string for missing ones."""
    labels = np.asarray(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"{name} have shape {labels.shape}; expected (n_samples,)")
    if labels.dtype.kind == "O":
        labels = from_objects(labels)
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind == "f":
        # pandas stores integers with gaps as floats with NaN.
        whole = np.where(np.isnan(labels), -1, labels)
        fractions = whole[~(np.isfinite(whole) & (whole == np.floor(whole)))]
        if fractions.size:
            raise InputError(f"{name} hold numbers such as {fractions[0]:g}; expected whole numbers or strings")
        return np.asarray(whole, np.int64)
    if labels.dtype.kind == "b":
        return labels.astype(np.int64)
    if labels.dtype.kind not in "iuU":
        raise InputError(f"{name} are of type {labels.dtype}; expected integers or strings")
    return labels


def from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Turn Python objects into integers if all are integers, otherwise into strings; None and NaN are missing."""
    # pandas has three missing values, one of which cannot be compared: compare their texts.
    gaps = [not isinstance(value, str) and str(value) in ("None", "nan", "<NA>") for value in labels]
    pairs = list(zip(gaps, labels, strict=True))
    if all(gap or isinstance(value, int | np.integer) for gap, value in pairs):
        return np.array([-1 if gap else int(value) for gap, value in pairs], np.int64)
    return np.array(["" if gap else str(value) for gap, value in pairs], str)


def label_accuracy(true_labels: ArrayLike, predicted: ArrayLike) -> float:
    """Return the fraction of rows whose predicted label is the true one, without any matching.

    Rows whose true label is missing (−1, empty or NaN) are left out.

    Parameters
    ----------
    true_labels, predicted : array-like of shape (n_samples,)
        Integers or strings; 3 and "3" are the same label.

    Returns
    -------
    float

    Examples
    --------
    >>> label_accuracy(["cat", "dog", ""], ["cat", "cat", "dog"])
    0.5
    """
    truth, found = as_labels(true_labels, "true labels"), as_labels(predicted, "predicted labels")
    known = ~is_missing(truth)
    return float((truth[known].astype(str) == found[known].astype(str)).mean())


def name_extra_clusters(classes: NDArray[Any], count: int) -> NDArray[Any]:
    """Return labels for clusters beyond the classes: the next numbers, or "extra 1", "extra 2", …

    Examples
    --------
    >>> import numpy as np
    >>> name_extra_clusters(np.array([0, 1, 4]), 2)
    array([5, 6])
    >>> name_extra_clusters(np.array(["cat", "dog"]), 1)
    array(['extra 1'], dtype='<U7')
    """
    if classes.dtype.kind == "U":
        return np.array([f"extra {number}" for number in range(1, count + 1)], str)
    return np.asarray(np.arange(count) + classes.max() + 1)


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which integers or strings mean "no label": −1, "-1" or the empty string."""
    return np.asarray(np.isin(labels, ("", "-1")) if labels.dtype.kind == "U" else labels == -1)
