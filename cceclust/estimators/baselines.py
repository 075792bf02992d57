"""The methods that the paper compares with, with the same training engine and the same interface.

Parameters and attributes that are not described here are those of :class:`cceclust.CCEClusterer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import cluster

from cceclust.errors import FileContentError
from cceclust.estimators.model_files import SavedAsModel
from cceclust.estimators.softmax_clusterer import SoftmaxClusterer
from cceclust.files import Model
from cceclust.pseudo_labels import AlternatingDirectionSolver, OptimalTransportSolver, PGDSolver
from cceclust.training.candidates import HeadPlan
from cceclust.training.objectives import MutualInformation, SelfLabeling
from cceclust.validation import check_non_negative, thread_count

__all__ = ["MIADM", "MIGD", "CCEByPGD", "KMeans", "SeLa"]


class KMeans(SavedAsModel, cluster.KMeans):
    """scikit-learn's K-means, with its assignment also written as a linear head.

    Attributes
    ----------
    coef_ : ndarray of shape (n_clusters, n_features)
        Twice the centres, measured from their mean.
    intercept_ : ndarray of shape (n_clusters,)
        Biases with which ``argmax(x · coef_ᵀ + intercept_)`` is the nearest centre.
    n_clusters_ : int
        Number of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.estimators import KMeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> bool(((X @ model.coef_.T + model.intercept_).argmax(axis=1) == model.labels_).all())
    True
    """

    _method = "kmeans"

    @property
    def coef_(self) -> NDArray[Any]:
        """Twice the centres, measured from their mean."""
        # Centres far from the origin differ only in their last digits; subtracting the mean keeps these.
        centres = self.cluster_centers_.astype(np.float64)
        return np.asarray(2 * (centres - centres.mean(axis=0)), self.cluster_centers_.dtype)

    @property
    def intercept_(self) -> NDArray[Any]:
        """Biases with which the largest logit is that of the nearest centre."""
        centres = self.cluster_centers_.astype(np.float64)
        mean = centres.mean(axis=0)
        return np.asarray(-((centres + mean) * (centres - mean)).sum(axis=1), self.cluster_centers_.dtype)

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return len(self.cluster_centers_)

    def _take(self, model: Model, path: Path) -> None:
        if model.cluster_centers is None:
            raise FileContentError(f"{path} has no cluster_centers, from which K-means predicts; fit it again")
        self.cluster_centers_ = model.cluster_centers
        # scikit-learn sets these when fitting, and needs them to predict.
        self._n_threads, self._n_features_out = thread_count(None), len(model.cluster_centers)


class MIGD(SoftmaxClusterer):
    """Mutual information by gradient descent: mean H(σ) + w KL(σ̄ ‖ u), eq. 1 of arXiv:2303.07321.

    Parameters
    ----------
    fairness : float, default=1.3
        w.

    References
    ----------
    Bridle, Heading and MacKay, "Unsupervised classifiers, mutual information and phantom targets", NIPS 1991.
    Krause, Perona and Gomes, "Discriminative clustering by regularized information maximization", NIPS 2010.
    """

    _method = "migd"

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        fairness: float = 1.3,
        prior: ArrayLike | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        init: Literal["auto", "random", "k-means"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 10,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.prior = prior
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.batch_size = batch_size
        self.init = init
        self.n_components = n_components
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.tol = tol
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_objective(self, plans: Sequence[HeadPlan]) -> MutualInformation:
        """Return this method's loss."""
        check_non_negative(self.fairness, "fairness")
        return MutualInformation(plans[0].prior, self.fairness)


class SeLa(SoftmaxClusterer):
    """Self-labeling with one-hot pseudo-labels of balanced sizes, found by optimal transport; eq. 4 of the paper.

    Parameters
    ----------
    sharpness : float, default=25.0
        The exponent of the probabilities in Sinkhorn's algorithm.
    max_iter : int, default=20
        Sinkhorn iterations per batch.

    References
    ----------
    Asano, Rupprecht and Vedaldi, "Self-labelling via simultaneous clustering and representation learning", ICLR 2020.
    """

    _method = "sela"

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        sharpness: float = 25.0,
        prior: ArrayLike | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        max_iter: int = 20,
        n_neighbors: int | Literal["auto"] = 0,
        neighbor_weight: float = 1.0,
        init: Literal["auto", "random", "k-means"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 10,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.sharpness = sharpness
        self.prior = prior
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.init = init
        self.n_components = n_components
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.tol = tol
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_objective(self, plans: Sequence[HeadPlan]) -> SelfLabeling:
        """Return this method's loss."""
        solver = OptimalTransportSolver(
            prior=plans[0].prior, sharpness=self.sharpness, one_hot=True, max_iter=self.max_iter, tol=0.0
        )
        return SelfLabeling(solver, collision=False, companion_weight=self.neighbor_weight)


class MIADM(SoftmaxClusterer):
    """Self-labeling by Shannon's cross-entropy and alternating directions: mean H(y, σ) + λ KL(ȳ ‖ u), eq. 5.

    Parameters
    ----------
    fairness : float, default=1.0
        λ.
    max_iter : int, default=20
        Solver iterations per batch.

    References
    ----------
    Jabi, Pedersoli, Mitiche and Ben Ayed, "Deep clustering: On the link between discriminative models and K-means",
    TPAMI 2021.
    """

    _method = "miadm"

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        fairness: float = 1.0,
        prior: ArrayLike | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        max_iter: int = 20,
        n_neighbors: int | Literal["auto"] = 0,
        neighbor_weight: float = 1.0,
        init: Literal["auto", "random", "k-means"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 10,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.prior = prior
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.init = init
        self.n_components = n_components
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.tol = tol
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_objective(self, plans: Sequence[HeadPlan]) -> SelfLabeling:
        """Return this method's loss."""
        solver = AlternatingDirectionSolver(
            fairness=self.fairness, prior=plans[0].prior, max_iter=self.max_iter, tol=0.0
        )
        return SelfLabeling(solver, collision=False, companion_weight=self.neighbor_weight)


class CCEByPGD(SoftmaxClusterer):
    """Collision cross-entropy with the other order of the divergence, L_CCE (eq. 10), by projected gradient descent.

    Parameters
    ----------
    fairness : float, default=10.0
        λ.
    step_size : float or "auto", default="auto"
        Step size of the projected gradient descent. "auto" is half of the limit above which it diverges.
    max_iter : int, default=100
        Steps of projected gradient descent per batch.
    """

    _method = "cce-pgd"

    def __init__(
        self,
        n_clusters: int | Sequence[int] | Literal["auto"] = 8,
        *,
        fairness: float = 10.0,
        step_size: float | Literal["auto"] = "auto",
        prior: ArrayLike | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        max_iter: int = 100,
        n_neighbors: int | Literal["auto"] = 0,
        neighbor_weight: float = 1.0,
        init: Literal["auto", "random", "k-means"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 10,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.step_size = step_size
        self.prior = prior
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.init = init
        self.n_components = n_components
        self.n_init = n_init
        self.max_epochs = max_epochs
        self.tol = tol
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_objective(self, plans: Sequence[HeadPlan]) -> SelfLabeling:
        """Return this method's loss."""
        check_non_negative(self.fairness, "fairness")
        automatic = 1 / (len(plans[0].prior) * max(self.fairness, 1.0))
        solver = PGDSolver(
            fairness=self.fairness,
            prior=plans[0].prior,
            loss="cce",
            step_size=automatic if self.step_size == "auto" else self.step_size,
            max_iter=self.max_iter,
            tol=0.0,
        )
        return SelfLabeling(solver, companion_weight=self.neighbor_weight)
