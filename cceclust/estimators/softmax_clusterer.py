"""The base of all clusterers that train a linear softmax head, with scikit-learn's contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from cceclust.errors import InputError
from cceclust.estimators.parameters import checked_weights
from cceclust.estimators.softmax_head import SoftmaxHead
from cceclust.training.components import TrainingSpace, projected, worthwhile_components
from cceclust.training.engine import EpochReport, TrainingPlan
from cceclust.training.heads import HeadStack
from cceclust.training.rows import ArrayRows, Rows
from cceclust.training.spectrum import Spectrum
from cceclust.training.standardization import Standardization
from cceclust.training.starts import heads_around_centres
from cceclust.training.supervision import Supervision
from cceclust.validation import check_count, thread_count

__all__ = ["SoftmaxClusterer"]


@dataclass(eq=False, repr=False)
class SoftmaxClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SoftmaxHead):
    """Base of the clusterers; see :class:`cceclust.CCEClusterer` for parameters and attributes."""

    n_clusters: int = 8
    _: KW_ONLY
    init: Literal["auto", "random", "k-means"] = "auto"
    n_components: int | Literal["auto"] = "auto"

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. float32 and float64 are used as they are, without a copy.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.

        Returns
        -------
        self
        """
        return self.fit_rows(self._validated_rows(X, reset=True), sample_weight=sample_weight)

    def fit_rows(
        self,
        rows: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        neighbors: ArrayLike | Any = None,
        on_epoch: Callable[[EpochReport], None] | None = None,
    ) -> Self:
        """Cluster rows that need not be in memory.

        Parameters
        ----------
        rows : Rows
            Such as :class:`cceclust.training.rows.FileRows`.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.
        neighbors : array-like or sparse matrix, optional
            As in `fit` of the clusterers that know neighbours. Only for rows in memory.
        on_epoch : callable, optional
            Called with an :class:`cceclust.training.engine.EpochReport` after each epoch.

        Returns
        -------
        self
        """
        check_count(self.n_clusters, "n_clusters", 1)
        weights = checked_weights(sample_weight, rows.shape[0], rows.dtype)
        self._fit_heads(rows, self.n_clusters, weights, neighbors=neighbors, on_epoch=on_epoch)
        self._n_features_out = self.n_clusters
        self.labels_ = self._diagnose(rows, self._prior(self.n_clusters, rows.dtype), weights)
        return self

    def _plan(self, n_clusters: int, n_rows: int) -> TrainingPlan:
        if self.init not in ("auto", "random", "k-means"):
            raise InputError(f"init={self.init!r}; expected 'auto', 'random' or 'k-means'")
        if self.n_components != "auto":
            check_count(self.n_components, "n_components", 0)
        return super()._plan(n_clusters, n_rows)

    def _training_space(
        self, rows: Rows, n_clusters: int, standardization: Standardization, weights: NDArray[Any], *, seed: int
    ) -> TrainingSpace:
        """Return the rows, or their leading principal components where that was asked for or is worthwhile."""
        if self.n_components == "auto":
            # Where rows are not to be centred, their mean would be the first of the components.
            suitable = isinstance(rows, ArrayRows) and self.standardize
            n_components = worthwhile_components(rows.shape[1], n_clusters) if suitable else 0
        else:
            n_components = self.n_components
        if not 0 < n_components < rows.shape[1]:
            space = TrainingSpace.of_rows(rows, standardization)
        elif isinstance(rows, ArrayRows):
            n_threads = thread_count(self.n_jobs)
            space = projected(rows, standardization, weights, n_components, seed=seed, n_threads=n_threads)
        else:
            raise InputError("components need dense features in memory; allow more memory or set n_components=0")
        self.n_components_ = space.rows.shape[1]
        return space

    def _start(
        self,
        space: TrainingSpace,
        n_clusters: int,
        spectrum: Spectrum,
        weights: NDArray[Any],
        supervision: Supervision | None,
    ) -> Callable[[int, np.random.Generator], HeadStack]:
        """Return what makes heads to start from: K-means' if asked to, or where clusters are crowded."""
        n_rows = int((weights > 0).sum())
        if self.init == "k-means" and n_rows < n_clusters:
            raise InputError(f"init='k-means' needs a row for each of {n_clusters} clusters; got {n_rows}")
        crowded = spectrum.is_crowded_by(n_clusters) and n_rows >= n_clusters
        if self.init == "k-means" or (self.init == "auto" and crowded):
            return partial(
                heads_around_centres, space=space, n_clusters=n_clusters, spectrum=spectrum, sample_weight=weights
            )
        return super()._start(space, n_clusters, spectrum, weights, supervision)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go once through a batch of rows, starting from where the last call (or `fit`) ended.

        Without a `fit` before it, the first call draws ``n_init`` heads and takes the mean and scale of its rows for
        those of the data, so it should see a few hundred rows. The head with the lowest running loss predicts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "coef_")
        rows = self._validated_rows(X, reset=is_first)
        check_count(self.n_clusters, "n_clusters", 1)
        weights = checked_weights(sample_weight, rows.shape[0], rows.dtype)
        self._fit_piece(rows, self.n_clusters, weights)
        self._n_features_out = self.n_clusters
        self.labels_ = self._codes(rows)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self._logits(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the cluster of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._codes(self._validated_rows(X, reset=False))

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the probability of each cluster for each row, as features for the next step of a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the loss of the rows: the higher, the better they fit the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.

        Returns
        -------
        float
        """
        probabilities = self.predict_proba(X)
        weights = checked_weights(sample_weight, len(probabilities), probabilities.dtype)
        stack = np.ascontiguousarray(probabilities.T)[None]
        objective = self._make_objective(self._prior(self.n_clusters, probabilities.dtype))
        return -float(objective.losses(stack, weights / weights.sum())[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks read these of everything that has predict_proba and takes sparse matrices.
        tags.classifier_tags = ClassifierTags()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
