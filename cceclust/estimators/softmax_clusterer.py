"""scikit-learn's contract for clusterers, shared by CCEClusterer and the baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from cceclust.errors import InputError
from cceclust.estimators.softmax_estimator import SoftmaxEstimator
from cceclust.estimators.softmax_method import SoftmaxMethod, warn_of
from cceclust.files import Model
from cceclust.training.candidates import modularity_of_rows, rows_to_judge
from cceclust.training.diagnosis import predict_rows
from cceclust.training.logits import likeliest, unchanged
from cceclust.training.progress import OnProgress
from cceclust.training.robustness import scaled_columns
from cceclust.training.rows import DistantRows, in_memory
from cceclust.validation import as_relative_weights

__all__ = ["SoftmaxClusterer"]


class SoftmaxClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SoftmaxEstimator, SoftmaxMethod
):
    """Clustering with a linear softmax head. Methods differ in their parameters and in the loss they minimise."""

    n_jobs: int | None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        neighbors: ArrayLike | Any = None,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features), or Rows
            Features. float32 and float64 are used as they are, without a copy. Dask arrays and data frames, and
            :class:`cceclust.training.rows.FileRows`, need not fit into memory.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        neighbors : array-like of shape (n_samples, k) or sparse matrix of shape (n_samples, n_samples), optional
            Nearest neighbours of each row, from :func:`cceclust.nearest_neighbors` or
            :func:`sklearn.neighbors.kneighbors_graph`; then no search is made. MIGD cannot use them.
        on_progress : callable, optional
            Called with a :class:`cceclust.training.progress.Progress` from time to time: the phase of the fit, and how
            much of it is done.

        Returns
        -------
        self
        """
        rows = self._as_rows(X, reset=True)
        self._fit_rows(rows, sample_weight=sample_weight, neighbors=neighbors, on_progress=on_progress)
        warn_of(self.problems_)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train for one pass over a piece of the data, starting where the last call (or `fit`) ended.

        Without a `fit` before, the first call draws ``n_init`` heads and uses the mean and scale of its rows as those
        of all the data, so it should get a few hundred rows. The head with the lowest running loss is used to predict.
        Training on pieces uses neither components nor neighbours. Columns are scaled only if the `fit` before did so,
        and directions stay as they are.

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
        self
        """
        rows = self._as_piece(X, reset=not hasattr(self, "coef_"))
        settings = self._check_parameters()
        if settings.candidates is not None:
            if not hasattr(self, "n_clusters_"):
                raise InputError(f"n_clusters={self.n_clusters!r}; pieces of data need a number, or a fit before them")
            settings = settings.with_clusters(self.n_clusters_)
        weights = as_relative_weights(sample_weight, rows.shape[0], rows.dtype)
        pieces = self._pieces_so_far(rows, settings, sample_weight=weights)
        best = pieces.train_on(rows, settings, self._make_objective, sample_weight=weights)
        self._keep_piece(pieces, best)
        self._keep_choice(None)
        self._keep_prediction(predict_rows(self._head, rows, sample_weight=weights))
        return self

    def _take(self, model: Model, path: Path) -> None:
        super()._take(model, path)
        self.n_clusters_ = self._n_features_out = len(self.intercept_)
        self.columns_scaled_ = self._columns is not None
        if model.cluster_centers is not None:
            self.cluster_centers_ = model.cluster_centers

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), or a lazy Dask array
        """
        return self._from_logits(X, unchanged)

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
        """Return the probability of each cluster for each row, as features for the next step of a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), or a lazy Dask array
        """
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the modularity of the predicted clusters on the graph of nearest neighbours.

        It needs no labels, and compares models with any settings and any number of clusters on the same rows, so
        scikit-learn's parameter searches can use it. See :func:`cceclust.neighbor_modularity`.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
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
        rows = self._as_rows(X, reset=False)
        weights = as_relative_weights(sample_weight, rows.shape[0], rows.dtype)
        if isinstance(rows, DistantRows):
            # Only the rows that are judged are brought here.
            judged = rows_to_judge(rows, weights)
            rows, weights = in_memory(rows.take(judged)), weights[judged]
        labels = predict_rows(self._head, rows).labels
        if self._columns is not None:
            rows = scaled_columns(rows, self._columns)
        return modularity_of_rows(rows, labels, weights, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks need these tags for estimators that have predict_proba and accept sparse matrices.
        tags.classifier_tags = ClassifierTags()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
