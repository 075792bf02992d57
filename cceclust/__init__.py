"""Clustering of precomputed features with collision cross-entropy (arXiv:2303.07321)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cceclust.version import __version__

if TYPE_CHECKING:
    from cceclust.estimators import CCEClassifier, CCEClusterer
    from cceclust.fit.modularity import neighbor_modularity
    from cceclust.fit.neighbors import nearest_neighbors
    from cceclust.objective import collision_cross_entropy
    from cceclust.pseudo_labels import estimate_pseudo_labels
    from cceclust.scoring import clustering_accuracy, match_clusters, score_clusters

# Public names and the modules that hold them. They are imported when first used, so that `import cceclust` and
# `cceclust --help` need not wait for numba, scikit-learn or torch.
HOMES = {
    "CCEClassifier": "cceclust.estimators",
    "CCEClusterer": "cceclust.estimators",
    "clustering_accuracy": "cceclust.scoring",
    "collision_cross_entropy": "cceclust.objective",
    "estimate_pseudo_labels": "cceclust.pseudo_labels",
    "match_clusters": "cceclust.scoring",
    "nearest_neighbors": "cceclust.fit.neighbors",
    "neighbor_modularity": "cceclust.fit.modularity",
    "score_clusters": "cceclust.scoring",
}

__all__ = [
    "CCEClassifier",
    "CCEClusterer",
    "__version__",
    "clustering_accuracy",
    "collision_cross_entropy",
    "estimate_pseudo_labels",
    "match_clusters",
    "nearest_neighbors",
    "neighbor_modularity",
    "score_clusters",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'cceclust' has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
