"""Choosing among clusterings without labels: the judge's best, or one that the judge cannot tell from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.training.modularity import Links

__all__ = ["are_whole", "choose", "even_rival", "standard_error"]


def standard_error(modularity: float, n_samples: int) -> float:
    """Return how far the modularity of so many rows is from certain: that of a mean of rows which are 0 or 1.

    Examples
    --------
    >>> round(standard_error(0.8, 10_000), 4)
    0.004
    """
    inside = min(max(modularity, 0.0), 1.0)
    return float(np.sqrt(inside * (1 - inside) / n_samples))


def choose(
    labels: NDArray[np.integer[Any]],
    modularities: NDArray[np.float64],
    cuts: NDArray[np.float64],
    n_clusters: int,
    *,
    floor: int | None = None,
    is_whole: NDArray[np.bool_] | None = None,
    on_graph: NDArray[np.float64] | None = None,
    on_nearest: NDArray[np.float64] | None = None,
) -> int:
    """Return which of several labelings to take.

    Labelings that leave clusters out do not count if another one has all: they would often win, as modularity prefers
    a number of clusters of its own. The best of the others is taken (:func:`best_of`), or the plain one, where nothing
    shows that it is worse (:func:`is_floor_kept`).

    A head can only approximate clusters that are not linearly separable, and of two heads the better clusters may be
    those that are harder to approximate. So what counts is the mean of two modularities: that of the head's labels,
    and that of the clusters on the graph which it was fitted to (`on_graph`).

    Parameters
    ----------
    labels : ndarray of shape (n_labelings, n_samples)
        The candidates.
    modularities : ndarray of shape (n_labelings,)
        Their modularities, at the resolution of the judge.
    cuts : ndarray of shape (n_labelings,)
        The part of pairs of neighbours that each separates.
    n_clusters : int
        Number of clusters.
    floor : int, optional
        The number of the plain candidate.
    is_whole : ndarray of shape (n_labelings,), optional
        Whether each labeling has as many clusters as are wanted; by default all have.
    on_graph : ndarray of shape (n_labelings,), optional
        The modularities of the clusters that each labeling approximates; by default its own.
    on_nearest : ndarray of shape (n_labelings,), optional
        Their modularities with only the nearest neighbours of each row; by default the same as with all.

    Examples
    --------
    The second is best by a hair, but the first divides the rows evenly:

    >>> import numpy as np
    >>> labels = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]])
    >>> choose(labels, np.array([0.40, 0.41, -0.30]), np.array([0.2, 0.1, 0.3]), 2)
    0
    """
    is_rival = np.arange(len(labels)) != floor
    if is_whole is not None and (is_rival & is_whole).any():
        is_rival &= is_whole
    error = standard_error(float(modularities.max()), labels.shape[1])
    scores = modularities if on_graph is None else (modularities + on_graph) / 2
    scores = np.where(is_rival, scores, -np.inf)
    rival = best_of(labels, scores, scores if on_nearest is None else on_nearest, cuts, n_clusters, error)
    if floor is None:
        return rival
    below_best = float(modularities[is_rival].max() - modularities[floor])
    kept = is_floor_kept(
        labels[floor],
        labels[rival],
        n_clusters,
        is_close=below_best <= choices.FLOOR_ERRORS * error,
        cut=float(cuts[floor]),
        rival_cut=float(cuts[rival]),
    )
    return floor if kept else rival


def best_of(
    labels: NDArray[np.integer[Any]],
    scores: NDArray[np.float64],
    on_nearest: NDArray[np.float64],
    cuts: NDArray[np.float64],
    n_clusters: int,
    error: float,
) -> int:
    """Return the best labeling, or one that its score can hardly tell from it.

    Modularity would rather split a large cluster and join two small ones than leave sizes unequal. So if the best one
    is clearly uneven all the same, and no even one is as good, sizes differ in truth, and the one that separates the
    fewest neighbours is taken. If not, sizes are taken to be about equal, and what counts is evenness and the score on
    the nearest neighbours alone. `error` is the standard error of the scores.
    """
    below = errors_below(scores.max(), scores, error)
    unevenness = unevenness_of(labels, n_clusters)
    is_near = below <= choices.TIE_ERRORS
    is_even = is_near & (unevenness <= choices.UNEVEN)
    if is_even.any() or unevenness[int(scores.argmax())] <= choices.CLEARLY_UNEVEN:
        lacking = errors_below(on_nearest[is_near].max(), on_nearest, error) + unevenness / choices.UNEVEN
        return int(np.argmin(np.where(is_near, lacking, np.inf)))
    near = np.flatnonzero(below <= choices.UNEVEN_TIE_ERRORS)
    return int(near[np.argmin(cuts[near])])


def is_floor_kept(
    labels: NDArray[np.integer[Any]],
    rival: NDArray[np.integer[Any]],
    n_clusters: int,
    *,
    is_close: bool,
    cut: float,
    rival_cut: float,
) -> bool:
    """Tell whether K-means' clusters are kept, as nothing shows that those of a rival are better.

    Modularity prefers clusters of even size. So a higher one shows little where more neighbours are separated, surely
    and not by chance. Of two clusters, it shows little in any case: a cloud is divided about as well in one direction
    as in another.

    Parameters
    ----------
    labels, rival : ndarray of shape (n_samples,)
        K-means' clusters, and the rival's.
    n_clusters : int
        Number of clusters.
    is_close : bool
        Whether K-means' modularity is as good as the best, within its error.
    cut, rival_cut : float
        The part of pairs of neighbours that they and those of the rival separate.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.repeat([0, 1, 2], [500, 300, 200])
    >>> is_floor_kept(labels, labels[::-1], 3, is_close=False, cut=0.10, rival_cut=0.15)
    True
    >>> is_floor_kept(labels, labels[::-1], 3, is_close=False, cut=0.10, rival_cut=0.11)
    False
    """
    n_samples = len(labels)
    if len(np.unique(labels)) < len(np.unique(rival)):
        return False
    # Fewer by more than chance, too: where clusters are apart, neither separates any.
    doubt = choices.FLOOR_ERRORS * standard_error(cut, n_samples)
    if rival_cut < min(choices.CLEARLY_FEWER * cut, cut - doubt):
        return False
    if is_close:
        return True
    if evenness(labels, n_clusters) < choices.HARDLY_DIVIDED:
        return False
    return n_clusters == 2 or cut < rival_cut - choices.FEWER_ERRORS * standard_error(rival_cut, n_samples)


def are_whole(labels: NDArray[np.integer[Any]], links: Links) -> NDArray[np.bool_]:
    """Tell for each labeling whether it has as many clusters as are wanted, or nearly all of very many.

    A cluster counts if it has a fair share of the rows, whatever their weights, or rows whose neighbours are mostly
    its own.
    """
    n_clusters = links.within.shape[1]
    sizes = np.stack([np.bincount(found, minlength=n_clusters) for found in labels])
    is_apart = links.leaving < choices.MOSTLY_OUTSIDE * (links.within + links.leaving)
    is_fair = sizes >= choices.LEAST_SHARE * labels.shape[1] / n_clusters
    n_missing = n_clusters - (is_fair | is_apart).sum(axis=1)
    return np.asarray(n_missing <= choices.MOST_MISSING * n_clusters)


def even_rival(
    labels: NDArray[np.integer[Any]],
    modularities: NDArray[np.float64],
    n_clusters: int,
    chosen: int,
) -> int | None:
    """Return the best labeling with clusters of about equal size, if the chosen one's differ and it is hardly worse.

    The graph cannot tell then whether classes are of different size, or of equal size and touching.

    Parameters
    ----------
    labels : ndarray of shape (n_labelings, n_samples)
        The candidates.
    modularities : ndarray of shape (n_labelings,)
        What the judge says of them.
    n_clusters : int
        Number of clusters.
    chosen : int
        The number of the chosen one.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]])
    >>> even_rival(labels, np.array([0.44, 0.45]), 2, chosen=1), even_rival(labels, np.array([0.44, 0.45]), 2, chosen=0)
    (0, None)
    """
    unevenness = unevenness_of(labels, n_clusters)
    even = np.flatnonzero(unevenness <= choices.UNEVEN)
    if unevenness[chosen] <= choices.CLEARLY_UNEVEN or len(even) == 0:
        return None
    rival = int(even[np.argmax(modularities[even])])
    score = float(modularities[chosen])
    allowed = min(choices.EVEN_RIVAL_ERRORS * standard_error(score, labels.shape[1]), choices.EVEN_RIVAL_PART * score)
    return rival if modularities[rival] >= score - allowed else None


def errors_below(best: float, scores: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    """Return by how many standard errors scores are below the best; without an error, any difference is certain."""
    return (best - scores) / error if error > 0 else np.where(scores >= best, 0.0, np.inf)


def unevenness_of(labels: NDArray[np.integer[Any]], n_clusters: int) -> NDArray[np.float64]:
    """Return the part of the entropy of equal sizes that the sizes of each labeling lack."""
    return np.array([1 - evenness(found, n_clusters) for found in labels])


def evenness(labels: NDArray[np.integer[Any]], n_clusters: int) -> float:
    """Return the entropy of the sizes, from 0 for a single cluster to 1 for clusters of the same size."""
    parts = np.bincount(labels, minlength=n_clusters) / len(labels)
    parts = parts[parts > 0]
    return float(-(parts * np.log(parts)).sum() / np.log(n_clusters))
