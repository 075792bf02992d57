"""Files: readers, writers and their contract (``docs/files.md``)."""

from cceclust.io.clusters import Clusters, read_clusters, write_clusters
from cceclust.io.features import FeatureFile, open_features, write_features
from cceclust.io.models import Model, read_model, write_model
from cceclust.io.onnx_models import write_onnx

__all__ = [
    "Clusters",
    "FeatureFile",
    "Model",
    "open_features",
    "read_clusters",
    "read_model",
    "write_clusters",
    "write_features",
    "write_model",
    "write_onnx",
]
