"""What all estimators with a softmax head share: checks of their input, predictions, and model files."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cceclust.errors import ClusteringWarning, FileContentError, InputError
from cceclust.fit.head import Curves, Head
from cceclust.fit.pipeline import Fit, Settings
from cceclust.fit.predict import all_logits, probabilities_of
from cceclust.fit.progress import OnProgress, silent
from cceclust.fit.source import Source, as_source, computing_dtype
from cceclust.io import Model, read_model, write_model
from cceclust.progress import show_phases, showing_progress
from cceclust.validation import as_prior, check_count, check_positive, thread_count

__all__ = ["SoftmaxEstimator", "draw_seed", "model_of", "settings_of"]

# What a model file can hold of a parameter. A generator of random numbers, for one, is left out.
STORED_TYPES = (str, int, float, list, tuple, range, np.ndarray, np.generic, type(None))


class SoftmaxEstimator(BaseEstimator):
    """Base class of estimators with a softmax head."""

    fairness: Any
    prior: Any
    scale: Any
    curved: bool
    n_components: int
    max_rows: int
    n_jobs: int | None
    random_state: Any
    verbose: int
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    curves_: Curves | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    # Whether the head's outputs have the names of classes.
    _names_classes: ClassVar[bool] = False

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class or cluster for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), or a lazy Dask array
            Rows sum to 1.
        """
        return self._from_logits(X, probabilities_of)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted head and the parameters to a model file, as ``cceclust fit`` does.

        Parameters
        ----------
        path : str or Path
            The file to write; it must end in ``.safetensors``.
        force : bool
            Overwrite an existing file.
        """
        check_is_fitted(self)
        write_model(path, model_of(self), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return an estimator that predicts as the saved one did, to the bit. Loading never runs code from the file.

        It has the parameters of the fit (the number of clusters that was found, if none was given) and the head. What
        describes the rows of the fit, such as `labels_`, is in cluster files instead.

        Parameters
        ----------
        path : str or Path
            A model file of this kind of estimator, from :meth:`save` or ``cceclust fit``.

        Returns
        -------
        estimator
        """
        model = read_model(path)
        if ("classes" in model.parameters) != cls._names_classes:
            other = "CCEClusterer" if cls._names_classes else "CCEClassifier"
            raise FileContentError(f"{path} is not a model of {cls.__name__}; use {other}.load")
        names = cls._get_param_names()
        estimator = cls(**{name: model.parameters[name] for name in names if name in model.parameters})
        estimator.n_features_in_ = model.coef.shape[1]
        features = model.provenance.get("feature_names")
        if isinstance(features, list) and len(features) == estimator.n_features_in_:
            estimator.feature_names_in_ = np.array(features, object)
        estimator.coef_, estimator.intercept_, estimator.curves_ = model.coef, model.intercept, model.head.curves
        estimator._take(model)
        return estimator

    @abstractmethod
    def _take(self, model: Model) -> None:
        """Set the fitted attributes that only this kind of estimator has."""

    def _from_logits(self, X: Any, finish: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return a function of the logits of all rows; of a Dask collection, as an array that is not yet computed."""
        check_is_fitted(self)
        head = Head(self.coef_, self.intercept_, self.curves_)
        if is_dask(X):
            from cceclust.dask import as_dask_array, lazy_results

            self._check_columns(X, as_dask_array(X), reset=False)
            lazy: NDArray[Any] = lazy_results(X, head, finish)
            return lazy
        return finish(all_logits(head, self._as_source(X, reset=False)))

    def _as_source(self, X: Any, *, reset: bool) -> Source:
        """Check X as scikit-learn does; a source is returned unchanged.

        When fitting, values that are not finite are found later, in the first pass over the rows.
        """
        if isinstance(X, Source):
            if not reset and X.shape[1] != self.n_features_in_:
                raise InputError(f"rows have {X.shape[1]} features; expected {self.n_features_in_}")
            if reset:
                self.n_features_in_ = X.shape[1]
                # Names of an older fit are not those of these columns.
                self.__dict__.pop("feature_names_in_", None)
            return X
        if is_dask(X):
            from cceclust.dask import DaskSource

            lazy = DaskSource(X)
            self._check_columns(X, lazy.array, reset=reset)
            return lazy
        # Lists hold Python floats, so float64; arrays of whole numbers or float16 need no more than float32.
        dtype = getattr(X, "dtype", np.dtype(np.float64))
        is_wide = isinstance(dtype, np.dtype) and computing_dtype(dtype) == np.float64
        types = [np.float64, np.float32] if is_wide else [np.float32, np.float64]
        checked = validate_data(self, X, accept_sparse="csr", dtype=types, reset=reset, ensure_all_finite=not reset)
        return as_source(checked)

    def _check_columns(self, X: Any, array: Any, *, reset: bool) -> None:
        """Check names and number of the columns of a Dask collection as scikit-learn does."""
        validate_data(self, X._meta if hasattr(X, "columns") else array, skip_check_array=True, reset=reset)

    def _check_common_parameters(self) -> None:
        """Refuse values that are invalid for any data."""
        if self.scale not in ("auto", "overall", "columns"):
            raise InputError(f"scale={self.scale!r}; expected 'auto', 'overall' or 'columns'")
        if not isinstance(self.curved, bool | np.bool_):
            raise InputError(f"curved={self.curved!r}; expected True or False")
        check_count(self.n_components, "n_components", 1)
        check_count(self.max_rows, "max_rows", 1)

    @contextmanager
    def _reporting(self, on_progress: OnProgress | None) -> Iterator[OnProgress]:
        """Return what to call during a fit: the given function, or one that shows the progress if `verbose`."""
        if on_progress is not None or not self.verbose:
            yield on_progress or silent
            return
        with showing_progress() as bar:
            yield show_phases(bar)

    def _keep(self, fit: Fit) -> None:
        """Set the attributes that all kinds of estimators have."""
        self.coef_, self.intercept_, self.curves_ = fit.head.coef, fit.head.intercept, fit.head.curves
        self.n_trained_rows_, self.columns_scaled_ = fit.n_trained_rows, fit.columns_scaled
        self.outlier_score_, self.problems_ = fit.outlier_scores, fit.problems
        for problem in fit.problems:
            warnings.warn(problem, ClusteringWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def draw_seed(random_state: Any) -> int:
    """Turn scikit-learn's `random_state` into the seed of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def settings_of(estimator: SoftmaxEstimator, n_clusters: int | NDArray[np.intp] | None) -> Settings:
    """Check the parameters of an estimator; return the settings of its fit with so many clusters."""
    estimator._check_common_parameters()
    fairness, prior = estimator.fairness, estimator.prior
    if fairness != "auto":
        check_positive(fairness, "fairness")
    if prior is not None:
        if not isinstance(n_clusters, int):
            raise InputError("prior needs a number of clusters; set n_clusters to one")
        prior = as_prior(None if isinstance(prior, str) and prior == "equal" else prior, n_clusters)
    return Settings(
        n_clusters,
        fairness=None if fairness == "auto" else float(fairness),
        prior=prior,
        scale=estimator.scale,
        n_components=estimator.n_components,
        curved=estimator.curved,
        max_rows=estimator.max_rows,
        n_threads=thread_count(estimator.n_jobs),
        seed=draw_seed(estimator.random_state),
    )


def is_dask(X: Any) -> bool:
    """Tell whether X is an array or a data frame of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] == "dask"


def model_of(estimator: Any, **provenance: Any) -> Model:
    """Return the model of a fitted estimator."""
    parameters = {name: value for name, value in estimator.get_params().items() if isinstance(value, STORED_TYPES)}
    # What a model has is a number; how it was chosen is said beside it.
    parameters.update(method="cce", n_clusters=len(estimator.intercept_))
    if estimator._names_classes:
        parameters["classes"] = estimator.classes_.tolist()
    if hasattr(estimator, "feature_names_in_"):
        provenance["feature_names"] = estimator.feature_names_in_.tolist()
    return Model(
        estimator.coef_,
        estimator.intercept_,
        parameters,
        provenance,
        cluster_centers=getattr(estimator, "cluster_centers_", None),
        curves=estimator.curves_,
    )
