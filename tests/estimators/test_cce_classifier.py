"""The classifier: few labels go far and keep their identity, uncertain ones count as far as they are certain."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from cceclust.errors import InputError
from cceclust.estimators import CCEClassifier
from cceclust.io import open_features
from cceclust.training.rows import FileRows

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits.h5"
NAMES = np.array(["ant", "bee", "cow"])


def blobs(n_rows: int = 300, distance: float = 4.0, seed: int = 0):
    """Return rows around three corners, and which corner."""
    generator = np.random.default_rng(seed)
    truth = generator.permutation(np.arange(n_rows) % 3)
    return distance * np.eye(3, 8)[truth] + generator.normal(size=(n_rows, 8)), truth


def first_labels(truth, n_each: int = 1):
    """Keep the first labels of each class."""
    y = np.full(len(truth), -1)
    for label in np.unique(truth):
        y[np.flatnonzero(truth == label)[:n_each]] = label
    return y


def fast(**parameters):
    return CCEClassifier(**{"max_epochs": 60, "n_init": 1, "n_jobs": 1, "random_state": 0, **parameters})


class TestFewLabels:
    def test_one_label_a_class_names_all_rows(self):
        X, truth = blobs()
        classifier = fast().fit(X, first_labels(truth))
        assert classifier.score(X, truth) > 0.97
        assert classifier.classes_.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
    def test_clusters_follow_the_labels_however_they_are_permuted(self, order):
        X, truth = blobs()
        permuted = np.array(order)[truth]
        assert fast().fit(X, first_labels(permuted)).score(X, permuted) > 0.97

    def test_unlabelled_rows_improve_on_the_labelled_ones_alone(self):
        with open_features(DIGITS) as digits:
            X, truth = digits.array(), digits.labels
        y = first_labels(truth, 2)
        alone = fast(self_labeling=False).fit(X, y).score(X, truth)
        assert fast().fit(X, y).score(X, truth) > alone + 0.05

    def test_strings_with_gaps(self):
        X, truth = blobs()
        codes = first_labels(truth)
        y = np.where(codes < 0, "", NAMES[codes])
        classifier = fast().fit(X, y)
        assert classifier.classes_.tolist() == NAMES.tolist()
        assert (classifier.predict(X) == NAMES[truth]).mean() > 0.97
        assert classifier.predict_proba(X).shape == (len(X), 3)

    def test_an_extra_cluster_finds_the_class_that_nobody_labelled(self):
        X, truth = blobs()
        y = first_labels(truth)
        y[y == 2] = -1
        classifier = fast(n_extra_clusters=1, n_init=4).fit(X, y)
        assert classifier.classes_.tolist() == [0, 1, 2]
        assert classifier.score(X, truth) > 0.97

    def test_weight_repeats_a_row(self):
        X, truth = blobs(60)
        y = np.where(np.arange(60) < 20, truth, -1)
        weights = np.ones(60)
        weights[:5] = 3
        repeated = np.repeat(np.arange(60), weights.astype(int))
        weighted = fast(n_neighbors=0).fit(X, y, sample_weight=weights)
        longer = fast(n_neighbors=0).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(weighted.coef_, longer.coef_, atol=1e-7)

    def test_sparse_rows_learn_the_same(self):
        X, truth = blobs(120)
        y = first_labels(truth)
        dense, thin = (fast(n_neighbors=0).fit(rows, y) for rows in (X, sparse.csr_matrix(X)))
        np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-6)

    def test_result_does_not_depend_on_threads(self):
        X, truth = blobs()
        y = first_labels(truth)
        one, two = (fast(n_init=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        np.testing.assert_array_equal(one.coef_, two.coef_)

    def test_given_neighbours_share_pseudo_labels(self):
        X, truth = blobs(90)
        y = first_labels(truth)
        graphs = [np.array([np.flatnonzero(truth == (label + step) % 3)[:5] for label in truth]) for step in (0, 1)]
        right, misleading = (
            fast().fit(X, y, neighbors=graph).predict_proba(X)[np.arange(90), truth].mean() for graph in graphs
        )
        assert right > 0.9 > misleading

    def test_streamed_rows_learn_as_those_in_memory(self, tmp_path):
        X, truth = blobs(2100)
        y = first_labels(truth)
        np.save(tmp_path / "features.npy", X)
        with open_features(tmp_path / "features.npy") as file:
            classifier = fast(max_epochs=10).fit(FileRows(file, 1000 * 8 * 8), y)
        assert (classifier.predict(X) == truth).mean() > 0.97

    def test_pieces_add_up(self):
        X, truth = blobs(600)
        y = np.where(np.arange(600) % 10 == 0, truth, -1)
        classifier = fast()
        for _ in range(10):
            for part in np.split(np.arange(600), 3):
                classifier.partial_fit(X[part], y[part], classes=[0, 1, 2])
        assert classifier.score(X, truth) > 0.95
        before = classifier.coef_.copy()
        classifier.partial_fit(X[:100], np.full(100, -1))
        # Labels without weight are as good as none.
        classifier.partial_fit(X[:100], y[:100], sample_weight=(y[:100] < 0).astype(float))
        assert np.isfinite(classifier.coef_).all()
        assert not np.array_equal(classifier.coef_, before)

    def test_survives_pickling(self):
        X, truth = blobs(60)
        classifier = fast().fit(X, first_labels(truth))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict(X), classifier.predict(X))


class TestAllLabels:
    def test_certain_labels_give_logistic_regression(self):
        X, truth = blobs(distance=2.0)
        ours = CCEClassifier(weight_decay=0.1, standardize=False, max_epochs=2000, tol=0, random_state=0)
        ours.fit(X, truth)
        # scikit-learn sums the loss over rows and halves 1/C's share of the squared weights, as we do.
        theirs = LogisticRegression(C=1 / (0.1 * len(X)), tol=1e-8).fit(X, truth)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.01)

    def test_both_losses_agree_on_certain_labels(self):
        X, truth = blobs(90)
        np.testing.assert_allclose(
            fast(loss="cce").fit(X, truth).coef_, fast(loss="ce").fit(X, truth).coef_, atol=1e-10
        )

    def test_self_labeling_can_be_asked_for(self):
        X, truth = blobs(90)
        assert not np.array_equal(fast(self_labeling=True).fit(X, truth).coef_, fast().fit(X, truth).coef_)

    def test_two_classes_have_one_decision(self):
        X, truth = blobs(90)
        classifier = fast().fit(X, truth == 1)
        decision = classifier.decision_function(X)
        assert decision.shape == (90,)
        np.testing.assert_array_equal(decision > 0, classifier.predict(X))


class TestUncertainLabels:
    def test_rows_of_uniform_labels_teach_nothing(self):
        X, truth = blobs(120)
        soft = np.full((120, 3), 0.05) + 0.85 * np.eye(3)[truth]
        soft[60:] = 1 / 3
        learned = {
            (loss, n_rows): fast(loss=loss, standardize=False, weight_decay=0.05).fit(X[:n_rows], soft[:n_rows]).coef_
            for loss in ("cce", "ce")
            for n_rows in (60, 120)
        }
        np.testing.assert_array_equal(learned["cce", 60], learned["cce", 120])
        assert not np.allclose(learned["ce", 60], learned["ce", 120], atol=0.01)

    def test_no_noise_is_hard_labels(self):
        X, truth = blobs(90)
        y = first_labels(truth)
        np.testing.assert_array_equal(fast(label_noise=0.0).fit(X, y).coef_, fast().fit(X, y).coef_)
        np.testing.assert_array_equal(fast(label_noise=np.eye(3)).fit(X, truth).coef_, fast().fit(X, truth).coef_)

    def test_noise_is_the_soft_labels_it_stands_for(self):
        X, truth = blobs(90)
        soft = 0.3 / 3 + 0.7 * np.eye(3)[truth]
        by_noise, by_matrix = fast(label_noise=0.3), fast(label_noise=0.1 + 0.7 * np.eye(3))
        expected = fast().fit(X, soft).coef_
        np.testing.assert_allclose(by_noise.fit(X, truth).coef_, expected, atol=1e-12)
        np.testing.assert_allclose(by_matrix.fit(X, truth).coef_, expected, atol=1e-12)

    def test_a_transition_matrix_is_forward_correction(self):
        """The loss is −ln Σ_k Q_lk σ_k up to a constant a label: here is plain gradient descent on that."""
        X, truth = blobs(90)
        matrix = np.array([[0.8, 0.3, 0.0], [0.2, 0.6, 0.1], [0.0, 0.1, 0.9]])
        ours = fast(
            label_noise=matrix,
            standardize=False,
            weight_decay=0.1,
            learning_rate=0.05,
            learning_rate_schedule="constant",
            tol=0,
        ).fit(X, truth)
        weights, biases = np.zeros((3, 8)), np.zeros(3)
        for _ in range(60):
            logits = X @ weights.T + biases
            sigma = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            observed = (sigma @ matrix.T)[np.arange(90), truth]
            slope = sigma - sigma * matrix[truth] / observed[:, None]
            weights -= 0.05 * (slope.T @ X / 90 + 0.1 * weights)
            biases -= 0.05 * slope.mean(axis=0)
        np.testing.assert_allclose(ours.coef_, weights, atol=1e-10)
        np.testing.assert_allclose(ours.intercept_, biases, atol=1e-10)

    def test_noisy_labels_are_seen_through_better_by_collision(self):
        X, truth = blobs(600, distance=2.5)
        generator = np.random.default_rng(0)
        noisy = np.where(generator.random(600) < 0.7, generator.integers(0, 3, 600), truth)
        test, test_truth = blobs(600, distance=2.5, seed=1)
        scores = {
            loss: fast(loss=loss, label_noise=0.7, weight_decay=0.01).fit(X, noisy).score(test, test_truth)
            for loss in ("cce", "ce")
        }
        assert scores["cce"] > scores["ce"]

    def test_soft_labels_with_gaps_turn_self_labeling_on(self):
        X, truth = blobs()
        soft = np.full((300, 3), np.nan)
        labelled = first_labels(truth) >= 0
        soft[labelled] = 0.05 + 0.85 * np.eye(3)[truth[labelled]]
        assert fast().fit(X, soft).score(X, truth) > 0.97


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "y", "message"),
        [
            ({}, np.full(6, -1), "no row has a label; use CCEClusterer"),
            ({}, np.full((6, 2), 0.5), "every soft label is uniform"),
            ({}, np.full((6, 2), 0.6), r"row 0 sums to 1.2"),
            ({}, np.tile([0.5, 0.5, 0.0], (6, 1)), "class 2 has no row"),
            ({}, [0, 1, 0], r"labels of 3 rows for n_samples=6 rows"),
            ({"loss": "mse"}, [0, 1] * 3, "loss='mse'; expected 'cce' or 'ce'"),
            ({"self_labeling": "yes"}, [0, 1] * 3, "self_labeling='yes'; expected True, False or 'auto'"),
            ({"n_extra_clusters": -1}, [0, 1] * 3, "n_extra_clusters=-1; expected a whole number of at least 0"),
            ({"label_weight": 0.0}, [0, 1] * 3, "label_weight=0.0; expected a number above 0"),
            ({"n_extra_clusters": 9}, [0, 1, -1, -1, -1, -1], "n_samples=6 should be >= n_clusters=11"),
        ],
    )
    def test_is_refused(self, parameters, y, message):
        with pytest.raises(InputError, match=message):
            fast(**parameters).fit(np.random.default_rng(0).normal(size=(6, 2)), y)

    def test_a_later_piece_cannot_bring_new_classes(self):
        X, truth = blobs(90)
        classifier = fast().partial_fit(X, truth)
        with pytest.raises(InputError, match="labels contain 3, which is none of the 3 classes"):
            classifier.partial_fit(X, truth + 1)

    def test_a_piece_without_labels_needs_self_labeling(self):
        X, truth = blobs(90)
        classifier = fast(self_labeling=False).partial_fit(X, truth)
        with pytest.raises(InputError, match="no row of this piece has a label"):
            classifier.partial_fit(X, np.full(90, -1))
