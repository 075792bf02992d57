"""scikit-learn-style estimators: CCEClusterer, CCEClassifier and the paper's baselines."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cceclust.estimators.baselines import MIADM, MIGD, CCEByPGD, KMeans, SeLa
    from cceclust.estimators.cce_classifier import CCEClassifier
    from cceclust.estimators.cce_clusterer import CCEClusterer

__all__ = ["MIADM", "MIGD", "CCEByPGD", "CCEClassifier", "CCEClusterer", "KMeans", "SeLa"]

# Imported when first used: modules of this package that need no scikit-learn should not wait for it.
HOMES = {"CCEClassifier": "cce_classifier", "CCEClusterer": "cce_clusterer"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES.get(name, 'baselines')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
