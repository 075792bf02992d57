"""Classification with few labels, soft labels or noisy ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cceclust.errors import InputError
from cceclust.estimators.given_labels import GivenLabels, read_labels
from cceclust.estimators.softmax_estimator import SoftmaxEstimator
from cceclust.estimators.softmax_method import draw_seed, fit_progress, warn_of
from cceclust.files import Model
from cceclust.pseudo_labels import EMSolver
from cceclust.training.candidates import HeadPlan
from cceclust.training.fit import fit_heads
from cceclust.training.labels import Supervision
from cceclust.training.objectives import Objective, SelfLabeling
from cceclust.training.progress import OnProgress
from cceclust.training.rows import Rows
from cceclust.training.settings import FitSettings
from cceclust.validation import as_relative_weights, check_count, check_positive

__all__ = ["CCEClassifier"]


class CCEClassifier(ClassifierMixin, SoftmaxEstimator):
    """Classify with a linear softmax head that learns from few, soft or noisy labels, and from unlabelled rows.

    Every label is a distribution y over the classes, one-hot if it is certain. The head's softmax σ minimises

        w · mean H₂(y, σ) over labelled rows + the loss of CCEClusterer over all rows,

    where the second term is left out if every row has a label. For a one-hot y, collision cross-entropy H₂(y, σ) = −ln
    Σ_k y_k σ_k is Shannon's, so this is the weakly supervised loss of arXiv:2303.07321 (Table 5); for a uniform y it is
    constant. Labelled rows are added to every batch, so that clusters keep the identity of the labels however few
    labels there are.

    Parameters
    ----------
    loss : {"cce", "ce"}, default="cce"
        The loss of labelled rows: collision cross-entropy or Shannon's. They differ for uncertain labels:
        Shannon's makes the prediction copy the uncertainty.
    label_noise : float or array-like of shape (n_classes, n_classes), default=0.0
        How unreliable hard labels are. A number η replaces a label by η·u + (1 − η)·y, with the uniform
        distribution u: each label was, with probability η, drawn at random (Figure 2 of the paper). A transition matrix
        Q, with Q[l, k] the probability of observing label l where class k is true, replaces label l by the row Q_l;
        then H₂ is the forward correction of Patrini et al. (2017), up to a constant. Classes are in the order of
        `classes_`. Soft labels are mixed in the same way.
    n_extra_clusters : int, default=0
        Number of clusters in addition to the labelled classes, for classes without any labelled row.
    self_labeling : bool or "auto", default="auto"
        Whether all rows also get pseudo-labels, as in :class:`cceclust.CCEClusterer`. "auto" does so if any row has no
        label. False learns from the labelled rows alone.
    label_weight : float, default=1.0
        w: weight of the loss of labelled rows, relative to the self-labeling loss.
    fairness : float, default=10.0
        As in :class:`cceclust.CCEClusterer`; used with self-labeling, as are `prior`, `max_iter`,
        `n_neighbors` and `neighbor_weight`.
    n_init : int, default=2
        Number of restarts from different random weights. Labels make them agree, so few are enough.
    weight_decay : float or "auto", default="auto"
        Weight decay of the head. "auto" is a quarter of the value for clustering without labels.
    learning_rate : float, default=0.5
        Initial step size; smaller if the variance of the features requires shorter steps.
    init : {"auto", "random", "k-means"}, default="auto"
        Where heads start. "auto" and "random" start near zero, so that labels decide which cluster is which; "k-means"
        starts around the centres of K-means, ordered by the classes of the labelled rows in each cluster.
    prior, learning_rate_schedule, batch_size, n_components, max_epochs, tol, standardize, n_jobs, random_state, verbose
        As in :class:`cceclust.CCEClusterer`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes + n_extra_clusters,)
        Labels of the classes, in the order of predicted probabilities. Extra clusters come last: the next whole
        numbers, or "extra 1", "extra 2", … where labels are strings.
    coef_, intercept_, loss_, loss_curve_, losses_, loss_curves_, best_restart_, restart_agreement_, n_agreeing_, \
