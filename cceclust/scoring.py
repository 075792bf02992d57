"""Scores of clusters, with true labels and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError
from cceclust.labels import as_labels, is_missing, label_accuracy, name_extra_clusters

__all__ = [
    "ClassScore",
    "LabelFreeScores",
    "Scores",
    "as_labels",
    "clustering_accuracy",
    "is_missing",
    "label_accuracy",
    "match_clusters",
    "name_extra_clusters",
    "relative_entropy",
    "score_clusters",
    "score_without_labels",
    "worst_confusions",
]

# The table of all pairs is dense; with more cells than this, the "labels" are probably not labels.
MAX_CELLS = 100_000_000


@dataclass(frozen=True)
class ClassScore:
    """How well one true class was found; one that no cluster stands for has recall 0 and no precision."""

    label: int | str
    size: int
    cluster: int | str | None
    recall: float
    precision: float | None


@dataclass(frozen=True)
class Scores:
    """Scores of a clustering against true labels.

    `accuracy` is the share of rows whose cluster stands for their class under the best one-to-one matching, `purity`
    that of rows in the most frequent class of their cluster; `nmi` and `ari` are scikit-learn's normalised mutual
    information and adjusted Rand index. Rows whose label or cluster is missing are only counted. `confusion` has a row
    for each of `classes` and a column for each of `clusters`, with matched pairs on its diagonal.
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
    """Scores that need no true labels, as far as they are known; `size_entropy` is 1 if clusters are of one size."""

    n_samples: int
    n_clusters: int
    n_empty: int
    smallest: int
    largest: int
    size_entropy: float | None
    mean_confidence: float | None
    modularity: float | None
    silhouette: float | None


