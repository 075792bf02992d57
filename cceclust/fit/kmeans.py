"""K-means on rows as they are, to compare with: its centres become a linear head."""

from __future__ import annotations

import numpy as np

from cceclust.errors import InputError
from cceclust.fit.diagnosis import find_problems
from cceclust.fit.head import Head
from cceclust.fit.pipeline import Fit
from cceclust.fit.predict import predict_source
from cceclust.fit.progress import OnProgress, Progress, silent
from cceclust.fit.sample import choose_rows, refuse_what_is_not_finite
from cceclust.fit.source import Source
from cceclust.fit.starts import centroid_head

__all__ = ["fit_kmeans"]


def fit_kmeans(
    source: Source, n_clusters: int, *, max_rows: int = 100_000, seed: int = 0, on_progress: OnProgress = silent
) -> Fit:
    """Run scikit-learn's K-means on the rows, or on a random sample of very many, and predict all of them."""
    n_samples = source.shape[0]
    if n_clusters > n_samples:
        raise InputError(f"n_samples={n_samples} should be >= n_clusters={n_clusters}")
    # It takes a second to load.
    from sklearn.cluster import KMeans

    on_progress(Progress("Running K-means"))
    weights = np.ones(n_samples)
    which = choose_rows(weights, np.empty(0, np.intp), max_rows, np.random.default_rng(seed))
    rows = source.take(which)
    refuse_what_is_not_finite(rows, which)
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed).fit(rows)
    centres, inertia = kmeans.cluster_centers_, kmeans.inertia_ / len(which)
    # Around their middle, so that features that are all far from 0 lose no digits.
    middle = centres.mean(axis=0)
    coef, intercept = centroid_head(centres - middle, inertia)
    head = Head(coef.astype(source.dtype), (intercept - coef @ middle).astype(source.dtype))
    prediction = predict_source(head, source, sample_weight=weights, on_progress=on_progress)
    problems = find_problems(prediction.sizes(), prediction.mean_confidence())
    return Fit(head, prediction, None, None, None, len(which), False, problems)
