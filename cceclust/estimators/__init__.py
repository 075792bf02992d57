"""scikit-learn-style estimators."""

from cceclust.estimators.cce_clusterer import CCEClusterer

__all__ = ["CCEClusterer"]
