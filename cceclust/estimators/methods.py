"""The estimators by the names that the command line and model files have for them."""

from __future__ import annotations

from typing import Any

from cceclust.estimators.baselines import MIADM, MIGD, CCEByPGD, KMeans, SeLa
from cceclust.estimators.cce_clusterer import CCEClusterer

__all__ = ["METHODS"]

METHODS: dict[str, type[Any]] = {
    "cce": CCEClusterer,
    "cce-pgd": CCEByPGD,
    "migd": MIGD,
    "sela": SeLa,
    "miadm": MIADM,
    "kmeans": KMeans,
}
