"""Classification with few labels, soft labels or noisy ones."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cceclust.errors import InputError
from cceclust.estimators.given_labels import GivenLabels as NamedLabels
from cceclust.estimators.given_labels import read_labels
from cceclust.estimators.softmax_estimator import SoftmaxEstimator, settings_of
from cceclust.fit.heads import GivenLabels
from cceclust.fit.pipeline import Fit, fit_source
from cceclust.fit.progress import OnProgress
from cceclust.fit.source import Source
from cceclust.io import Model
from cceclust.validation import as_relative_weights, check_count, check_positive

__all__ = ["CCEClassifier", "fit_labelled"]


class CCEClassifier(ClassifierMixin, SoftmaxEstimator):
    """Classify with a softmax head that learns from few, soft or noisy labels, and from unlabelled rows.

    Every label is a distribution y over the classes, one-hot if it is certain. The head's softmax σ minimises

        w · mean H₂(y, σ) over labelled rows + the loss of CCEClusterer over all rows,

    where the second term is left out if every row has a label that is certain. For a one-hot y, collision cross-entropy
    H₂(y, σ) = −ln Σ_k y_k σ_k is Shannon's, so this is the weakly supervised loss of arXiv:2303.07321 (Table 5); for a
    uniform y it is constant.

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
        label, or an uncertain one. False learns from the labels alone.
    label_weight : float, default=0.5
        w: weight of the loss of labelled rows, relative to the self-labeling loss.
    fairness, prior, scale, curved, n_components, max_rows, n_jobs, random_state, verbose
        As in :class:`cceclust.CCEClusterer`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes + n_extra_clusters,)
        Labels of the classes, in the order of predicted probabilities. Extra clusters come last: the next whole
        numbers, or "extra 1", "extra 2", … where labels are strings.
    coef_, intercept_, curves_, n_trained_rows_, columns_scaled_, outlier_score_, problems_, n_features_in_, \
feature_names_in_
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
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     X, truth = digits.array(), digits.labels
    >>> y = np.full(len(X), -1)
    >>> y[:50] = truth[:50]
    >>> classifier = CCEClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, truth) > 0.9
    True
    """

    _names_classes = True

    def __init__(
        self,
        *,
        loss: Literal["cce", "ce"] = "cce",
        label_noise: float | ArrayLike = 0.0,
        n_extra_clusters: int = 0,
        self_labeling: bool | Literal["auto"] = "auto",
        label_weight: float = 0.5,
        fairness: float | Literal["auto"] = "auto",
        prior: ArrayLike | Literal["equal"] | None = None,
        scale: Literal["auto", "overall", "columns"] = "auto",
        curved: bool = True,
        n_components: int = 100,
        max_rows: int = 100_000,
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
        self.scale = scale
        self.curved = curved
        self.n_components = n_components
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, on_progress: OnProgress | None = None
    ) -> Self:
        """Fit to labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features), or Source
            Features. float32 and float64 are used as they are, without a copy.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Hard labels: whole numbers with −1 for unknown, or strings with "" (or −1, None or NaN in an object array)
            for unknown. Labels −1 and 1, and no others, are two classes unless there are extra clusters. Or soft
            labels: a distribution in each row, with a row of NaN for unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        on_progress : callable, optional
            Called with a :class:`cceclust.fit.progress.Progress` from time to time.

        Returns
        -------
        self
        """
        if y is None:
            # Raises as scikit-learn does where there are no labels.
            validate_data(self, X, None, accept_sparse="csr")
        self._check_parameters()
        source = self._as_source(X, reset=True)
        n_samples = source.shape[0]
        weights = as_relative_weights(sample_weight, n_samples, np.float64)
        labels = read_labels(y, one_class_is_enough=self.n_extra_clusters > 0)
        if labels.n_rows != n_samples:
            raise InputError(
                f"labels of {labels.n_rows} rows for n_samples={n_samples} rows of features; expected one for each row"
            )
        with self._reporting(on_progress) as report:
            self.classes_, fit = fit_labelled(self, source, labels, weights, report)
        self._prediction = fit.prediction
        self._keep(fit)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the logits, (n_samples, n_classes); of two classes, how much the second exceeds the first."""
        return self._from_logits(X, decisions)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,), or a lazy Dask array
        """
        check_is_fitted(self)
        return self._from_logits(X, partial(likeliest_of, self.classes_))

    def _take(self, model: Model) -> None:
        self.classes_ = np.array(model.parameters["classes"])

    def _check_parameters(self) -> None:
        """Refuse values that are invalid for any data."""
        self._check_common_parameters()
        check_count(self.n_extra_clusters, "n_extra_clusters", 0)
        check_positive(self.label_weight, "label_weight")
        if self.loss not in ("cce", "ce"):
            raise InputError(f"loss={self.loss!r}; expected 'cce' or 'ce'")
        if self.self_labeling not in (True, False, "auto"):
            raise InputError(f"self_labeling={self.self_labeling!r}; expected True, False or 'auto'")


def fit_labelled(
    classifier: CCEClassifier, source: Source, labels: NamedLabels, weights: NDArray[Any], on_progress: OnProgress
) -> tuple[NDArray[Any], Fit]:
    """Fit to rows of which some have labels, as a classifier says; also return the names of its classes."""
    classifier._check_parameters()
    is_complete = labels.is_complete
    labels = labels.with_weight_in_every_class(weights).with_noise(classifier.label_noise)
    self_labeling = bool(classifier.self_labeling)
    if classifier.self_labeling == "auto":
        self_labeling = not (is_complete and labels.is_certain)
    labels = labels.with_extra_clusters(classifier.n_extra_clusters)
    is_collision = classifier.loss == "cce"
    if is_collision:
        labels = labels.informative()
    given = GivenLabels(labels.rows, labels.targets, is_collision, classifier.label_weight if self_labeling else 1.0)
    fit = fit_source(
        source,
        settings_of(classifier, len(labels.classes)),
        sample_weight=weights,
        given=given,
        self_labeling=self_labeling,
        on_progress=on_progress,
    )
    return labels.classes, fit


def decisions(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logits, or for two classes how much the second one exceeds the first."""
    return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits


def likeliest_of(classes: NDArray[Any], logits: NDArray[Any]) -> NDArray[Any]:
    """Return the class with the largest logit of each row."""
    return np.asarray(classes[logits.argmax(axis=1)])
