"""scikit-learn's contract for clusterers, shared by CCEClusterer and the baselines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from cceclust.errors import InputError
from cceclust.estimators.softmax_estimator import SoftmaxEstimator, draw_seed, fit_progress, warn_of
from cceclust.files import Model
from cceclust.training.candidates import Choice, HeadPlan, modularity_of_rows, rows_to_judge
from cceclust.training.diagnosis import Prediction, predict_rows
from cceclust.training.fit import fit_heads
from cceclust.training.logits import likeliest, unchanged
from cceclust.training.objectives import Objective
from cceclust.training.progress import OnProgress
from cceclust.training.robustness import scaled_columns
from cceclust.training.rows import DistantRows, in_memory
from cceclust.training.settings import FitSettings
from cceclust.validation import as_relative_weights

__all__ = ["SoftmaxClusterer"]


class SoftmaxClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SoftmaxEstimator):
    """Clustering with a linear softmax head. Methods differ in their parameters and in the loss they minimise."""

    n_clusters: int | Sequence[int] | Literal["auto"]
    prior: Any
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _make_objective(self, plans: Sequence[HeadPlan]) -> Objective:
        """Return a new objective for heads that are trained as planned."""

    def _check_parameters(self) -> FitSettings:
        """Refuse parameters that are invalid for any data; return the settings of the fit."""
        settings = FitSettings.of(self, self.n_clusters)
        # A uniform prior needs no check, and an array of it may not fit into memory.
        is_given = self.prior is not None and not settings.has_free_prior
        prior = settings.prior_parts(np.dtype(np.float64)) if is_given else np.ones(1)
        self._make_objective([HeadPlan("random", settings.without_graph().fixed_fairness, prior, 0.0)])
        return settings

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
        settings = self._check_parameters()
        if neighbors is not None and not hasattr(self, "n_neighbors"):
            raise InputError(f"{type(self).__name__} has no use for neighbors; leave them out")
        with fit_progress(on_progress, self.verbose) as report:
            fit = fit_heads(
                rows,
                settings,
                self._make_objective,
                sample_weight=as_relative_weights(sample_weight, rows.shape[0], rows.dtype),
                seed=draw_seed(self.random_state),
                neighbors=neighbors,
                on_progress=report,
            )
        self._keep(fit)
        self._keep_choice(fit.choice)
        self._keep_prediction(fit.prediction)
        self.k_search_ = fit.search
        self.k_scores_ = None if fit.search is None else fit.search.score_of
        warn_of(fit.problems)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train for one pass over a piece of the data, starting where the last call (or `fit`) ended.

        Without a `fit` before, the first call draws ``n_init`` heads and uses the mean and scale of its rows as those
        of all the data, so it should get a few hundred rows. The head with the lowest running loss is used to predict.
        Training on pieces uses neither components nor neighbours.

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
        self._keep_prediction(predict_rows(self.coef_, self.intercept_, rows, sample_weight=weights))
        return self

    def _keep_choice(self, choice: Choice | None) -> None:
        """Set what the graph said of the candidates, if it decided."""
        self.candidates_: dict[str, float] | None = None
        self.modularity_: float | None = None
        self.chosen_: str | None = None
        if choice is not None:
            self.candidates_ = choice.scores
            self.modularity_ = float(choice.modularities[choice.best])
            self.chosen_ = choice.names[choice.best]

    def _keep_prediction(self, prediction: Prediction) -> None:
        """Set the attributes that describe the clusters of the rows."""
        self._prediction = prediction
        self.labels_, self.probabilities_ = prediction.labels, prediction.probabilities
        self.n_clusters_ = self._n_features_out = len(self.intercept_)
        self.cluster_centers_ = prediction.centers

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
        labels = predict_rows(self.coef_, self.intercept_, rows).labels
        if self._columns is not None:
            rows = scaled_columns(rows, self._columns)
        return modularity_of_rows(rows, labels, weights, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks need these tags for estimators that have predict_proba and accept sparse matrices.
        tags.classifier_tags = ClassifierTags()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
