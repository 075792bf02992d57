"""What a method is without scikit-learn: its parameters, its loss, and what a fit leaves behind.

scikit-learn takes a second to load, and the command line has no need of it.
"""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import ClusteringWarning, InputError
from cceclust.progress import show_phases, showing_progress
from cceclust.training.head import Curves, Head
from cceclust.training.progress import OnProgress, silent
from cceclust.training.settings import FitSettings
from cceclust.validation import as_relative_weights

if TYPE_CHECKING:
    from cceclust.training.candidates import Choice, HeadPlan
    from cceclust.training.diagnosis import Prediction
    from cceclust.training.fit import Fit
    from cceclust.training.objectives import Objective
    from cceclust.training.pieces import PieceTrainer
    from cceclust.training.rows import Rows

__all__ = ["FittedHead", "SoftmaxMethod", "draw_seed", "fit_progress", "warn_of"]


class FittedHead:
    """What a fit says of its head."""

    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    curves_: Curves | None

    @property
    def _head(self) -> Head:
        """What makes logits of rows."""
        return Head(self.coef_, self.intercept_, self.curves_)

    def _keep(self, fit: Fit) -> None:
        """Set the fitted attributes."""
        self.coef_, self.intercept_, self.curves_ = fit.head.coef, fit.head.intercept, fit.head.curves
        self._prediction = fit.prediction
        self.losses_, self.loss_ = fit.losses, fit.loss
        self.loss_curves_, self.loss_curve_ = fit.loss_curves, fit.loss_curves[fit.best_curve]
        self.best_restart_ = fit.best_curve
        self.n_iter_ = fit.loss_curves.shape[1]
        self.converged_ = fit.converged
        self.restart_agreement_, self.n_agreeing_ = fit.agreement, fit.n_agreeing
        self.weight_decay_, self.n_components_ = fit.weight_decay, fit.n_components
        self.n_trained_rows_ = fit.n_trained_rows
        self.columns_scaled_, self.outlier_score_ = fit.columns is not None, fit.outlier_scores
        self._columns, self.directions_evened_ = fit.columns, fit.directions_evened
        self.problems_ = fit.problems
        self._standardization = fit.standardization
        self._pieces: PieceTrainer | None = None


class SoftmaxMethod(FittedHead):
    """Clustering with a linear softmax head. Methods differ in their parameters and in the loss they minimise."""

    n_clusters: int | Sequence[int] | Literal["auto"]
    prior: Any
    random_state: Any
    verbose: int
    # The method that model files state.
    _method: ClassVar[str]
    _names_classes: ClassVar[bool] = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by their names, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)}

    @abstractmethod
    def _make_objective(self, plans: Sequence[HeadPlan]) -> Objective:
        """Return a new objective for heads that are trained as planned."""

    def _check_parameters(self) -> FitSettings:
        """Refuse parameters that are invalid for any data; return the settings of the fit."""
        settings = FitSettings.of(self, self.n_clusters)
        from cceclust.training.candidates import HeadPlan

        # A uniform prior needs no check, and an array of it may not fit into memory.
        is_given = self.prior is not None and not settings.has_free_prior
        prior = settings.prior_parts(np.dtype(np.float64)) if is_given else np.ones(1)
        self._make_objective([HeadPlan("random", settings.without_graph().fixed_fairness, prior, 0.0)])
        return settings

    def _fit_rows(
        self,
        rows: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        neighbors: ArrayLike | Any = None,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """Cluster rows that were checked; parameters and result are those of an estimator's ``fit``."""
        from cceclust.training.fit import fit_heads

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


def draw_seed(random_state: Any) -> int:
    """Turn scikit-learn's `random_state` into the seed of a fit."""
    if isinstance(random_state, int | np.integer):
        generator = np.random.RandomState(random_state)
    else:
        from sklearn.utils import check_random_state

        generator = check_random_state(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


def warn_of(problems: list[str]) -> None:
    """Issue a warning to the caller of `fit` for everything that makes clusters doubtful."""
    for problem in problems:
        warnings.warn(problem, ClusteringWarning, stacklevel=3)


@contextmanager
def fit_progress(on_progress: OnProgress | None, verbose: int) -> Iterator[OnProgress]:
    """Return what to call during a fit: the given function, or one that shows the progress if `verbose`."""
    if on_progress is not None or not verbose:
        yield on_progress or silent
        return
    with showing_progress() as bar:
        yield show_phases(bar)
