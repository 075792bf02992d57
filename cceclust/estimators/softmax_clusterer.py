"""The base of all clusterers that train a linear softmax head, with scikit-learn's contract."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from cceclust.errors import ClusteringWarning, InputError
from cceclust.training.diagnostics import find_problems
from cceclust.training.engine import EpochReport, TrainingPlan, train
from cceclust.training.heads import HeadStack, row_logits
from cceclust.training.objectives import Objective
from cceclust.training.rows import Rows, in_memory
from cceclust.training.selection import evaluate
from cceclust.training.standardization import fold, measure
from cceclust.training.stream import Stream

__all__ = ["SoftmaxClusterer"]

# Weight decay that suits standardised features of 2048 dimensions; it grows with the root of their number.
WEIGHT_DECAY_AT_2048 = 0.4
# A head is trained for about so many batches, however many rows there are, but sees every row a few times.
STEPS = 800
LEAST_EPOCHS = 10


@dataclass(eq=False, repr=False)
class SoftmaxClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator, metaclass=ABCMeta
):
    """Base of the clusterers; see :class:`cceclust.CCEClusterer` for parameters and attributes.

    A dataclass, because its ``__init__`` does just what scikit-learn wants of a constructor: it assigns.
    """

    n_clusters: int = 8
    _: KW_ONLY
    prior: ArrayLike | None = None
    weight_decay: float | Literal["auto"] = "auto"
    learning_rate: float = 0.5
    learning_rate_schedule: Literal["cosine", "constant"] = "cosine"
    batch_size: int = 250
    n_init: int = 10
    max_epochs: int | Literal["auto"] = "auto"
    tol: float = 1e-4
    standardize: bool = True
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @abstractmethod
    def _make_objective(self, prior: NDArray[Any]) -> Objective:
        """Return a new objective for this method's parameters."""

    def _companions(self, rows: Rows, neighbors: Any, weights: NDArray[Any]) -> NDArray[np.intp] | None:
        """Return the rows that share each row's pseudo-label; none where there are no pseudo-labels."""
        if neighbors is not None:
            raise InputError(f"{type(self).__name__} has no use for neighbors; leave them out")
        return None

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
        n_samples, n_features = rows.shape
        plan, prior = self._plan(rows), self._prior(rows.dtype)
        weights = checked_weights(sample_weight, n_samples, rows.dtype)
        n_weighted = int((weights > 0).sum())
        if n_weighted < self.n_clusters:
            raise InputError(f"n_samples={n_weighted} should be >= n_clusters={self.n_clusters}")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        n_threads = thread_count(self.n_jobs)

        def make_objective() -> Objective:
            return self._make_objective(prior)

        with threadpool_limits(1, user_api="blas"):
            standardization = measure(rows, weights, standardize=self.standardize)
            companions = self._companions(rows, neighbors, weights)
            heads = train(
                rows,
                plan,
                make_objective,
                standardization,
                seed=seed,
                sample_weight=weights,
                companions=companions,
                n_threads=n_threads,
                on_epoch=on_epoch or (print_epoch if self.verbose else None),
            )
            coef, intercept = fold(heads.weights, heads.biases, standardization)
            evaluation = evaluate(
                coef, intercept, rows, make_objective, sample_weight=weights, seed=seed, n_threads=n_threads
            )
        best = int(np.argmin(evaluation.losses))
        self.n_features_in_ = n_features
        self.coef_, self.intercept_ = coef[best], intercept[best]
        self.losses_, self.loss_ = evaluation.losses, float(evaluation.losses[best])
        self.loss_curves_, self.loss_curve_ = heads.loss_curves, heads.loss_curves[best]
        self.n_iter_ = heads.loss_curves.shape[1]
        self.converged_ = heads.converged
        self.restart_agreement_ = evaluation.agreement
        self._n_features_out = self.n_clusters
        self._standardization = standardization
        self._stream: Stream | None = None
        self._label_and_diagnose(rows, prior, weights)
        return self

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
        plan, prior = self._plan(rows), self._prior(rows.dtype)
        weights = checked_weights(sample_weight, rows.shape[0], rows.dtype)
        stream = getattr(self, "_stream", None) or self._start_stream(rows, weights, plan)
        with threadpool_limits(1, user_api="blas"):
            losses = stream.update(rows, weights, plan, self._make_objective(prior))
        best = int(np.argmin(losses))
        coef, intercept = stream.raw_heads()
        self._stream = stream
        self.coef_, self.intercept_ = coef[best], intercept[best]
        self.losses_, self.loss_ = losses, float(losses[best])
        self._n_features_out = self.n_clusters
        self.labels_ = self._labels(rows)
        return self

    def _start_stream(self, rows: Rows, weights: NDArray[Any], plan: TrainingPlan) -> Stream:
        """Begin with random heads, or with the fitted one."""
        generator = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if hasattr(self, "coef_"):
            fitted = HeadStack.of_raw(self.coef_, self.intercept_, self._standardization)
            return Stream(fitted, self._standardization, generator)
        standardization = measure(rows, weights, standardize=self.standardize)
        heads = HeadStack.random(plan.n_restarts, self.n_clusters, rows.shape[1], rows.dtype, generator)
        return Stream(heads, standardization, generator)

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
        check_is_fitted(self)
        rows = self._validated_rows(X, reset=False)
        with threadpool_limits(1, user_api="blas"):
            return np.concatenate([logits for _, logits in row_logits(self.coef_, self.intercept_, rows)])

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
        return self._labels(self._validated_rows(X, reset=False))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Rows sum to 1.
        """
        return np.asarray(softmax(self.decision_function(X), axis=1))

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
        objective = self._make_objective(self._prior(probabilities.dtype))
        return -float(objective.losses(stack, weights / weights.sum())[0])

    def _validated_rows(self, X: Any, *, reset: bool) -> Rows:
        """Check X as scikit-learn does; what is finite is found out later, in the first pass over the rows."""
        checked = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float32, np.float64], reset=reset, ensure_all_finite=not reset
        )
        return in_memory(checked)

    def _labels(self, rows: Rows) -> NDArray[np.int64]:
        """Return the cluster of each row; fitting and predicting both go this way, so they agree to the bit."""
        with threadpool_limits(1, user_api="blas"):
            blocks = [logits.argmax(axis=1) for _, logits in row_logits(self.coef_, self.intercept_, rows)]
        return np.concatenate(blocks).astype(np.int64)

    def _label_and_diagnose(self, rows: Rows, prior: NDArray[Any], weights: NDArray[Any]) -> None:
        """Set `labels_` and warn of everything that makes them doubtful."""
        labels, confidence = [], 0.0
        with threadpool_limits(1, user_api="blas"):
            for where, logits in row_logits(self.coef_, self.intercept_, rows):
                labels.append(logits.argmax(axis=1))
                confidence += float(softmax(logits, axis=1).max(axis=1) @ weights[where])
        self.labels_ = np.concatenate(labels).astype(np.int64)
        self.problems_ = find_problems(
            np.bincount(self.labels_, weights, minlength=self.n_clusters),
            prior,
            confidence / float(weights.sum(dtype=np.float64)),
            agreement=self.restart_agreement_,
            converged=self.converged_,
        )
        for problem in self.problems_:
            warnings.warn(problem, ClusteringWarning, stacklevel=4)

    def _plan(self, rows: Rows) -> TrainingPlan:
        """Check the parameters against the data and fill in what is "auto"."""
        n_samples, n_features = rows.shape
        check_at_least("n_clusters", self.n_clusters, 1)
        check_at_least("n_init", self.n_init, 1)
        check_at_least("batch_size", self.batch_size, 1)
        check_not_negative("tol", self.tol)
        check_positive("learning_rate", self.learning_rate)
        if self.learning_rate_schedule not in ("cosine", "constant"):
            raise InputError(f"learning_rate_schedule={self.learning_rate_schedule!r}; expected 'cosine' or 'constant'")
        if self.weight_decay == "auto":
            weight_decay = self.automatic_weight_decay(n_features)
        else:
            check_not_negative("weight_decay", self.weight_decay)
            weight_decay = float(self.weight_decay)
        if self.max_epochs == "auto":
            max_epochs = max(LEAST_EPOCHS, round(STEPS * self.batch_size / max(n_samples, self.batch_size)))
        else:
            check_at_least("max_epochs", self.max_epochs, 1)
            max_epochs = int(self.max_epochs)
        return TrainingPlan(
            n_clusters=self.n_clusters,
            n_restarts=self.n_init,
            batch_size=self.batch_size,
            max_epochs=max_epochs,
            learning_rate=self.learning_rate,
            constant_rate=self.learning_rate_schedule == "constant",
            weight_decay=weight_decay,
            tol=self.tol,
        )

    @staticmethod
    def automatic_weight_decay(n_features: int) -> float:
        """Return the weight decay that "auto" stands for."""
        return float(WEIGHT_DECAY_AT_2048 * np.sqrt(n_features / 2048))

    def _prior(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the expected part of each cluster."""
        if self.prior is None:
            return np.full(self.n_clusters, 1 / self.n_clusters, dtype)
        try:
            prior = np.asarray(self.prior, dtype)
        except (TypeError, ValueError):
            raise InputError(f"prior={self.prior!r}; expected numbers") from None
        if prior.shape != (self.n_clusters,):
            raise InputError(
                f"prior has shape {prior.shape}; expected one value for each of {self.n_clusters} clusters"
            )
        if not (np.isfinite(prior).all() and (prior >= 0).all() and prior.sum() > 0):
            raise InputError(f"prior={prior.tolist()}; expected parts that are not negative and not all zero")
        return np.asarray(prior / prior.sum())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's checks read these of everything that has predict_proba and takes sparse matrices.
        tags.classifier_tags = ClassifierTags()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def checked_weights(sample_weight: ArrayLike | None, n_samples: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one weight a row."""
    if sample_weight is None:
        return np.ones(n_samples, dtype)
    weights = np.asarray(sample_weight, dtype)
    if weights.shape != (n_samples,):
        raise InputError(f"sample_weight has shape {weights.shape}; expected one weight for each of {n_samples} rows")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError("sample_weight contains values that are negative, NaN or infinite; expected none")
    if not weights.any():
        raise InputError("sample_weight is zero for every row; expected a positive weight somewhere")
    return weights


def check_at_least(name: str, value: Any, least: int) -> None:
    """Raise unless a parameter is a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")


def check_not_negative(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number of at least zero."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0:
        raise InputError(f"{name}={value!r}; expected a number of at least 0")


def check_positive(name: str, value: Any) -> None:
    """Raise unless a parameter is a finite number above zero."""
    check_not_negative(name, value)
    if value == 0:
        raise InputError(f"{name}=0; expected a number above 0")


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads to use: all cores by default, and scikit-learn's meaning of negative numbers."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}; expected a positive whole number, or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def print_epoch(report: EpochReport) -> None:
    """Print the progress of a verbose fit."""
    print(f"epoch {report.epoch}/{report.max_epochs}: lowest loss {report.losses.min():.6f}", file=sys.stderr)
