"""Steps are as long as the features allow: measured where gradient descent on soft labels does diverge."""

import numpy as np
import pytest

from cceclust.estimators import CCEClassifier
from cceclust.training.rows import in_memory
from cceclust.training.standardization import Standardization
from cceclust.training.step_size import longest_stable_step

STEEP = 30 * np.random.default_rng(0).normal(size=(300, 3))


def test_step_falls_with_the_variance_after_standardisation():
    rows, weights = in_memory(STEEP), np.ones(len(STEEP))
    step = longest_stable_step(rows, 2, Standardization(np.zeros(3), 1.0), weights, seed=0)
    scaled = longest_stable_step(rows, 2, Standardization(np.zeros(3), 10.0), weights, seed=0)
    assert scaled == pytest.approx(100 * step)


def test_features_that_do_not_vary_allow_any_step():
    rows = in_memory(np.ones((5, 2)))
    assert longest_stable_step(rows, 2, Standardization(np.ones(2), 1.0), np.ones(5), seed=0) == np.inf


def test_uncertain_labels_do_not_drive_the_loss_up():
    labels = (STEEP[:, 0] > 0).astype(int)
    classifier = CCEClassifier(loss="ce", label_noise=0.8, standardize=False, random_state=0)
    curve = classifier.fit(STEEP, labels).loss_curve_
    assert curve.max() <= np.log(2) + 1e-6
    assert classifier.score(STEEP, labels) > 0.9
