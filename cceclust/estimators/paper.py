"""The methods that the paper compares on fixed features (Table 2 of arXiv:2303.07321), with its settings.

A linear softmax head on the features as they are, from random weights, by mini-batch gradient descent at a constant
rate; the methods differ in what they minimise. For clusters that are as good as they can be, see
:class:`cceclust.CCEClusterer`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cceclust.errors import InputError
from cceclust.fit.objectives import MutualInformation, Objective, SelfLabeling, softmax
from cceclust.fit.trainer import train_head
from cceclust.pseudo_labels import AlternatingDirectionSolver, EMSolver, OptimalTransportSolver, PGDSolver
from cceclust.validation import check_count, check_non_negative, check_positive

__all__ = ["CCE", "MIADM", "MIGD", "CCEByPGD", "PaperClusterer", "SeLa"]


class PaperClusterer(ClusterMixin, BaseEstimator):
    """What the paper's methods share: parameters, training and predictions.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    fairness : float, optional
        Weight of the term that wants clusters of equal size; by default 100 for CCE, 1.3 for MIGD and 1 for MIADM.
        SeLa makes them equal and needs no weight.
    max_iter : int, default=1000
        Most iterations of the solver for the pseudo-labels of a batch; the paper iterates until they converge. MIGD has
        no pseudo-labels.
    learning_rate : float, default=0.1
        Rate of gradient descent, which stays the same.
    momentum : float, default=0.0
        Part of each step that is repeated in the next one.
    weight_decay : float, default=0.02
        Pull of the weights to 0: the paper's for CIFAR-10 and STL-10. It uses 0.001 for MNIST, 0.009 for CIFAR-100.
    batch_size : int, default=250
        Rows of a step, about: all batches are nearly equal.
    max_epochs : int, default=10
        Number of passes over the rows.
    random_state : int, RandomState or None
        Seed of the random weights and of the batches.

    Attributes
    ----------
    coef_ : ndarray of shape (n_clusters, n_features)
        Weights of the head, for the features as they came.
    intercept_ : ndarray of shape (n_clusters,)
        Its biases.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    n_clusters_ : int
        Number of clusters.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean loss of the batches of each epoch.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.
    """

    # The paper's weight of the fairness term.
    _fairness: ClassVar[float] = 100.0

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        fairness: float | None = None,
        max_iter: int = 1000,
        learning_rate: float = 0.1,
        momentum: float = 0.0,
        weight_decay: float = 0.02,
        batch_size: int = 250,
        max_epochs: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.fairness = fairness
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.random_state = random_state

    @abstractmethod
    def _objective(self, fairness: float) -> Objective:
        """Return what is minimised."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the head.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : Ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self._check_parameters(X.shape[0])
        trained = train_head(
            X,
            self.n_clusters,
            self._objective(self._fairness if self.fairness is None else self.fairness),
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            n_epochs=self.max_epochs,
            generator=np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        self.coef_, self.intercept_, self.loss_curve_ = trained
        self.n_iter_, self.n_clusters_ = len(trained.loss_curve), int(self.n_clusters)
        self.labels_ = self._logits(X).argmax(axis=1)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the cluster of each row of X, (n_samples, n_features)."""
        return np.asarray(self._logits(self._checked(X)).argmax(axis=1))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each cluster for each row of X, shape (n_samples, n_clusters)."""
        return np.ascontiguousarray(softmax(np.ascontiguousarray(self._logits(self._checked(X)).T)).T)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

    def _logits(self, X: Any) -> NDArray[Any]:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _check_parameters(self, n_samples: int) -> None:
        for name in ("n_clusters", "batch_size", "max_epochs"):
            check_count(getattr(self, name), name, least=1)
        check_positive(self.learning_rate, "learning_rate")
        for name in ("momentum", "weight_decay"):
            check_non_negative(getattr(self, name), name)
        if n_samples < self.n_clusters:
            raise InputError(f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}; ask for fewer clusters")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's checks need these of whatever has predict_proba and accepts sparse matrices.
        tags.classifier_tags = ClassifierTags()
        return tags


class CCE(PaperClusterer):
    """Collision cross-entropy by EM: mean H₂(y, σ) + λ KL(u ‖ ȳ), equation 11.

    Parameters and attributes are those of :class:`PaperClusterer`; λ is `fairness`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cceclust.estimators import CCE
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> model = CCE(3, random_state=0).fit(X - X.mean())
    >>> bool(model.loss_curve_[-1] < model.loss_curve_[0])
    True
    """

    def _objective(self, fairness: float) -> Objective:
        return SelfLabeling(EMSolver(fairness, max_iter=self.max_iter))


class CCEByPGD(PaperClusterer):
    """Collision cross-entropy with the other order of the divergence, mean H₂(y, σ) + λ KL(ȳ ‖ u), equation 10.

    By projected gradient descent, with half the step size above which it diverges. It needs some five times as many
    iterations as EM, each of which takes longer. Parameters and attributes are those of :class:`PaperClusterer`; λ is
    `fairness`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cceclust.estimators import CCEByPGD
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> CCEByPGD(3, fairness=10, max_iter=100, random_state=0).fit_predict(X).shape
    (500,)
    """

    def _objective(self, fairness: float) -> Objective:
        step = 1 / (self.n_clusters * max(fairness, 1.0))
        return SelfLabeling(PGDSolver(fairness, loss="cce", step_size=step, max_iter=self.max_iter))


class MIGD(PaperClusterer):
    """Mutual information by gradient descent: mean H(σ) + w KL(σ̄ ‖ u), equation 1.

    Parameters and attributes are those of :class:`PaperClusterer`; w is `fairness`.

    References
    ----------
    Bridle, Heading and MacKay, "Unsupervised classifiers, mutual information and phantom targets", NIPS 1991.
    Krause, Perona and Gomes, "Discriminative clustering by regularized information maximization", NIPS 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cceclust.estimators import MIGD
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> MIGD(3, random_state=0).fit(X).predict_proba(X).shape
    (500, 3)
    """

    _fairness = 1.3

    def _objective(self, fairness: float) -> Objective:
        check_non_negative(fairness, "fairness")
        return MutualInformation(fairness, np.full(self.n_clusters, 1 / self.n_clusters))


class SeLa(PaperClusterer):
    """Self-labeling with one-hot pseudo-labels of balanced sizes, found by optimal transport: equation 4.

    Parameters and attributes are those of :class:`PaperClusterer`.

    References
    ----------
    Asano, Rupprecht and Vedaldi, "Self-labelling via simultaneous clustering and representation learning", ICLR 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cceclust.estimators import SeLa
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> SeLa(3, max_iter=50, random_state=0).fit_predict(X).shape
    (500,)
    """

    def _objective(self, fairness: float) -> Objective:
        return SelfLabeling(OptimalTransportSolver(one_hot=True, max_iter=self.max_iter), collision=False)


class MIADM(PaperClusterer):
    """Self-labeling by Shannon's cross-entropy and alternating directions: mean H(y, σ) + λ KL(ȳ ‖ u), equation 5.

    Parameters and attributes are those of :class:`PaperClusterer`; λ is `fairness`.

    References
    ----------
    Jabi, Pedersoli, Mitiche and Ben Ayed, "Deep clustering: On the link between discriminative models and K-means",
    TPAMI 2021.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from cceclust.estimators import MIADM
    >>> X, y = make_blobs(500, centers=3, random_state=0)
    >>> MIADM(3, random_state=0).fit_predict(X).shape
    (500,)
    """

    _fairness = 1.0

    def _objective(self, fairness: float) -> Objective:
        solver = AlternatingDirectionSolver(fairness, max_iter=self.max_iter)
        return SelfLabeling(solver, collision=False)
