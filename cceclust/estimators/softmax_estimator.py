"""What all estimators with a softmax head share, whether they are fitted with labels or without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from cceclust.errors import InputError
from cceclust.estimators.model_files import SavedAsModel
from cceclust.estimators.softmax_method import FittedHead, draw_seed
from cceclust.files import Model
from cceclust.training.logits import all_logits, probabilities_of
from cceclust.training.pieces import PieceTrainer
from cceclust.training.rows import ArrayRows, DistantRows, Rows, SparseRows, computing_dtype, in_memory
from cceclust.training.settings import FitSettings

__all__ = ["SoftmaxEstimator"]


class SoftmaxEstimator(SavedAsModel, BaseEstimator, FittedHead):
    """Base class of estimators with a softmax head: fitted attributes and predictions."""

    random_state: Any

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

    def _from_logits(self, X: Any, finish: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return a function of the logits of all rows; of a Dask collection, as an array that is not yet computed."""
        check_is_fitted(self)
        if is_dask(X):
            from cceclust.dask import as_dask_array, lazy_results

            self._check_columns(X, as_dask_array(X), reset=False)
            lazy: NDArray[Any] = lazy_results(X, self._head, finish)
            return lazy
        return finish(all_logits(self._head, self._as_rows(X, reset=False)))

    def _as_piece(self, X: Any, *, reset: bool) -> ArrayRows | SparseRows:
        """Check a piece of the data."""
        rows = self._as_rows(X, reset=reset)
        if not isinstance(rows, ArrayRows | SparseRows):
            raise InputError("a piece of data must be in memory; use fit for a whole file, or read parts of it")
        return rows

    def _as_rows(self, X: Any, *, reset: bool) -> Rows:
        """Check X as scikit-learn does; rows of a file are returned unchanged.

        When fitting, values that are not finite are found later, in the first pass over the rows.
        """
        if isinstance(X, ArrayRows | SparseRows | DistantRows):
            if not reset and X.shape[1] != self.n_features_in_:
                raise InputError(f"rows have {X.shape[1]} features; expected {self.n_features_in_}")
            self.n_features_in_ = X.shape[1]
            return X
        if is_dask(X):
            from cceclust.dask import DaskRows

            lazy = DaskRows(X)
            self._check_columns(X, lazy.array, reset=reset)
            return lazy
        # Lists hold Python floats, so float64; arrays of whole numbers or float16 need no more than float32.
        dtype = getattr(X, "dtype", np.dtype(np.float64))
        is_wide = isinstance(dtype, np.dtype) and computing_dtype(dtype) == np.float64
        types = [np.float64, np.float32] if is_wide else [np.float32, np.float64]
        checked = validate_data(self, X, accept_sparse="csr", dtype=types, reset=reset, ensure_all_finite=not reset)
        return in_memory(checked)

    def _check_columns(self, X: Any, array: Any, *, reset: bool) -> None:
        """Check names and number of the columns of a Dask collection as scikit-learn does."""
        validate_data(self, X._meta if hasattr(X, "columns") else array, skip_check_array=True, reset=reset)

    def _pieces_so_far(self, rows: ArrayRows | SparseRows, settings: FitSettings, **options: Any) -> PieceTrainer:
        """Return the training to continue: that of earlier pieces, of a fit, or a new one."""
        so_far: PieceTrainer | None = getattr(self, "_pieces", None)
        if so_far is not None:
            return so_far
        seed = draw_seed(self.random_state)
        if hasattr(self, "coef_"):
            if not hasattr(self, "_standardization"):
                raise InputError("a loaded model can predict but not go on learning; fit it to data again")
            if self.curves_ is not None:
                raise InputError("a head with curved borders cannot go on learning; fit with curved=False first")
            return PieceTrainer.resume(
                self.coef_, self.intercept_, self._standardization, self.weight_decay_, seed=seed, columns=self._columns
            )
        return PieceTrainer.begin(rows, settings, seed=seed, **options)

    def _take(self, model: Model, path: Path) -> None:
        self.coef_, self.intercept_, self.curves_ = model.coef, model.intercept, model.head.curves
        self._columns = model.column_scales

    def _keep_piece(self, pieces: PieceTrainer, best: int) -> None:
        """Set the attributes that a piece of the data changes."""
        self._pieces, self.weight_decay_ = pieces, pieces.weight_decay
        # What a fit said of all rows at once does not hold for the changed head.
        self.outlier_score_ = None
        self._columns, self.columns_scaled_ = pieces.columns, pieces.columns is not None
        self.directions_evened_ = False
        self.coef_, self.intercept_ = pieces.raw_head(best)
        self.curves_ = None
        self.losses_ = np.asarray(pieces.running_losses)
        self.loss_ = float(self.losses_[best])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_dask(X: Any) -> bool:
    """Tell whether X is an array or a data frame of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] == "dask"
