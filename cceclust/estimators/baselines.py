"""The methods the paper compares with, on the same engine and behind the same interface.

Parameters and attributes that are not described here are those of :class:`cceclust.CCEClusterer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster

from cceclust.estimators.self_labeling_clusterer import SelfLabelingClusterer
from cceclust.estimators.softmax_clusterer import SoftmaxClusterer
from cceclust.pseudo_labels import AlternatingDirectionSolver, OptimalTransportSolver, PGDSolver
from cceclust.training.objectives import MutualInformation
from cceclust.validation import check_non_negative

__all__ = ["MIADM", "MIGD", "CCEByPGD", "KMeans", "SeLa"]


class KMeans(cluster.KMeans):
    """scikit-learn's K-means, with its assignment also written as a linear head.

    Attributes
    ----------
    coef_ : ndarray of shape (n_clusters, n_features)
        Twice the centres, counted from their mean.
    intercept_ : ndarray of shape (n_clusters,)
        What makes ``argmax(x · coef_ᵀ + intercept_)`` the nearest centre.

    Examples
    --------
    >>> import numpy as np
    >>> from cceclust.estimators import KMeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> bool(((X @ model.coef_.T + model.intercept_).argmax(axis=1) == model.labels_).all())
    True
    """

    @property
    def coef_(self) -> NDArray[Any]:
        """Twice the centres, counted from their mean."""
        # Centres far from the origin differ in their last digits only; what they share says nothing.
        centres = self.cluster_centers_.astype(np.float64)
        return np.asarray(2 * (centres - centres.mean(axis=0)), self.cluster_centers_.dtype)

    @property
    def intercept_(self) -> NDArray[Any]:
        """What makes the largest logit that of the nearest centre."""
        centres = self.cluster_centers_.astype(np.float64)
        mean = centres.mean(axis=0)
        return np.asarray(-((centres + mean) * (centres - mean)).sum(axis=1), self.cluster_centers_.dtype)


@dataclass(eq=False, repr=False, kw_only=True)
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

    fairness: float = 1.3

    def _make_objective(self, prior: NDArray[Any]) -> MutualInformation:
        check_non_negative(self.fairness, "fairness")
        return MutualInformation(prior, self.fairness)


@dataclass(eq=False, repr=False, kw_only=True)
class SeLa(SelfLabelingClusterer):
    """Self-labeling with one-hot pseudo-labels of balanced sizes, found by optimal transport; eq. 3 of the paper.

    Parameters
    ----------
    sharpness : float, default=25.0
        The power of the probabilities in Sinkhorn's algorithm.
    solver_iterations : int, default=20
        Sinkhorn iterations a batch.

    References
    ----------
    Asano, Rupprecht and Vedaldi, "Self-labelling via simultaneous clustering and representation learning", ICLR 2020.
    """

    collision: ClassVar[bool] = False
    sharpness: float = 25.0

    def _make_solver(self, prior: NDArray[Any]) -> OptimalTransportSolver:
        return OptimalTransportSolver(
            prior=prior, sharpness=self.sharpness, one_hot=True, max_iter=self.solver_iterations, tol=0.0
        )


@dataclass(eq=False, repr=False, kw_only=True)
class MIADM(SelfLabelingClusterer):
    """Self-labeling by Shannon's cross-entropy and alternating directions: mean H(y, σ) + λ KL(ȳ ‖ u), eq. 4.

    Parameters
    ----------
    fairness : float, default=1.0
        λ.
    solver_iterations : int, default=20
        Iterations a batch.

    References
    ----------
    Jabi, Pedersoli, Mitiche and Ben Ayed, "Deep clustering: On the link between discriminative models and K-means",
    TPAMI 2021.
    """

    collision: ClassVar[bool] = False
    fairness: float = 1.0

    def _make_solver(self, prior: NDArray[Any]) -> AlternatingDirectionSolver:
        return AlternatingDirectionSolver(fairness=self.fairness, prior=prior, max_iter=self.solver_iterations, tol=0.0)


@dataclass(eq=False, repr=False, kw_only=True)
class CCEByPGD(SelfLabelingClusterer):
    """Collision cross-entropy with the other order of the divergence, L_CCE (eq. 11), by projected gradient descent.

    Parameters
    ----------
    fairness : float, default=10.0
        λ.
    step_size : float or "auto", default="auto"
        Step size of the projected gradient descent. "auto" is half of what would diverge.
    solver_iterations : int, default=100
        Its steps a batch.
    """

    fairness: float = 10.0
    step_size: float | Literal["auto"] = "auto"
    solver_iterations: int = 100

    def _make_solver(self, prior: NDArray[Any]) -> PGDSolver:
        check_non_negative(self.fairness, "fairness")
        automatic = 1 / (len(prior) * max(self.fairness, 1.0))
        return PGDSolver(
            fairness=self.fairness,
            prior=prior,
            loss="cce",
            step_size=automatic if self.step_size == "auto" else self.step_size,
            max_iter=self.solver_iterations,
            tol=0.0,
        )
