"""The base of clusterers that teach their own pseudo-labels, to a row and to its neighbours."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import InputError
from cceclust.estimators.softmax_clusterer import SoftmaxClusterer
from cceclust.neighbors import as_neighbors, nearest_neighbors
from cceclust.pseudo_labels import Solver
from cceclust.training.objectives import SelfLabeling
from cceclust.training.rows import ArrayRows, Rows, SparseRows
from cceclust.validation import check_count, check_non_negative

__all__ = ["SelfLabelingClusterer"]

AUTOMATIC_NEIGHBORS = 10
# In many directions a few rows can be divided in any way, and neighbours keep heads from it; where clusters are crowded
# into few directions, neighbours of a few rows only blur the borders.
FEWEST_ROWS, FEWEST_CROWDED_ROWS = 100, 1000
# Above, the graph's memory begins to count.
MOST_ROWS = 500_000


@dataclass(eq=False, repr=False, kw_only=True)
class SelfLabelingClusterer(SoftmaxClusterer):
    """Base of the clusterers with pseudo-labels; see :class:`cceclust.CCEClusterer` for parameters and attributes."""

    solver_iterations: int = 20
    n_neighbors: int | Literal["auto"] = 0
    neighbor_weight: float = 1.0

    # Whether the head learns by collision cross-entropy, or else by Shannon's.
    collision: ClassVar[bool] = True

    @abstractmethod
    def _make_solver(self, prior: NDArray[Any]) -> Solver:
        """Return the solver for this method's parameters."""

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, neighbors: ArrayLike | Any = None
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. float32 and float64 are used as they are, without a copy.
        y : Ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Importance of each row.
        neighbors : array-like of shape (n_samples, k) or sparse matrix of shape (n_samples, n_samples), optional
            Nearest neighbours of each row, from :func:`cceclust.nearest_neighbors` or
            :func:`sklearn.neighbors.kneighbors_graph`; given these, none are searched for.

        Returns
        -------
        self
        """
        rows = self._validated_rows(X, reset=True)
        return self.fit_rows(rows, sample_weight=sample_weight, neighbors=neighbors)

    def _companions(
        self, rows: Rows, neighbors: Any, weights: NDArray[Any], *, crowded: bool
    ) -> NDArray[np.intp] | None:
        """Return the rows that share each row's pseudo-label: those given, those found, or none."""
        check_non_negative(self.neighbor_weight, "neighbor_weight")
        if self.n_neighbors != "auto":
            check_count(self.n_neighbors, "n_neighbors", 0)
        if self.neighbor_weight == 0 or (self.n_neighbors == 0 and neighbors is None):
            return None
        if not isinstance(rows, ArrayRows | SparseRows):
            if neighbors is None and self.n_neighbors == "auto":
                return None
            raise InputError("neighbours need all rows in memory; allow more memory or set n_neighbors=0")
        if neighbors is not None:
            given = as_neighbors(neighbors, rows.shape[0])
            # Rows without weight teach nothing: in their place, a row is its own neighbour.
            return np.where(weights[given] > 0, given, np.arange(rows.shape[0])[:, None])
        kept = np.flatnonzero(weights > 0)
        n_neighbors = self.n_neighbors
        if n_neighbors == "auto":
            fewest = FEWEST_CROWDED_ROWS if crowded else FEWEST_ROWS
            if isinstance(rows, SparseRows) or not fewest <= len(kept) <= MOST_ROWS:
                return None
            n_neighbors = AUTOMATIC_NEIGHBORS
        matrix = rows.matrix if len(kept) == rows.shape[0] else rows.matrix[kept]
        companions = np.zeros((rows.shape[0], n_neighbors), np.intp)
        companions[kept] = kept[nearest_neighbors(matrix, n_neighbors, n_jobs=self.n_jobs)]
        return companions

    def _make_objective(self, prior: NDArray[Any]) -> SelfLabeling:
        solver = self._make_solver(prior)
        return SelfLabeling(solver, collision=self.collision, companion_weight=self.neighbor_weight)