weight_decay_, n_components_, n_trained_rows_, columns_scaled_, directions_evened_, outlier_score_, n_iter_, \
converged_, problems_, n_features_in_, feature_names_in_
        As in :class:`cceclust.CCEClusterer`.

    References
    ----------
    Zhang and Boykov, "Collision Cross-entropy for Soft Class Labels and Deep Clustering", arXiv:2303.07321.
    Patrini et al., "Making deep neural networks robust to label noise: a loss correction approach", CVPR 2017.

    Examples
    --------
    Fifty labels for 1797 digits:

    >>> import numpy as np
    >>> from cceclust import CCEClassifier
    >>> from cceclust.files import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     X, truth = digits.array(), digits.labels
    >>> y = np.full(len(X), -1)
    >>> y[:50] = truth[:50]
    >>> classifier = CCEClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, truth) > 0.85
    True
    """

    _method = "cce"
    _names_classes = True

    def __init__(
        self,
        *,
        loss: Literal["cce", "ce"] = "cce",
        label_noise: float | ArrayLike = 0.0,
        n_extra_clusters: int = 0,
        self_labeling: bool | Literal["auto"] = "auto",
        label_weight: float = 1.0,
        fairness: float = 10.0,
        prior: ArrayLike | None = None,
        weight_decay: float | Literal["auto"] = "auto",
        learning_rate: float = 0.5,
        learning_rate_schedule: Literal["cosine", "constant"] = "cosine",
        batch_size: int = 250,
        max_iter: int = 20,
        n_neighbors: int | Literal["auto"] = "auto",
        neighbor_weight: float = 1.0,
        init: Literal["auto", "random", "k-means"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        n_init: int = 2,
        max_epochs: int | Literal["auto"] = "auto",
        tol: float = 1e-4,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.label_noise = label_noise
        self.n_extra_clusters = n_extra_clusters
        self.self_labeling = self_labeling
        self.label_weight = label_weight
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

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        neighbors: ArrayLike | Any = None,
        on_progress: OnProgress | None = None,
    ) -> Self:
        """Fit to labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or Rows
            Features. float32 and float64 are used as they are, without a copy. A
            :class:`cceclust.training.rows.FileRows` need not fit into memory.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Hard labels: whole numbers with −1 for unknown, or strings with "" (or −1, None or NaN in an object array)
            for unknown. Labels −1 and 1, and no others, are two classes unless there are extra clusters. Or soft
            labels: a distribution in each row, with a row of NaN for unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        neighbors : array-like of shape (n_samples, k) or sparse matrix of shape (n_samples, n_samples), optional
            Nearest neighbours of each row, as in :meth:`cceclust.CCEClusterer.fit`.
        on_progress : callable, optional
            Called with a :class:`cceclust.training.progress.Progress` from time to time: the phase of the fit, and how
            much of it is done.

        Returns
        -------
        self
        """
        if y is None:
            self._refuse_no_labels(X, reset=True)
        rows = self._as_rows(X, reset=True)
        weights = as_relative_weights(sample_weight, rows.shape[0], rows.dtype)
        given = self._read_labels(y, rows.shape[0])
        self_labeling = self._wants_self_labeling(given)
        supervision, classes = self._supervision(
            given.with_weight_in_every_class(weights), rows, self_labeling=self_labeling
        )
        with fit_progress(on_progress, self.verbose) as report:
            fit = fit_heads(
                rows,
                FitSettings.of(self, len(classes)),
                self._make_objective if self_labeling else None,
                sample_weight=weights,
                seed=draw_seed(self.random_state),
                neighbors=neighbors,
                supervision=supervision,
                on_progress=report,
            )
        self._keep(fit)
        self.classes_ = classes
        warn_of(fit.problems if self_labeling else [])
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train for one pass over a piece of the data, starting where the last call (or `fit`) ended.

        Without a `fit` before, the first call uses the mean and scale of its rows as those of all the data, so it
        should get a few hundred rows, and a label of every class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            As in `fit`. A piece may have no label at all.
        classes : array-like of shape (n_classes,), optional
            In the first call, all classes of the data; by default those in y.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "coef_")
        if y is None:
            self._refuse_no_labels(X, reset=is_first)
        rows = self._as_piece(X, reset=is_first)
        weights = as_relative_weights(sample_weight, rows.shape[0], rows.dtype)
        if not is_first:
            classes = self.classes_[: len(self.classes_) - self.n_extra_clusters]
        given = self._read_labels(y, rows.shape[0], classes)
        self_labeling = self._wants_self_labeling(given)
        names_classes = is_first and classes is None
        given = given.with_weight_in_every_class(weights) if names_classes else given.with_weight(weights)
        supervision, names = self._supervision(given, rows, self_labeling=self_labeling)
        learned = supervision if len(supervision.rows) else None
        if learned is None and not self_labeling:
            raise InputError("no row of this piece has a label and self_labeling=False: there is nothing to learn")
        settings = FitSettings.of(self, len(names))
        pieces = self._pieces_so_far(rows, settings, sample_weight=weights, supervision=learned)
        objective = self._make_objective if self_labeling else None
        best = pieces.train_on(rows, settings, objective, sample_weight=weights, supervision=learned)
        self._keep_piece(pieces, best)
        self.classes_ = names
        return self

    def _make_objective(self, plans: Sequence[HeadPlan]) -> Objective:
        """Return the loss of :class:`cceclust.CCEClusterer`, which needs no labels."""
        solvers = [
            EMSolver(fairness=plan.fairness_or_usual, prior=plan.prior, max_iter=self.max_iter, tol=0.0)
            for plan in plans
        ]
        return SelfLabeling(solvers, companion_weight=self.neighbor_weight)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, how much the second one's logit exceeds the first's.
        """
        return self._from_logits(X, decisions)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._from_logits(X, partial(likeliest_of, self.classes_))

    def _refuse_no_labels(self, X: Any, *, reset: bool) -> None:
        """Raise as scikit-learn does where there are no labels."""
        validate_data(self, X, None, accept_sparse="csr", reset=reset)

    def _take(self, model: Model, path: Path) -> None:
        super()._take(model, path)
        self.classes_ = np.array(model.parameters["classes"])

    def _read_labels(self, y: Any, n_rows: int, classes: ArrayLike | None = None) -> GivenLabels:
        """Check the parameters that concern labels, and the labels."""
        check_count(self.n_extra_clusters, "n_extra_clusters", 0)
        check_positive(self.label_weight, "label_weight")
        if self.loss not in ("cce", "ce"):
            raise InputError(f"loss={self.loss!r}; expected 'cce' or 'ce'")
        if self.self_labeling not in (True, False, "auto"):
            raise InputError(f"self_labeling={self.self_labeling!r}; expected True, False or 'auto'")
        given = read_labels(y, classes=classes, one_class_is_enough=self.n_extra_clusters > 0)
        if given.n_rows != n_rows:
            raise InputError(
                f"labels of {given.n_rows} rows for n_samples={n_rows} rows of features; expected one for each row"
            )
        return given

    def _wants_self_labeling(self, given: GivenLabels) -> bool:
        """Tell whether all rows also get pseudo-labels."""
        return not given.is_complete if self.self_labeling == "auto" else bool(self.self_labeling)

    def _supervision(self, given: GivenLabels, rows: Rows, *, self_labeling: bool) -> tuple[Supervision, NDArray[Any]]:
        """Return the loss of labelled rows, and the names of all classes and clusters."""
        labels = given.with_noise(self.label_noise).with_extra_clusters(self.n_extra_clusters)
        if self.loss == "cce":
            labels = labels.informative()
        supervision = Supervision(
            labels.rows,
            labels.targets.astype(rows.dtype),
            collision=self.loss == "cce",
            weight=self.label_weight if self_labeling else 1.0,
        )
        return supervision, labels.classes


def decisions(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logits, or for two classes how much the second one exceeds the first."""
    return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits


def likeliest_of(classes: NDArray[Any], logits: NDArray[Any]) -> NDArray[Any]:
    """Return the class with the largest logit of each row."""
    return np.asarray(classes[logits.argmax(axis=1)])
