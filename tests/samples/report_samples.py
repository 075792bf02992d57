"""A clustering with everything a report can show, and text that would break a careless page."""

from __future__ import annotations

from typing import Any

import numpy as np

from cceclust.io import Clusters

__all__ = ["HOSTILE", "make_clustering"]

HOSTILE = "<script>document.title='broken'</script>"


def make_clustering(n_rows: int, n_clusters: int, **fields: Any) -> Clusters:
    """Return a clustering of random points whose classes are known but not always hit."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, n_clusters, n_rows)
    logits = 4 * np.eye(n_clusters)[truth] + generator.normal(0, 1.5, (n_rows, n_clusters))
    probabilities = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).astype(np.float32)
    known: dict[str, Any] = {
        "true_labels": truth,
        "levels": np.array([[2, 0.3], [4, 0.8], [5, 0.9], [5, 0.7], [8, 0.5]]),
        "parameters": {"n_clusters": n_clusters, "fairness": 10.0},
        "diagnostics": {
            "number_of_clusters": {"chosen": 5, "low": 4, "high": 5, "is_weak": False, "at_edge": False},
            "candidates": {"graph": 0.812, "K-means": 0.7},
            "reason": "its clusters keep neighbours together best",
            "warnings": [],
        },
    }
    return Clusters(probabilities.argmax(axis=1), probabilities, **{**known, **fields})
