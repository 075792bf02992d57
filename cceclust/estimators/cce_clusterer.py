"""Clustering by collision cross-entropy: the main estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from cceclust.errors import InputError
from cceclust.estimators.softmax_estimator import SoftmaxEstimator, settings_of
from cceclust.fit.judge import modularity_of_rows
from cceclust.fit.levels import Levels
from cceclust.fit.pipeline import fit_source
from cceclust.fit.progress import OnProgress
from cceclust.io import Model
from cceclust.validation import as_relative_weights, check_count, thread_count

__all__ = ["CCEClusterer", "numbers_of_clusters"]


class CCEClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SoftmaxEstimator):
    """Cluster features with a softmax head trained by collision cross-entropy.

    Heads start from partitions of the graph of nearest neighbours, from K-means and from heads trained in mini-batches.
    Each is then trained in rounds: EM finds the pseudo-labels y that minimise the loss L_CCE+ (eq. 11 of
    arXiv:2303.07321)

        mean H₂(y, σ) + λ KL(u ‖ ȳ),    H₂(y, σ) = −ln Σ_k y_k σ_k,

    for the mean σ of the neighbours' predictions, and the head takes a step towards them. The graph chooses among the
    heads, without labels: clusters are good if near rows share one much more often than random rows would
    (:func:`cceclust.neighbor_modularity`). Plain K-means is kept where no head is better.

    Parameters
    ----------
    n_clusters : int, "auto", range or sequence of int, default=8
        Number of clusters; or "auto", or numbers to choose from: then the clusters that random halves of the rows
        reproduce best are taken (docs/choosing-k.md).
    fairness : float or "auto", default="auto"
        λ: how strongly the sizes of the clusters are pulled towards `prior`. "auto" is 1, or 100 if `prior` is given.
    prior : array-like of shape (n_clusters,), "equal" or None, default=None
        u: the expected share of each cluster, "equal" for equal shares. None leaves the sizes to the data.
    scale : {"auto", "overall", "columns"}, default="auto"
        Whether each column is first divided by its own standard deviation. "auto" does so where the largest deviation
        is more than 20 times the median one, as in tables whose columns are in different units.
    curved : bool, default=True
        Whether borders between clusters may curve along the 16 leading directions. False gives a linear head.
    n_components : int, default=100
        Heads are trained on this many leading principal components. `coef_` is for the features all the same.
    max_rows : int, default=100_000
        Of more rows, so many are drawn at random to learn from. All rows get a cluster.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same clusters in every run.
    verbose : int, default=0
        If positive, show a progress bar on stderr.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    n_clusters_ : int
        Number of clusters.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        The probability of each cluster for each row, in float32.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The mean of the rows of each cluster, weighted like the rows; that of all rows for an empty cluster.
    coef_ : ndarray of shape (n_clusters, n_features)
        Weights of the head, for raw features.
    intercept_ : ndarray of shape (n_clusters,)
        Biases of the head, for raw features.
    curves_ : Curves or None
        What is added to the logits ``X @ coef_.T + intercept_`` where borders curve; None where they are linear.
    modularity_ : float or None
        How much more often near rows share a cluster than random rows would; None if there was nothing to choose.
    candidates_ : dict or None
        The modularity of every candidate by its name.
    reason_ : str or None
        Why the clusters were chosen among the candidates, in one sentence.
    levels_ : Levels or None
        How reproducible each number of clusters was; None if `n_clusters` is a number.
    outlier_score_ : ndarray of shape (n_samples,) or None
        How much farther each row is from its neighbours than they are from theirs: about 1 for most rows. None where
        only a sample of the rows was trained on.
    columns_scaled_ : bool
        Whether each column was divided by its own standard deviation.
    n_trained_rows_ : int
        Number of rows that were trained on.
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
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     labels = CCEClusterer(10, random_state=0).fit_predict(digits.array())
    >>> clustering_accuracy(digits.labels, labels) > 0.92
    True
    """

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        fairness: float | Literal["auto"] = "auto",
        prior: ArrayLike | Literal["equal"] | None = None,
        scale: Literal["auto", "overall", "columns"] = "auto",
        curved: bool = True,
        n_components: int = 100,
        max_rows: int = 100_000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.prior = prior
        self.scale = scale
        self.curved = curved
        self.n_components = n_components
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, on_progress: OnProgress | None = None
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features), or Source
            Features. float32 and float64 are used as they are, without a copy. Dask collections and opened files
            (:func:`cceclust.io.open_features`) need not fit into memory.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        on_progress : callable, optional
            Called with a :class:`cceclust.fit.progress.Progress` from time to time.

        Returns
        -------
        self
        """
        settings = settings_of(self, numbers_of_clusters(self.n_clusters))
        source = self._as_source(X, reset=True)
        weights = as_relative_weights(sample_weight, source.shape[0], np.float64)
        with self._reporting(on_progress) as report:
            fit = fit_source(source, settings, sample_weight=weights, on_progress=report)
        self.labels_, self.probabilities_ = fit.prediction.labels, fit.prediction.probabilities
        self.n_clusters_ = self._n_features_out = len(fit.head.intercept)
        self.cluster_centers_ = fit.prediction.centers
        self.levels_ = fit.levels
        choice = fit.choice
        self.candidates_ = None if choice is None else choice.scores
        self.modularity_ = None if choice is None else list(choice.scores.values())[choice.best]
        self.reason_ = None if choice is None else choice.reason
        self._keep(replace(fit, problems=fit.problems + doubts_about_number(fit.levels)))
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits of the rows of X, shape (n_samples, n_clusters)."""
        return self._from_logits(X, np.asarray)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy Dask array
        """
        return self._from_logits(X, likeliest)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of :meth:`predict_proba`, as features for the next step of a pipeline."""
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the modularity of the predicted clusters on the graph of nearest neighbours of X.

        The graph depends on X alone, so that models with any settings can be compared on the same rows, for one number
        of clusters. Between numbers of clusters it prefers few; ``n_clusters="auto"`` is there to choose one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        source = self._as_source(X, reset=False)
        weights = as_relative_weights(sample_weight, source.shape[0], np.float64)
        return modularity_of_rows(source, self.predict(source), weights, n_threads=thread_count(self.n_jobs))

    def _take(self, model: Model) -> None:
        self.n_clusters_ = self._n_features_out = len(self.intercept_)
        if model.cluster_centers is not None:
            self.cluster_centers_ = model.cluster_centers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks need these tags for estimators that have predict_proba and accept sparse matrices.
        tags.classifier_tags = ClassifierTags()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def doubts_about_number(levels: Levels | None) -> list[str]:
    """Say what makes a number of clusters doubtful that was not given."""
    if levels is None:
        return []
    if levels.at_edge:
        return [f"{levels.chosen} clusters were taken, but numbers beyond those of n_clusters are more reproducible"]
    if levels.is_weak:
        return ["no number of clusters stands out; set n_clusters to one number to choose it yourself"]
    return []


def likeliest(logits: NDArray[Any]) -> NDArray[np.int64]:
    """Return the cluster with the largest logit of each row."""
    return np.asarray(logits.argmax(axis=1), np.int64)


def numbers_of_clusters(n_clusters: Any) -> int | NDArray[np.intp] | None:
    """Return the number of clusters, the numbers to choose from, or None for all.

    Examples
    --------
    >>> numbers_of_clusters(8), numbers_of_clusters("auto"), numbers_of_clusters(range(2, 5)), numbers_of_clusters([7])
    (8, None, array([2, 3, 4]), 7)
    """
    if isinstance(n_clusters, str) and n_clusters == "auto":
        return None
    if not isinstance(n_clusters, Sequence | np.ndarray) or isinstance(n_clusters, str | bytes):
        check_count(n_clusters, "n_clusters", 1)
        return int(n_clusters)
    if not len(n_clusters):
        raise InputError(f"n_clusters={n_clusters!r}; expected at least one number of clusters, the smallest first")
    for number in (n_clusters[0], n_clusters[-1]) if isinstance(n_clusters, range) else n_clusters:
        check_count(number, "n_clusters", 1)
    numbers = np.unique(np.asarray(n_clusters, np.intp))
    return int(numbers[0]) if len(numbers) == 1 else numbers
