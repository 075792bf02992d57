"""Clusters with curved borders: when heads curve, and that everything downstream follows them."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cceclust import CCEClusterer, clustering_accuracy
from cceclust.errors import InputError
from cceclust.training import candidates
from cceclust.training.curves import are_curved, find_lift, space_of, standardized
from cceclust.training.heads import HeadStack
from cceclust.training.label_heads import fit_heads_to_labels, widened
from cceclust.training.rows import in_memory
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import measure_spectrum
from cceclust.training.standardization import measure

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
FIT = partial(fit_heads_to_labels, weight_decay=1e-3, learning_rate=0.5, seed=0)


@cache
def bent_digits() -> tuple[Any, Any]:
    """Ten directions of the digits, in which classes wind around each other."""
    X, y = load_digits(return_X_y=True)
    centred = X - X.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return (centred @ axes[:10].T).astype(np.float32), y


@cache
def curved_fit() -> CCEClusterer:
    return CCEClusterer(10, random_state=0).fit(bent_digits()[0])


def space_with(matrix: Any) -> tuple[TrainingSpace, Any]:
    rows, weights = in_memory(np.asarray(matrix, np.float32)), np.ones(len(matrix), np.float32)
    return TrainingSpace.of_rows(rows, measure(rows, weights, standardize=True)), weights


def borders_are_curved(matrix: Any, labels: Any) -> bool:
    space, weights = space_with(matrix)
    lift = find_lift(space, weights, seed=0)
    assert lift is not None
    spectrum = measure_spectrum(space.rows, space.standardization, weights, seed=0)
    return are_curved(lift, space, labels, spectrum, weights, 2, FIT, seed=0)


def test_a_border_counts_as_curved_only_if_it_is() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(2000, 6))
    assert borders_are_curved(rows, (rows[:, 0] ** 2 + rows[:, 1] ** 2 > 1.5).astype(int))
    assert not borders_are_curved(rows, (rows[:, 0] + rows[:, 1] > 0.3).astype(int))


def test_noise_in_the_labels_bends_no_border() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(2000, 6))
    labels = (rows[:, 0] > 0).astype(int)
    flipped = generator.random(2000) < 0.2
    assert not borders_are_curved(rows, np.where(flipped, 1 - labels, labels))


def test_lifted_rows_and_split_heads_give_the_same_logits() -> None:
    generator = np.random.default_rng(0)
    space, weights = space_with(generator.normal(size=(300, 4)) * [3, 1, 1, 0.5] + 7)
    lift = find_lift(space, weights, seed=0)
    assert lift is not None
    every = np.arange(300)
    lifted = lift.lifted(space, every).rows.matrix
    head = generator.normal(size=(3, lifted.shape[1])).astype(np.float32)
    biases = generator.normal(size=3).astype(np.float32)
    straight, added, curved = lift.split(head, biases)
    curves = lift.curves(space, curved)
    expected = lifted @ head.T + biases
    found = standardized(space, every) @ straight.T + added + curves.logits(space.rows.matrix)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    # Centred products of directions of variance 1.
    np.testing.assert_allclose(lifted[:, 4:].mean(axis=0), 0, atol=1e-4)
    assert len(lift.means) == 10


def test_constant_rows_have_no_directions() -> None:
    matrix = np.ones((50, 3), np.float32)
    assert find_lift(space_of(matrix), np.ones(50, np.float32), seed=0) is None


def test_heads_start_as_the_straight_ones() -> None:
    space, weights = space_with(np.random.default_rng(0).normal(size=(300, 4)))
    lift = find_lift(space, weights, seed=0)
    assert lift is not None
    start = HeadStack(1, np.ones((2, 4), np.float32), np.zeros(2, np.float32))
    lifted = lift.lifted(space, np.arange(300))
    labels = np.zeros((1, 300), np.int32)
    fitted = fit_heads_to_labels(start, lifted, labels, weights, weight_decay=0.0, learning_rate=1e-12, seed=0)
    np.testing.assert_allclose(fitted.weights[:, :4], 1, atol=1e-6)
    np.testing.assert_allclose(fitted.weights[:, 4:], 0, atol=1e-6)
    assert start.weights.shape == (2, 4)


def test_bent_clusters_are_found_better_with_curves() -> None:
    X, y = bent_digits()
    straight = CCEClusterer(10, curved=False, random_state=0).fit(X)
    assert straight.curves_ is None
    assert curved_fit().curves_ is not None
    assert clustering_accuracy(y, curved_fit().labels_) > clustering_accuracy(y, straight.labels_) + 0.01
    assert curved_fit().modularity_ > straight.modularity_ + 0.01


def test_curved_heads_predict_what_the_fit_found() -> None:
    X, _ = bent_digits()
    model = curved_fit()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict_proba(X).astype(np.float32), model.probabilities_)
    assert np.isfinite(model.loss_)


def test_curved_heads_do_not_depend_on_threads() -> None:
    X, _ = bent_digits()
    other = CCEClusterer(10, random_state=0, n_jobs=1).fit(X)
    assert other.curves_ is not None
    np.testing.assert_array_equal(other.curves_.weights, curved_fit().curves_.weights)
    np.testing.assert_array_equal(other.coef_, curved_fit().coef_)


def test_scaled_columns_are_folded_into_curves() -> None:
    X, _ = bent_digits()
    units = np.logspace(-3, 3, 10)
    model = CCEClusterer(10, random_state=0, scale="columns", curved=True).fit(X * units)
    assert model.curves_ is not None
    np.testing.assert_array_equal(model.predict(X * units), model.labels_)


def test_curves_can_be_asked_for() -> None:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(4, 8)) * 4
    X = np.concatenate([centre + generator.normal(size=(60, 8)) for centre in centres])
    assert CCEClusterer(4, random_state=0).fit(X).curves_ is None
    forced = CCEClusterer(4, random_state=0, curved=True).fit(X)
    assert forced.chosen_ == "K-means" or forced.curves_ is not None
    with pytest.raises(InputError, match="curved='round'"):
        CCEClusterer(4, curved="round").fit(X)


def test_curved_heads_do_not_go_on_learning() -> None:
    X, _ = bent_digits()
    model = CCEClusterer(10, random_state=0).fit(X)
    with pytest.raises(InputError, match="curved=False"):
        model.partial_fit(X)


@pytest.mark.parametrize("size", [1e20, 3e37])
def test_an_absurd_row_has_a_cluster_all_the_same(size: float) -> None:
    X = np.concatenate([bent_digits()[0], np.full((1, 10), size, np.float32)])
    model = CCEClusterer(10, random_state=0, curved=True).fit(X)
    assert model.curves_ is not None
    assert np.isfinite(model.probabilities_).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_curved_heads_that_miss_their_clusters_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = bent_digits()
    straight = CCEClusterer(10, curved=False, random_state=0).fit(X)

    def missing(lift: Any, space: Any, start: Any, *arguments: Any, **named: Any) -> Any:
        heads = widened(start, space.rows.shape[1] + len(lift.means))
        heads.weights[:] = np.random.default_rng(0).normal(size=heads.weights.shape)
        return heads

    monkeypatch.setattr(candidates, "curve_heads", missing)
    model = CCEClusterer(10, curved=True, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, straight.labels_)
    assert model.curves_ is None
