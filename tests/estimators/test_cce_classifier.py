"""The classifier: few labels go far and keep their identity, uncertain ones count as far as they are certain."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cceclust.errors import InputError
from cceclust.estimators import CCEClassifier
from cceclust.io import open_features

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

DIGITS = Path(__file__).parents[2] / "sample_data" / "digits.h5"


def blobs(n_rows: int = 300, distance: float = 5.0, seed: int = 0) -> Any:
    """Return rows around three corners, and which corner."""
    generator = np.random.default_rng(seed)
    truth = generator.permutation(np.arange(n_rows) % 3)
    return distance * np.eye(3, 8)[truth] + generator.normal(size=(n_rows, 8)), truth


def first_labels(truth: Any, n_each: int = 1) -> Any:
    """Keep the first labels of each class."""
    y = np.full(len(truth), -1)
    for label in np.unique(truth):
        y[np.flatnonzero(truth == label)[:n_each]] = label
    return y


def classifier(**parameters: Any) -> CCEClassifier:
    return CCEClassifier(**{"n_jobs": 1, "random_state": 0, **parameters})


class TestFewLabels:
    @pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
    def test_one_label_a_class_names_all_rows(self, order: list[int]) -> None:
        X, truth = blobs()
        permuted = np.array(order)[truth]
        model = classifier().fit(X, first_labels(permuted))
        assert model.score(X, permuted) > 0.99
        assert model.classes_.tolist() == [0, 1, 2]

    def test_unlabelled_rows_improve_on_the_labelled_ones_alone(self) -> None:
        with open_features(DIGITS) as digits:
            X, truth = digits.array(), digits.labels
        y = first_labels(truth, 2)
        alone = classifier(self_labeling=False).fit(X, y).score(X, truth)
        assert classifier(n_jobs=None).fit(X, y).score(X, truth) > max(alone + 0.15, 0.92)

    def test_extra_clusters_find_the_classes_that_nobody_labelled(self) -> None:
        X, truth = blobs()
        y = first_labels(truth)
        y[y == 2] = -1
        model = classifier(n_extra_clusters=1).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.score(X, truth) > 0.99

    @pytest.mark.parametrize("n_each", [5, 60, 100])
    def test_labelled_rows_come_first_into_a_sample_and_keep_their_labels(self, n_each: int) -> None:
        X, truth = blobs()
        model = classifier(max_rows=100).fit(X, first_labels(truth, n_each))
        assert model.n_trained_rows_ == 100
        assert model.score(X, truth) > 0.99

    def test_weights_count_as_repetitions(self) -> None:
        X, truth = blobs(90)
        counts = 1 + np.arange(90) % 3
        rows = np.repeat(np.arange(90), counts)
        weighted = classifier().fit(X, truth, sample_weight=counts)
        # Not to the bit: a repeated row is its own neighbour, which moves the axes a little.
        repeated = classifier().fit(X[rows], truth[rows])
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=0.05)

    def test_the_number_of_threads_changes_no_bit(self) -> None:
        X, truth = blobs()
        y = first_labels(truth)
        one, two = (classifier(n_jobs=jobs, n_extra_clusters=1).fit(X, y) for jobs in (1, 2))
        np.testing.assert_array_equal(one.coef_, two.coef_)

    def test_only_names_are_taken(self) -> None:
        assert {each.kind.name for each in inspect.signature(CCEClassifier).parameters.values()} == {"KEYWORD_ONLY"}


class TestAllLabels:
    @pytest.mark.parametrize(("curved", "least"), [(False, 0.95), (True, 0.9)])
    def test_new_rows_are_classified(self, curved: bool, least: float) -> None:
        X, truth = blobs(600, distance=3.0)
        assert classifier(curved=curved).fit(X[:300], truth[:300]).score(X[300:], truth[300:]) > least

    def test_both_losses_agree_on_certain_labels(self) -> None:
        X, truth = blobs(90)
        cce, ce = (classifier(loss=loss).fit(X, truth) for loss in ("cce", "ce"))
        np.testing.assert_allclose(cce.predict_proba(X), ce.predict_proba(X), atol=1e-6)

    def test_two_classes_have_one_decision(self) -> None:
        X, truth = blobs(90)
        model = classifier().fit(X, truth == 1)
        decision = model.decision_function(X)
        assert decision.shape == (90,)
        np.testing.assert_array_equal(decision > 0, model.predict(X))


class TestUncertainLabels:
    def test_rows_of_uniform_labels_teach_collision_cross_entropy_nothing(self) -> None:
        X, truth = blobs(120, distance=2.0)
        soft = np.full((120, 3), 0.05) + 0.85 * np.eye(3)[truth]
        moved = soft.copy()
        # Of uniform labels, only where the rows are has an effect, by way of the axes; so compare with no labels there.
        moved[60:] = np.nan
        soft[60:] = 1 / 3
        learned = [
            [classifier(loss=loss, self_labeling=False).fit(X, y).predict_proba(X) for y in (soft, moved)]
            for loss in ("cce", "ce")
        ]
        np.testing.assert_array_equal(*learned[0])
        assert np.abs(learned[1][0] - learned[1][1]).max() > 0.05

    def test_noise_is_the_soft_labels_it_stands_for(self) -> None:
        X, truth = blobs(90)
        expected = classifier().fit(X, 0.3 / 3 + 0.7 * np.eye(3)[truth]).coef_
        for noise in (0.3, 0.1 + 0.7 * np.eye(3)):
            np.testing.assert_allclose(classifier(label_noise=noise).fit(X, truth).coef_, expected, rtol=1e-6)
        none = classifier(label_noise=np.eye(3)).fit(X, truth).coef_
        np.testing.assert_array_equal(none, classifier().fit(X, truth).coef_)

    def test_noisy_labels_are_seen_through_better_by_collision(self) -> None:
        X, truth = blobs(600, distance=2.5)
        generator = np.random.default_rng(0)
        noisy = np.where(generator.random(600) < 0.7, generator.integers(0, 3, 600), truth)
        test, test_truth = blobs(600, distance=2.5, seed=1)
        scores = {
            loss: classifier(loss=loss, label_noise=0.7, curved=False).fit(X, noisy).score(test, test_truth)
            for loss in ("cce", "ce")
        }
        assert scores["cce"] >= scores["ce"]
        assert scores["cce"] > 0.8

    def test_soft_labels_with_gaps_turn_self_labeling_on(self) -> None:
        X, truth = blobs()
        soft = np.full((300, 3), np.nan)
        labelled = first_labels(truth) >= 0
        soft[labelled] = 0.05 + 0.85 * np.eye(3)[truth[labelled]]
        assert classifier().fit(X, soft).score(X, truth) > 0.99


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({}, np.full(6, -1), "no row has a label; cluster without labels"),
        ({}, np.full((6, 2), 0.5), "every soft label is uniform"),
        ({}, np.full((6, 2), 0.6), r"row 0 sums to 1.2"),
        ({}, np.tile([0.5, 0.5, 0.0], (6, 1)), "class 2 has no row"),
        ({}, [0, 1, 0], r"labels of 3 rows for n_samples=6 rows"),
        ({"loss": "mse"}, [0, 1] * 3, "loss='mse'; expected 'cce' or 'ce'"),
        ({"self_labeling": "yes"}, [0, 1] * 3, "self_labeling='yes'; expected True, False or 'auto'"),
        ({"n_extra_clusters": -1}, [0, 1] * 3, "n_extra_clusters=-1; expected a whole number of at least 0"),
        ({"label_weight": 0.0}, [0, 1] * 3, "label_weight=0.0; expected a number above 0"),
        ({"prior": [0.5, 0.3, 0.2]}, [0, 1] * 3, "prior has 3 entries, but there are 2 clusters"),
        ({"prior": "uniform"}, [0, 1] * 3, "prior='uniform'; expected numbers"),
        ({"n_extra_clusters": 9}, [0, 1, -1, -1, -1, -1], "n_samples=6 should be >= n_clusters=11"),
    ],
)
def test_what_cannot_be_learnt_is_refused(parameters: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classifier(**parameters).fit(np.random.default_rng(0).normal(size=(6, 2)), y)
