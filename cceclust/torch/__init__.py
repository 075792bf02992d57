"""Everything that needs torch: losses as modules, EM on the device, networks, features of images, deep clustering."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from cceclust.errors import MissingExtraError

    raise MissingExtraError.of("cceclust.torch", "PyTorch", "torch") from error

if TYPE_CHECKING:
    from cceclust.torch.deep import DeepTrainer
    from cceclust.torch.em import estimate_pseudo_labels
    from cceclust.torch.extraction import extract_features
    from cceclust.torch.losses import CollisionCrossEntropy, SelfLabelingLoss
    from cceclust.torch.networks import build_network
    from cceclust.torch.resnet import resnet18, resnet50

# Imported on first use: the processes that decode images for `extract` do not need the training code.
HOMES = {
    "CollisionCrossEntropy": "losses",
    "DeepTrainer": "deep",
    "SelfLabelingLoss": "losses",
    "build_network": "networks",
    "estimate_pseudo_labels": "em",
    "extract_features": "extraction",
    "resnet18": "resnet",
    "resnet50": "resnet",
}

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


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'cceclust.torch' has no attribute {name!r}")
    return getattr(importlib.import_module(f"cceclust.torch.{HOMES[name]}"), name)
