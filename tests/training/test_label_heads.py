"""Heads made from given clusters repeat them."""

import numpy as np
import pytest

from cceclust.training.label_heads import fit_heads_to_labels, heads_around_means
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace
from cceclust.training.spectrum import measure_spectrum
from cceclust.training.standardization import measure


def prepared(n_samples=600, dtype=np.float64):
    generator = np.random.default_rng(0)
    labels = np.arange(n_samples) % 3
    X = (generator.normal(size=(n_samples, 8)) + 4 * np.eye(3, 8)[labels] + 100).astype(dtype)
    rows, weights = ArrayRows(X), np.ones(n_samples, dtype)
    standardization = measure(rows, weights, standardize=True)
    space = TrainingSpace.of_rows(rows, standardization)
    return space, measure_spectrum(rows, standardization, weights, seed=0), weights, labels


def predicted(heads, space):
    standardised = (space.rows.matrix - space.standardization.mean) / space.standardization.scale
    weights, biases = heads.unstacked()
    return np.stack([(standardised @ w.T + b).argmax(axis=1) for w, b in zip(weights, biases, strict=True)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_mean_is_predicted(dtype):
    space, spectrum, weights, labels = prepared(dtype=dtype)
    stack = np.stack([labels, (labels + 1) % 3])
    heads = heads_around_means(space, stack, 3, spectrum, weights)
    X = space.rows.matrix.astype(np.float64)
    for given, found in zip(stack, predicted(heads, space), strict=True):
        means = np.stack([X[given == k].mean(axis=0) for k in range(3)])
        np.testing.assert_array_equal(found, ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1))


def test_an_empty_cluster_is_no_obstacle():
    space, spectrum, weights, labels = prepared()
    heads = heads_around_means(space, labels[None], 5, spectrum, weights)
    assert np.isfinite(heads.weights).all()
    assert np.isfinite(heads.biases).all()


def test_training_repeats_labels_that_means_do_not():
    space, spectrum, weights, _ = prepared()
    # A border that is nowhere near the middle between two means.
    column = space.rows.matrix[:, 5]
    labels = (column > np.quantile(column, 0.9)).astype(np.int32)[None]
    heads = heads_around_means(space, labels, 2, spectrum, weights)
    before = np.mean(predicted(heads, space) == labels)
    heads = fit_heads_to_labels(heads, space, labels, weights, weight_decay=0.001, learning_rate=0.5, seed=0)
    assert np.mean(predicted(heads, space) == labels) > max(before, 0.97)


def test_each_head_learns_its_own_labels_and_rows_without_weight_teach_none():
    space, spectrum, weights, labels = prepared()
    wrong = labels.copy()
    wrong[::2] = 0
    taught = weights.copy()
    taught[::2] = 0
    stack = np.stack([labels, wrong])
    heads = heads_around_means(space, stack, 3, spectrum, taught)
    heads = fit_heads_to_labels(heads, space, stack, taught, weight_decay=0.01, learning_rate=0.5, seed=0)
    one, other = predicted(heads, space)
    np.testing.assert_array_equal(one, other)
    assert np.mean(one == labels) > 0.95
