"""The base of all estimators that train a linear softmax head, whether labels help them or not."""

from __future__ import annotations

import sys
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from cceclust.errors import ClusteringWarning, InputError
from cceclust.training.components import TrainingSpace
from cceclust.training.diagnostics import find_problems
from cceclust.training.engine import EpochReport, TrainingPlan, train
from cceclust.training.heads import HeadStack, row_logits
from cceclust.training.objectives import Objective
from cceclust.training.rows import Rows, computing_dtype, in_memory
from cceclust.training.selection import evaluate
from cceclust.training.spectrum import Spectrum, measure_spectrum
from cceclust.training.standardization import Standardization, fold, measure
from cceclust.training.starts import random_heads
from cceclust.training.step_size import longest_stable_step
from cceclust.training.stream import Stream
from cceclust.training.supervision import Supervision
from cceclust.training.weight_decay import automatic_weight_decay
from cceclust.validation import check_count, check_non_negative, check_positive, thread_count

__all__ = ["SoftmaxHead"]

# A head is trained for about so many batches, however many rows there are, but sees every row a few times.
STEPS = 800
LEAST_EPOCHS = 10
# Beside labels, what is random at the start only has to tell clusters apart that no label names.
SIZE_BESIDE_LABELS = 0.01


@dataclass(eq=False, repr=False)
class SoftmaxHead(BaseEstimator, metaclass=ABCMeta):
    """Base of the estimators; see :class:`cceclust.CCEClusterer` for parameters and attributes.

    A dataclass, because its ``__init__`` does just what scikit-learn wants of a constructor: it assigns.
    """

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

    # What "auto" multiplies the weight decay by that suits clustering.
    weight_decay_factor: ClassVar[float] = 1.0

    @abstractmethod
    def _make_objective(self, prior: NDArray[Any]) -> Objective:
        """Return a new objective for this method's parameters."""

    def _training_space(
        self, rows: Rows, n_clusters: int, standardization: Standardization, weights: NDArray[Any], *, seed: int
    ) -> TrainingSpace:
        """Return what heads are trained on."""
        return TrainingSpace.of_rows(rows, standardization)

    def _start(
        self,
        space: TrainingSpace,
        n_clusters: int,
        spectrum: Spectrum,
        weights: NDArray[Any],
        supervision: Supervision | None,
    ) -> Callable[[int, np.random.Generator], HeadStack]:
        """Return what makes heads to start from: near zero where labels decide which cluster is which."""
        size = 1.0
        if supervision is not None:
            size = 0.0 if supervision.seeds is None else SIZE_BESIDE_LABELS
        return partial(random_heads, space=space, n_clusters=n_clusters, size=size)

    def _companions(
        self, rows: Rows, neighbors: Any, weights: NDArray[Any], *, crowded: bool
    ) -> NDArray[np.intp] | None:
        """Return the rows that share each row's pseudo-label; none where there are no pseudo-labels."""
        if neighbors is not None:
            raise InputError(f"{type(self).__name__} has no use for neighbors; leave them out")
        return None

    def _fit_heads(
        self,
        rows: Rows,
        n_clusters: int,
        weights: NDArray[Any],
        *,
        neighbors: Any = None,
        supervision: Supervision | None = None,
        self_labeling: bool = True,
        on_epoch: Callable[[EpochReport], None] | None = None,
    ) -> None:
        """Train all restarts, keep the best, and set what is known of it."""
        # Without the objective that needs no labels, unlabelled rows serve for standardisation alone.
        taught = weights if self_labeling else labelled_alone(weights, supervision)
        n_taught = int((taught > 0).sum())
        if self_labeling and n_taught < n_clusters:
            raise InputError(f"n_samples={n_taught} should be >= n_clusters={n_clusters}")
        plan, prior = self._plan(n_clusters, n_taught), self._prior(n_clusters, rows.dtype)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        n_threads = thread_count(self.n_jobs)

        def make_objective(members: NDArray[np.intp]) -> Objective | None:
            return self._make_objective(prior) if self_labeling else None

        with threadpool_limits(1, user_api="blas"):
            standardization = measure(rows, weights, standardize=self.standardize)
            space = self._training_space(rows, n_clusters, standardization, weights, seed=seed)
            spectrum = measure_spectrum(space.rows, space.standardization, weights, seed=seed)
            plan = self._with_weight_decay(plan, space, spectrum, weights, seed=seed)
            companions = None
            if self_labeling:
                crowded = spectrum.is_crowded_by(n_clusters)
                companions = self._companions(space.rows, neighbors, weights, crowded=crowded)
            if supervision is not None:
                plan = with_stable_steps(plan, space.rows, taught, space.standardization, seed)
            refuse_growing_weights(plan)
            draw_heads = self._start(space, n_clusters, spectrum, weights, supervision)
            heads = train(
                space.rows,
                plan,
                lambda members, generator: draw_heads(len(members), generator),
                make_objective,
                space.standardization,
                seed=seed,
                sample_weight=taught,
                companions=companions,
                supervision=supervision,
                n_threads=n_threads,
                on_epoch=on_epoch or (print_epoch if self.verbose else None),
            )
            evaluation = evaluate(
                *fold(heads.weights, heads.biases, space.standardization),
                space.rows,
                make_objective,
                sample_weight=taught,
                seed=seed,
                supervision=supervision,
                n_threads=n_threads,
            )
        best = int(np.argmin(evaluation.losses))
        with np.errstate(over="ignore", invalid="ignore"):
            coef, intercept = space.raw_heads(heads.weights[best], heads.biases[best])
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise InputError(f"features vary by {standardization.scale:g}, too little for {rows.dtype}; rescale them")
        self.n_features_in_ = rows.shape[1]
        self.coef_, self.intercept_ = coef, intercept
        self.losses_, self.loss_ = evaluation.losses, float(evaluation.losses[best])
        self.loss_curves_, self.loss_curve_ = heads.loss_curves, heads.loss_curves[best]
        self.n_iter_ = heads.loss_curves.shape[1]
        self.converged_ = heads.converged
        self.restart_agreement_, self.n_agreeing_ = evaluation.agreement, evaluation.n_agreeing
        self._standardization = standardization
        self._stream: Stream | None = None

    def _fit_piece(
        self,
        rows: Rows,
        n_clusters: int,
        weights: NDArray[Any],
        *,
        supervision: Supervision | None = None,
        self_labeling: bool = True,
    ) -> None:
        """Go once through some rows, starting from where the last call or a fit ended."""
        plan, prior = self._plan(n_clusters, rows.shape[0]), self._prior(n_clusters, rows.dtype)
        taught = weights if self_labeling else labelled_alone(weights, supervision)
        with threadpool_limits(1, user_api="blas"):
            stream = getattr(self, "_stream", None) or self._start_stream(rows, weights, plan, supervision)
            plan = replace(plan, weight_decay=self.weight_decay_)
            if supervision is not None:
                plan = with_stable_steps(plan, rows, taught, stream.standardization, seed=0)
            refuse_growing_weights(plan)
            objective = self._make_objective(prior) if self_labeling else None
            losses = stream.update(rows, taught, plan, objective, supervision)
        best = int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))
        coef, intercept = stream.raw_heads()
        self._stream = stream
        self.coef_, self.intercept_ = coef[best], intercept[best]
        self.losses_, self.loss_ = losses, float(losses[best])

    def _start_stream(
        self, rows: Rows, weights: NDArray[Any], plan: TrainingPlan, supervision: Supervision | None
    ) -> Stream:
        """Begin with new heads, or with the fitted one."""
        generator = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if hasattr(self, "coef_"):
            fitted = HeadStack.of_raw(self.coef_, self.intercept_, self._standardization)
            return Stream(fitted, self._standardization, generator)
        standardization = measure(rows, weights, standardize=self.standardize)
        spectrum = measure_spectrum(rows, standardization, weights, seed=0)
        space = TrainingSpace.of_rows(rows, standardization)
        self._with_weight_decay(plan, space, spectrum, weights, seed=0)
        draw_heads = self._start(space, plan.n_clusters, spectrum, weights, supervision)
        return Stream(draw_heads(plan.n_restarts, generator), standardization, generator)

    def _logits(self, X: Any) -> NDArray[Any]:
        """Return the logits of each row."""
        check_is_fitted(self)
        rows = self._validated_rows(X, reset=False)
        with threadpool_limits(1, user_api="blas"):
            return np.concatenate([logits for _, logits in row_logits(self.coef_, self.intercept_, rows)])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class or cluster for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Rows sum to 1.
        """
        return np.asarray(softmax(self._logits(X), axis=1))

    def _validated_rows(self, X: Any, *, reset: bool) -> Rows:
        """Check X as scikit-learn does; what is finite is found out later, in the first pass over the rows."""
        # Lists have Python's precision; arrays of whole numbers or float16 need no more than float32.
        dtype = getattr(X, "dtype", np.dtype(np.float64))
        is_wide = isinstance(dtype, np.dtype) and computing_dtype(dtype) == np.float64
        types = [np.float64, np.float32] if is_wide else [np.float32, np.float64]
        checked = validate_data(self, X, accept_sparse="csr", dtype=types, reset=reset, ensure_all_finite=not reset)
        return in_memory(checked)

    def _codes(self, rows: Rows) -> NDArray[np.int64]:
        """Return each row's cluster; fitting and predicting both go this way, so they agree to the bit."""
        with threadpool_limits(1, user_api="blas"):
            blocks = [logits.argmax(axis=1) for _, logits in row_logits(self.coef_, self.intercept_, rows)]
        return np.concatenate(blocks).astype(np.int64)

    def _diagnose(self, rows: Rows, prior: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.int64]:
        """Set `problems_` and warn of everything that makes clusters doubtful; return each row's cluster."""
        labels, confidence = [], 0.0
        with threadpool_limits(1, user_api="blas"):
            for where, logits in row_logits(self.coef_, self.intercept_, rows):
                labels.append(logits.argmax(axis=1))
                confidence += float(softmax(logits, axis=1).max(axis=1) @ weights[where])
        codes = np.concatenate(labels).astype(np.int64)
        self.problems_ = find_problems(
            np.bincount(codes, weights, minlength=len(prior)),
            prior,
            confidence / float(weights.sum(dtype=np.float64)),
            agreement=self.restart_agreement_,
            converged=self.converged_,
        )
        for problem in self.problems_:
            warnings.warn(problem, ClusteringWarning, stacklevel=4)
        return codes

    def _plan(self, n_clusters: int, n_rows: int) -> TrainingPlan:
        """Check the parameters against the data and fill in what is "auto"."""
        check_count(self.n_init, "n_init", 1)
        check_count(self.batch_size, "batch_size", 1)
        check_non_negative(self.tol, "tol")
        check_positive(self.learning_rate, "learning_rate")
        if self.learning_rate_schedule not in ("cosine", "constant"):
            raise InputError(f"learning_rate_schedule={self.learning_rate_schedule!r}; expected 'cosine' or 'constant'")
        if self.weight_decay != "auto":
            check_non_negative(self.weight_decay, "weight_decay")
        if self.max_epochs == "auto":
            max_epochs = max(LEAST_EPOCHS, round(STEPS * self.batch_size / max(n_rows, self.batch_size)))
        else:
            check_count(self.max_epochs, "max_epochs", 1)
            max_epochs = int(self.max_epochs)
        return TrainingPlan(
            n_clusters=n_clusters,
            n_restarts=self.n_init,
            batch_size=self.batch_size,
            max_epochs=max_epochs,
            learning_rate=self.learning_rate,
            constant_rate=self.learning_rate_schedule == "constant",
            weight_decay=0.0 if self.weight_decay == "auto" else float(self.weight_decay),
            tol=self.tol,
        )

    def _with_weight_decay(
        self, plan: TrainingPlan, space: TrainingSpace, spectrum: Spectrum, weights: NDArray[Any], *, seed: int
    ) -> TrainingPlan:
        """Return the plan with the weight decay that is asked for, or with one that suits the data."""
        decay = plan.weight_decay
        if self.weight_decay == "auto":
            suitable = automatic_weight_decay(space, spectrum, plan.n_clusters, weights, seed=seed)
            decay = self.weight_decay_factor * suitable
        self.weight_decay_ = decay
        return replace(plan, weight_decay=decay)

    def _prior(self, n_clusters: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the expected part of each cluster."""
        if self.prior is None:
            return np.full(n_clusters, 1 / n_clusters, dtype)
        try:
            prior = np.asarray(self.prior, dtype)
        except (TypeError, ValueError):
            raise InputError(f"prior={self.prior!r}; expected numbers") from None
        if prior.shape != (n_clusters,):
            raise InputError(f"prior has shape {prior.shape}; expected one value for each of {n_clusters} clusters")
        if not (np.isfinite(prior).all() and (prior >= 0).all() and prior.sum() > 0):
            raise InputError(f"prior={prior.tolist()}; expected parts that are not negative and not all zero")
        return np.asarray(prior / prior.sum())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def with_stable_steps(
    plan: TrainingPlan, rows: Rows, weights: NDArray[Any], standardization: Standardization, seed: int
) -> TrainingPlan:
    """Return the plan with steps short enough for learning from labels."""
    longest = longest_stable_step(rows, plan.n_clusters, standardization, weights, seed=seed)
    return replace(plan, learning_rate=min(plan.learning_rate, longest))


def refuse_growing_weights(plan: TrainingPlan) -> None:
    """Raise where decay takes more from the weights than twice what they are, so that they grow instead."""
    largest = np.max(plan.weight_decay)
    if plan.learning_rate * largest >= 2:
        raise InputError(
            f"training diverges with learning_rate={plan.learning_rate:g} and weight_decay={largest:g}; "
            "lower them to a product below 2, and standardize features of a large scale"
        )


def labelled_alone(weights: NDArray[Any], supervision: Supervision | None) -> NDArray[Any]:
    """Return the weights of labelled rows, and 0 for all others."""
    taught = np.zeros_like(weights)
    if supervision is not None:
        taught[supervision.rows] = weights[supervision.rows]
    return taught


def print_epoch(report: EpochReport) -> None:
    """Print the progress of a verbose fit."""
    print(f"epoch {report.epoch}/{report.max_epochs}: lowest loss {report.losses.min():.6f}", file=sys.stderr)
