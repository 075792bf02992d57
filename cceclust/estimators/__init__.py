"""scikit-learn-style estimators: CCEClusterer, CCEClassifier and the paper's baselines."""

from cceclust.estimators.baselines import MIADM, MIGD, CCEByPGD, KMeans, SeLa
from cceclust.estimators.cce_classifier import CCEClassifier
from cceclust.estimators.cce_clusterer import CCEClusterer

__all__ = ["MIADM", "MIGD", "CCEByPGD", "CCEClassifier", "CCEClusterer", "KMeans", "SeLa"]
