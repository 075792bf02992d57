"""Many clusters: both methods are scored on the same rows, and the ratio is this tool's time by K-means'."""

from __future__ import annotations

import itertools

import many_clusters
import numpy as np
import pytest


def test_ratio_and_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.chain.from_iterable((0.0, seconds) for seconds in (2.0, 6.0, 1.0, 5.0, 1.0, 4.0))
    monkeypatch.setattr(many_clusters.time, "process_time", lambda: next(ticks))

    class OneCluster:
        def __init__(self, *_: object, **__: object) -> None: ...

        def fit_predict(self, X: np.ndarray) -> np.ndarray:
            return np.zeros(len(X), int)

    monkeypatch.setattr(many_clusters, "CCEClusterer", OneCluster)
    ratio, own, plain = many_clusters.compare(300, 3, 0.1, n_rounds=3)
    assert ratio == 4.0
    assert own == 0.0
    assert plain > 0.5
