"""scikit-learn-style estimators: CCEClusterer, CCEClassifier and the paper's methods for fixed features."""

from cceclust.estimators.cce_classifier import CCEClassifier
from cceclust.estimators.cce_clusterer import CCEClusterer
from cceclust.estimators.paper import CCE, MIADM, MIGD, CCEByPGD, SeLa

__all__ = ["CCE", "MIADM", "MIGD", "CCEByPGD", "CCEClassifier", "CCEClusterer", "SeLa"]