def clustering_accuracy(true_labels: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of rows whose cluster stands for their class, under the best one-to-one matching.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings; their numbers may differ. Rows with −1, an empty string or NaN are
        left out.

    Examples
    --------
    >>> from cceclust import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    return score_clusters(true_labels, labels).accuracy


def match_clusters(true_labels: ArrayLike, labels: ArrayLike) -> dict[int | str, int | str]:
    """Return the class that each cluster stands for, under the one-to-one matching that most rows agree with.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings. Rows with −1, "" or NaN and spare clusters are left out.

    Examples
    --------
    >>> from cceclust import match_clusters
    >>> match_clusters(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    {1: 'cat', 0: 'dog'}
    """
    classes = score_clusters(true_labels, labels).classes
    return {entry.cluster: entry.label for entry in classes if entry.cluster is not None}


def score_clusters(true_labels: ArrayLike, labels: ArrayLike) -> Scores:
    """Score clusters against true labels.

    Parameters
    ----------
    true_labels, labels : array-like of shape (n_samples,)
        Classes and clusters, integers or strings. Rows with −1, an empty string or NaN are left out and counted.

    Examples
    --------
    >>> from cceclust import score_clusters
    >>> scores = score_clusters(["cat", "cat", "dog", "dog", ""], [1, 1, 0, 1, 0])
    >>> scores.accuracy, scores.n_without_label, scores.confusion.tolist()
    (0.75, 1, [[2, 0], [1, 1]])
    """
    # SciPy's optimisation takes long to load.
    from scipy.optimize import linear_sum_assignment

    truth, found = as_labels(true_labels, "true_labels"), as_labels(labels, "labels")
    if len(truth) != len(found):
        raise InputError(f"{len(truth):,} true labels for {len(found):,} clustered rows; expected as many")
    no_label, no_cluster = is_missing(truth), is_missing(found)
    judged = ~(no_label | no_cluster)
    if not judged.any():
        raise InputError(f"no row of {len(truth):,} has both a true label and a cluster; −1 and empty ones are missing")
    classes, class_codes = np.unique(truth[judged], return_inverse=True)
    clusters, cluster_codes = np.unique(found[judged], return_inverse=True)
    shape = len(classes), len(clusters)
    if shape[0] * shape[1] > MAX_CELLS:
        raise InputError(f"{shape[0]:,} labels and {shape[1]:,} clusters are too many to match; are these row numbers?")
    counts = np.bincount(class_codes * shape[1] + cluster_codes, minlength=shape[0] * shape[1]).reshape(shape)
    matched = linear_sum_assignment(counts, maximize=True)
    rows, columns = (np.append(m, np.setdiff1d(np.arange(n), m)) for m, n in zip(matched, shape, strict=True))
    confusion = counts[np.ix_(rows, columns)]
    nmi, ari = agreement_of(counts)
    class_names, cluster_names = classes[rows].tolist(), clusters[columns].tolist()
    return Scores(
        n_samples=int(counts.sum()),
        n_without_label=int(no_label.sum()),
        n_without_cluster=int((no_cluster & ~no_label).sum()),
        n_classes=shape[0],
        n_clusters=shape[1],
        accuracy=float(np.trace(confusion) / counts.sum()),
        nmi=nmi,
        ari=ari,
        purity=float(counts.max(axis=0).sum() / counts.sum()),
        classes=tuple(class_score(confusion, i, name, cluster_names) for i, name in enumerate(class_names)),
        clusters=tuple(cluster_names),
        confusion=confusion,
    )


def class_score(confusion: NDArray[np.int64], i: int, name: int | str, clusters: list[int | str]) -> ClassScore:
    """Return the scores of a class, whose cluster, if it has one, has the same place."""
    size = int(confusion[i].sum())
    if i >= len(clusters):
        return ClassScore(name, size, None, 0.0, None)
    hits = float(confusion[i, i])
    return ClassScore(name, size, clusters[i], hits / size, hits / float(confusion[:, i].sum()))


def agreement_of(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Return the normalised mutual information of classes and clusters, and their adjusted Rand index."""
    of_classes, of_clusters = counts.sum(axis=1), counts.sum(axis=0)
    entropies = entropy_of(of_classes) + entropy_of(of_clusters)
    nmi = float(np.clip(2 - 2 * entropy_of(counts) / entropies, 0.0, 1.0)) if entropies else 1.0
    together, in_classes, in_clusters, everything = (
        float((sizes.astype(np.float64) * (sizes - 1) / 2).sum())
        for sizes in (counts, of_classes, of_clusters, counts.sum())
    )
    expected, highest = in_classes * in_clusters / (everything or 1.0), (in_classes + in_clusters) / 2
    return nmi, 1.0 if highest == expected else (together - expected) / (highest - expected)


def entropy_of(sizes: NDArray[np.int64]) -> float:
    """Return Shannon's entropy of the shares."""
    shares = sizes[sizes > 0] / sizes.sum()
    return float(-(shares * np.log(shares)).sum())


def relative_entropy(sizes: NDArray[np.int64], n_clusters: int) -> float | None:
    """Return the entropy of the sizes as a share of its maximum."""
    return entropy_of(sizes) / float(np.log(n_clusters)) if n_clusters > 1 and sizes.any() else None


def worst_confusions(scores: Scores, n: int = 10) -> list[tuple[int | str, int | str, int]]:
    """Return the largest counts off the diagonal as ``(class, cluster, rows)``, largest first."""
    mistakes = scores.confusion.copy()
    np.fill_diagonal(mistakes, 0)
    cells = np.argwhere(mistakes)
    sizes = mistakes[tuple(cells.T)]
    largest = np.argsort(-sizes, kind="stable")[:n]
    return [(scores.classes[i].label, scores.clusters[j], int(mistakes[i, j])) for i, j in cells[largest]]


def score_without_labels(
    labels: ArrayLike,
    *,
    probabilities: NDArray[Any] | None = None,
    modularity: float | None = None,
    sample: ArrayLike | None = None,
    sample_features: ArrayLike | None = None,
) -> LabelFreeScores:
    """Score clusters without true labels; the silhouette is that of sampled rows, if their features are given."""
    values = as_labels(labels, "labels")
    sizes = np.unique(values[~is_missing(values)], return_counts=True)[1]
    n_clusters = max(len(sizes), 0 if probabilities is None else probabilities.shape[1])
    return LabelFreeScores(
        n_samples=int(sizes.sum()),
        n_clusters=n_clusters,
        n_empty=n_clusters - len(sizes),
        smallest=int(sizes.min()) if len(sizes) == n_clusters > 0 else 0,
        largest=int(sizes.max(initial=0)),
        size_entropy=relative_entropy(sizes, n_clusters),
        mean_confidence=None if probabilities is None else float(probabilities.max(axis=1).mean(dtype=np.float64)),
        modularity=modularity,
        silhouette=None if sample is None else silhouette(values[np.asarray(sample)], np.asarray(sample_features)),
    )


def silhouette(labels: NDArray[Any], features: NDArray[Any]) -> float | None:
    """Return the mean silhouette of rows; None if it is not defined for them."""
    from sklearn.metrics import silhouette_score

    # In float64, squares of numbers of any size and far from the origin keep their digits.
    points = features.astype(np.float64)
    usable = ~is_missing(labels) & np.isfinite(points).all(axis=1)
    if not 2 <= len(np.unique(labels[usable])) < usable.sum():
        return None
    return float(silhouette_score(points[usable], labels[usable]))
