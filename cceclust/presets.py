"""The paper's settings for training networks (supplement of arXiv:2303.07321, "Experimental settings").

Plain values, without torch, so that the command line can show them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True)
class Preset:
    """Settings for one data set and network.

    Attributes
    ----------
    network : str
        As in ``cceclust deep --network``.
    augmentation : {"digits", "photos"}
        Kind of the augmented views; the paper does not say what it used.
    learning_rate, head_learning_rate : float
        Adam's, for the backbone and for the linear head.
    weight_decay : float
        Added to the gradient as the L2 term.
    batch_size, n_epochs : int
        Images a step, and how often each is seen.
    augmentation_weight : float
        Coefficient of the extra loss of the augmented views.
    fairness : float
        λ of ``cce`` and ``cce-pgd``.
    """

    network: str
    augmentation: str
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-4
    weight_decay: float = 0.01
    batch_size: int = 250
    n_epochs: int = 50
    augmentation_weight: float = 1.0
    fairness: float = 100.0


def with_resnet18(augmentation_weight: float) -> Preset:
    """Return the settings of Table 4, which starts from SCAN's pretext checkpoints."""
    return Preset(
        "resnet18",
        "photos",
        learning_rate=1e-5,
        head_learning_rate=5e-2,
        weight_decay=1e-4,
        batch_size=200,
        augmentation_weight=augmentation_weight,
    )


PRESETS = {
    "mnist": Preset("vgg4-28", "digits"),
    "cifar10": Preset("vgg4-32", "photos"),
    "cifar100-20": Preset("vgg4-32", "photos"),
    "stl10": Preset("vgg4-96", "photos", batch_size=160),
    "cifar10-resnet18": with_resnet18(0.2),
    "cifar100-20-resnet18": with_resnet18(0.4),
    "stl10-resnet18": with_resnet18(0.5),
}
