"""The settings of ``cceclust deep``, and those of the paper (supplement of arXiv:2303.07321, "Experimental settings").

Plain values, without torch, so that the command line can show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "NORMALIZATIONS",
    "PAPER_FEATURES",
    "PRESETS",
    "NetworkName",
    "ObjectiveName",
    "PrecisionName",
    "PresetName",
    "RunSettings",
]

# Parameters of CCEClusterer with which the paper clusters fixed features (its Table 2); the other methods share them,
# but for their own λ.
PAPER_FEATURES: dict[str, Any] = {
    "fairness": 100.0,
    "weight_decay": 0.02,
    "learning_rate": 0.1,
    "learning_rate_schedule": "constant",
    "batch_size": 250,
    "max_epochs": 10,
    "tol": 0.0,
    "standardize": False,
    "scale": "overall",
    "init": "random",
    "n_components": 0,
    "n_neighbors": 0,
    "n_init": 1,
    "prior": None,
    "graph_candidates": False,
    "curved": False,
}
# In the order of the paper's Tables 3 and 4.
ObjectiveName = Literal["scan", "imsat", "iic", "sela", "miadm", "cce-pgd", "cce"]
NetworkName = Literal[
    "auto", "vgg4-28", "vgg4-32", "vgg4-96", "vgg4-28-small", "vgg4-32-small", "vgg4-96-small", "resnet18"
]
PresetName = Literal[
    "mnist", "cifar10", "cifar100-20", "stl10", "cifar10-resnet18", "cifar100-20-resnet18", "stl10-resnet18"
]
PrecisionName = Literal["float32", "bfloat16"]
# Mean and standard deviation of the channels that SCAN's pretext tasks saw images by, for pixels from 0 to 1.
NORMALIZATIONS = {
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "cifar100": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


@dataclass(frozen=True)
class RunSettings:
    """All that the result of a run depends on, besides the images and their labels.

    Attributes
    ----------
    network : str
        VGG-4 for one size of images, or SCAN's ResNet-18; ``auto`` is the VGG-4 for the size of most images.
    init : str or None
        File of weights for the backbone: a checkpoint of SCAN, SimCLR, MoCo or solo-learn, or the model of a run.
    normalization : str
        What pixels are standardised by: the ``images`` themselves, or, as a pretext task saw them, ``cifar10``,
        ``cifar100`` or ``imagenet``.
    objective : str
        What is minimised.
    objective_parameters : dict
        Parameters of the objective that differ from its defaults.
    augmentation : str
        Views that move and slant (``digits``), or crop, mirror and recolour (``photos``); ``auto`` is by the network.
    learning_rate : float
        Adam's.
    head_learning_rate : float or None
        Adam's for the linear head; by default the same.
    weight_decay : float
        Adam's L2 term.
    batch_size : int
        Images in a step, at most.
    n_epochs : int
        How often each image is seen.
    precision : str
        Of the products in training: ``float32``, or ``bfloat16``, which is about twice as fast where the processor or
        GPU has instructions for it. Weights, the head, losses and predictions are float32 with either.
    seed : int
        Decides the first weights, the batches and the views.

    Examples
    --------
    >>> from cceclust.presets import RunSettings
    >>> RunSettings(n_epochs=5).batch_size
    250
    """

    network: str = "auto"
    init: str | None = None
    normalization: str = "images"
    objective: str = "cce"
    objective_parameters: dict[str, Any] = field(default_factory=dict)
    augmentation: str = "auto"
    learning_rate: float = 1e-3
    head_learning_rate: float | None = None
    weight_decay: float = 0.01
    batch_size: int = 250
    n_epochs: int = 50
    precision: str = "float32"
    seed: int = 0


def table_3(network: str, augmentation: str = "photos", batch_size: int = 250) -> RunSettings:
    """Return the settings of networks that start from random weights; the paper does not say how it augmented."""
    return RunSettings(
        network=network,
        augmentation=augmentation,
        learning_rate=1e-4,
        head_learning_rate=1e-4,
        weight_decay=0.01,
        batch_size=batch_size,
        n_epochs=50,
        objective_parameters={"augmentation_weight": 1.0, "fairness": 100.0},
    )


def table_4(augmentation_weight: float, normalization: str) -> RunSettings:
    """Return the settings of networks that start from SCAN's pretext checkpoints, which the user has to bring."""
    return RunSettings(
        network="resnet18",
        normalization=normalization,
        augmentation="photos",
        learning_rate=1e-5,
        head_learning_rate=5e-2,
        weight_decay=1e-4,
        batch_size=200,
        n_epochs=50,
        objective_parameters={"augmentation_weight": augmentation_weight, "fairness": 100.0},
    )


PRESETS = {
    "mnist": table_3("vgg4-28", "digits"),
    "cifar10": table_3("vgg4-32"),
    "cifar100-20": table_3("vgg4-32"),
    "stl10": table_3("vgg4-96", batch_size=160),
    "cifar10-resnet18": table_4(0.2, "cifar10"),
    "cifar100-20-resnet18": table_4(0.4, "cifar100"),
    "stl10-resnet18": table_4(0.5, "imagenet"),
}
