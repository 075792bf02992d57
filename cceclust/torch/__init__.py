"""Everything that needs torch: losses as modules, EM on the device, networks, features of images, deep clustering."""

from __future__ import annotations

from cceclust.errors import MissingExtraError

try:
    from cceclust.torch.deep import DeepTrainer
    from cceclust.torch.extraction import extract_features
    from cceclust.torch.losses import CollisionCrossEntropy, SelfLabelingLoss, estimate_pseudo_labels
    from cceclust.torch.networks import build_network
    from cceclust.torch.resnet import resnet18, resnet50
except ModuleNotFoundError as error:
    if error.name not in ("torch", "safetensors"):
        raise
    raise MissingExtraError.of("cceclust.torch", "PyTorch", "torch") from error

__all__ = [
    "CollisionCrossEntropy",
    "DeepTrainer",
    "SelfLabelingLoss",
    "build_network",
    "estimate_pseudo_labels",
    "extract_features",
    "resnet18",
    "resnet50",
]
