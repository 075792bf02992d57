"""Fits to odd numbers: huge, tiny, constant, repeated, far from zero. What is fitted is finite, or refused in words."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
from cases import campaign

from cceclust import CCEClusterer
from cceclust.errors import CceclustError

ATTRIBUTES = ("coef_", "intercept_", "cluster_centers_", "probabilities_", "outlier_score_")


def odd_features(generator: random.Random) -> np.ndarray:
    """Return features with something extreme about them."""
    random_numbers = np.random.default_rng(generator.randrange(2**32))
    n_rows, n_columns = generator.choice([6, 12, 40]), generator.choice([1, 2, 7, 30])
    features = random_numbers.normal(size=(n_rows, n_columns))
    features *= 10.0 ** generator.choice([0, 0, -3, 8, -20, 30, -38, 37])
    features += 10.0 ** generator.choice([-50, -50, 0, 4, 20, 37]) * generator.choice([-1, 1])
    if generator.random() < 0.3:
        features[:, generator.randrange(n_columns)] *= 10.0 ** generator.choice([-30, 12])
    if generator.random() < 0.2:
        features[:] = features[generator.randrange(n_rows)]
    with np.errstate(over="ignore"):
        return features.astype(generator.choice([np.float32, np.float32, np.float64]))


def case(generator: random.Random, folder: Path) -> str:
    """Fit, and look at every fitted number."""
    features = odd_features(generator)
    estimator = CCEClusterer(generator.choice([2, 3]), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(features)
        except CceclustError:
            return "ok"
        for name in ATTRIBUTES:
            if not np.isfinite(np.asarray(getattr(estimator, name, 0.0), np.float64)).all():
                return f"not finite: {name}"
        return "ok" if np.isfinite(estimator.predict_proba(features)).all() else "not finite: probabilities"


if __name__ == "__main__":
    # The first fit compiles.
    campaign(case, __doc__, hang=300)
