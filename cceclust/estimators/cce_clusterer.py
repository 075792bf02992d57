"""Clustering by collision cross-entropy: the main estimator."""

from __future__ import annotations

from typing import Any, Self

from cceclust.estimators.cce_method import CCEMethod
from cceclust.estimators.softmax_clusterer import SoftmaxClusterer
from cceclust.presets import PAPER_FEATURES

__all__ = ["CCEClusterer"]


class CCEClusterer(SoftmaxClusterer, CCEMethod):
    """Cluster features with a linear softmax head trained by collision cross-entropy.

    For every batch, EM finds the pseudo-labels y that minimise the loss L_CCE+ (eq. 11 of arXiv:2303.07321)

        mean H₂(y, σ) + λ KL(u ‖ ȳ),    H₂(y, σ) = −ln Σ_k y_k σ_k,

    for the head's softmax σ; then the head takes a step of gradient descent on H₂(y, σ). Several heads are trained in
    parallel, with different starts and different fairness. Further candidates are partitions of the graph of nearest
    neighbours and the clusters of K-means. The graph judges them all, without labels: a candidate is good if neighbours
    share a cluster much more often than random pairs of rows would (:func:`cceclust.neighbor_modularity`). Parameters
    that you set are not varied.

    Parameters
    ----------
    n_clusters : int, "auto", range or sequence of int, default=8
        Number of clusters; or numbers to choose from, "auto" for all from 2 to 100 with at least five rows per cluster.
        The graph of neighbours decides, and may decide for a single cluster (docs/choosing-k.md). A number is the
        default because a search needs enough rows to be reliable.
    fairness : float or "auto", default="auto"
        λ: how strongly the sizes of the clusters are pulled towards `prior`. This is the λ of the loss as written
        above, where H₂ is averaged over the points: EM's M-step works with λ times the number of points. "auto" trains
        heads with 1, 10 and 100.
    prior : array-like of shape (n_clusters,), "auto" or None, default="auto"
        u: the expected share of each cluster; the shares must sum to 1. None expects equal shares. "auto" expects equal
        shares in some heads, and in others the shares of the graph partition they start from. With any other value all
        heads are alike and compete alone; with given shares the loss chooses among them.
    weight_decay : float or "auto", default="auto"
        Weight decay of the head. "auto" is a multiple of the standard deviation of the standardised features along
        their leading principal components, smaller for more than ten clusters and where clusters are crowded.
    learning_rate : float, default=0.5
        Initial step size.
    learning_rate_schedule : {"cosine", "constant"}, default="cosine"
        Whether the step size falls to a fifth of its start along half a cosine, or stays constant.
    batch_size : int, default=250
        Rows for which pseudo-labels are found at once.
    max_iter : int, default=5
        EM iterations per batch.
    n_neighbors : int or "auto", default="auto"
        Number of nearest neighbours of each row. One of them, drawn at random each time, shares its pseudo-label: the
        label is found for the mean of their two predictions and used for both. 0 uses none. "auto" uses 10 for dense
        data of a size for which the graph is both useful and affordable.
    neighbor_weight : float, default=1.0
        Weight of the neighbour, relative to a weight of 1 for the row itself.
    init : {"auto", "random", "k-means", "graph"}, default="auto"
        Where heads start: with random weights, each around the centres of its own run of K-means, or around the means
        of a partition of the graph. "auto" uses some of each, but no random ones where clusters are crowded: where
        fewer than four directions for each cluster beyond two hold nearly all the features' variance.
    graph_candidates : bool, default=True
        Whether heads differ, and partitions of the graph and K-means are candidates as well. False trains
        `n_init` heads that differ only in their random numbers, and the graph chooses among them.
    curved : bool or "auto", default="auto"
        Whether borders between clusters may curve along the 16 leading directions of the features: the head is then
        linear in the features and in the products of every two of these. "auto" fits both kinds to the best clusters of
        the graph on half of the rows, and takes the curved one if it predicts the other half clearly better. Only where
        partitions of the graph are candidates.
    n_components : int or "auto", default="auto"
        Train on this many leading principal components of the features; 0 trains on the features themselves. "auto"
        takes 256 (or twice the number of clusters) for dense standardised data with at least four times as
        many features: the clusters are as good, and training is several times faster. `coef_` is always for the
        features, and `partial_fit` always trains on them.
    n_init : int, default=6
        Number of heads that are trained; with 30 clusters and more, only one.
    max_epochs : int or "auto", default="auto"
        Maximum number of passes over the rows. "auto" makes about 800 steps, and at least 4 epochs.
    tol : float, default=1e-4
        After half of the epochs, training stops when no head's mean loss has fallen by this fraction of itself in three
        epochs. 0 trains for all epochs.
    standardize : bool, default=True
        Centre the features and divide them by their overall standard deviation. The result is folded into `coef_`.
    scale : {"auto", "overall", "columns", "directions"}, default="auto"
        Whether each column is first divided by its own standard deviation, or each principal direction by the root of
        its own. "auto" divides columns where the largest deviation is more than 20 times the median one, as in tables
        whose columns are in different units. It then divides directions if the graph of neighbours falls into parts as
        clear as without: in dense rows of few directions, at least 300 of them, without given neighbours or a prior.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same clusters in every run.
    verbose : int, default=0
        If positive, show a progress bar on stderr; where that is no terminal, a line every ten seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row; a Dask array after a fit of one, or of a Dask data frame.
    n_clusters_ : int
        Number of clusters.
    k_scores_ : dict or None
        The score of each number of clusters that was tried; None if a number was given.
    k_search_ : KSearch or None
        All results of the search for the number of clusters; None if a number was given.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        The probability of each cluster for each row, in float32; lazy like `labels_`.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The mean of the rows of each cluster, weighted like the rows; that of all rows for an empty cluster. Rows far
        from all others, which take no part in the fit, do not count.
    coef_ : ndarray of shape (n_clusters, n_features)
        Weights of the head, for raw features.
    intercept_ : ndarray of shape (n_clusters,)
        Biases of the head, for raw features.
    curves_ : Curves or None
        What is added to the logits ``X @ coef_.T + intercept_`` where borders curve; None where they are linear.
    modularity_ : float or None
        How much more often neighbours share a cluster than random pairs of rows would: the score of the chosen
        candidate. None if the loss decided, as for very few rows.
    chosen_ : str or None
        Name of the chosen candidate.
    candidates_ : dict or None
        The modularity of every candidate by its name.
    outlier_score_ : ndarray of shape (n_samples,) or None
        How much farther each row is from its neighbours than they are from theirs: about 1 for most rows. None for
        sparse rows, where a sample of rows was trained on, and where the fit needed no neighbours.
    columns_scaled_ : bool
        Whether each column was divided by its own standard deviation.
    directions_evened_ : bool
        Whether each principal direction was divided by the root of its standard deviation; not so for the K-means
        among the candidates, unless `scale` is "directions".
    loss_ : float
        The loss of the chosen head on all the data (on a sample, if there are very many rows), at the minimum over y.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean loss of each epoch.
    losses_ : ndarray of shape (n_init,)
        The final loss of every trained head, each with its own fairness and prior.
    loss_curves_ : ndarray of shape (n_init, n_iter_)
        Mean loss of each restart in each epoch.
    restart_agreement_ : float or None
        Mean adjusted Rand index between the labels of every two candidates: near 1, they found the same clusters.
    n_agreeing_ : int
        Number of candidates that found the chosen one's clusters (an adjusted Rand index of 0.9), itself included.
    best_restart_ : int
        Index of the trained head that the chosen candidate comes from; the one with the lowest loss if it comes from
        none.
    weight_decay_ : float
        The weight decay that was used.
    n_trained_rows_ : int
        Number of rows that were trained on: all, or a random sample of very many that are not in memory.
    n_components_ : int
        Number of components that were trained on; the number of features if none.
    n_iter_ : int
        Number of epochs.
    converged_ : bool
        Whether the loss had stopped falling at the end.
    problems_ : list of str
        What makes the clusters doubtful, if anything. The same sentences are given as warnings.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    References
    ----------
    Zhang and Boykov, "Collision Cross-entropy for Soft Class Labels and Deep Clustering", arXiv:2303.07321.

    Examples
    --------
    >>> from cceclust import CCEClusterer, clustering_accuracy
    >>> from cceclust.files import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     labels = CCEClusterer(10, random_state=0).fit_predict(digits.array())
    >>> clustering_accuracy(digits.labels, labels) > 0.8
    True
    """

    @classmethod
    def paper(cls, n_clusters: int = 8, **changes: Any) -> Self:
        """Return the paper's own method for fixed features (Table 2, "Experimental settings" of the supplement).

        Raw features, one random start, ten epochs of gradient descent at a constant rate of 0.1, λ = 100, and no
        components or neighbours. On ResNet-50 features of CIFAR-10 this is well below the defaults of this class
        (docs/defaults.md); it is meant for comparisons.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        **changes
            Other parameters of the estimator, such as `n_init` or `random_state`. The weight decay is 0.02, as in the
            paper for CIFAR-10 and STL-10; the paper uses 0.001 for MNIST and 0.009 for CIFAR-100.

        Examples
        --------
        >>> from cceclust import CCEClusterer
        >>> CCEClusterer.paper(10).learning_rate
        0.1
        """
        return cls(n_clusters, **{**PAPER_FEATURES, **changes})
