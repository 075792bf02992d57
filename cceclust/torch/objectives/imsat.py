"""IMSAT: mutual information and self-augmented training.

W. Hu, T. Miyato, S. Tokui, E. Matsumoto, M. Sugiyama, "Learning discrete representations via information maximizing
self-augmented training", ICML 2017 (arXiv:1702.08720). Adversarial views are those of virtual adversarial training:
T. Miyato, S. Maeda, M. Koyama, K. Nakae, S. Ishii, "Distributional smoothing with virtual adversarial training",
ICLR 2016 (arXiv:1507.00677).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from cceclust.errors import InputError
from cceclust.torch.objectives.objective import Objective, entropy_of_mean, shannon_cross_entropy
from cceclust.validation import check_non_negative

__all__ = ["IMSAT", "adversarial_view"]

Views = Literal["adversarial", "augmented"]
# Deviation of the head's initial weights in the authors' code. A head with larger weights saturates in its first steps,
# with all images in one cluster, and the information term is too weak to undo that.
HEAD_DEVIATION = 1e-4
# Length of the random step used to find the adversarial direction: 10 in the authors' code, whose pixels go
# from -1 to 1.
PROBE = 5.0


class IMSAT(Objective):
    """w · mean of H(σ, σ_view) + t (mean of H(σ) − μ H(σ̄)), where σ in the first term is a constant.

    Parameters
    ----------
    fairness : float
        μ, the weight of equal cluster sizes, H(σ̄); 4 in the authors' code.
    information_weight : float
        t, the weight of the mutual information; 0.1 in the authors' code.
    augmentation_weight : float
        w, the weight of the loss of the views.
    views : {"adversarial", "augmented"}
        Views that change the prediction most within `radius`, or the trainer's augmentation.
    radius : float
        Distance of adversarial views from their images, as a fraction of the distance to the nearest other image of the
        batch. The authors use 0.25 of the distance to the tenth nearest of all images.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> IMSAT()(logits, logits)["loss"].backward()
    """

    def __init__(
        self,
        fairness: float = 4.0,
        information_weight: float = 0.1,
        augmentation_weight: float = 1.0,
        views: Views = "adversarial",
        radius: float = 0.25,
    ) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(information_weight, "information_weight")
        check_non_negative(augmentation_weight, "augmentation_weight")
        check_non_negative(radius, "radius")
        if views not in get_args(Views):
            raise InputError(f"views={views!r}; expected one of {', '.join(get_args(Views))}")
        self.fairness = fairness
        self.information_weight = information_weight
        self.augmentation_weight = augmentation_weight
        self.views = views
        self.radius = radius

    def start_head(self, head: nn.Linear) -> None:
        """Make the head's initial weights so small that all clusters are equally likely everywhere."""
        nn.init.normal_(head.weight, std=HEAD_DEVIATION)

    def make_view(
        self, network: Callable[[Tensor], Tensor], images: Tensor, augmentation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return adversarial or augmented views of images (n, …)."""
        if self.views == "augmented":
            return augmentation(images)
        return adversarial_view(network, images, self.radius)

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        probabilities = logits.softmax(dim=1)
        uncertainty = shannon_cross_entropy(probabilities, logits)
        size_entropy = entropy_of_mean(logits)
        of_view = shannon_cross_entropy(probabilities.detach(), view)
        information = uncertainty - self.fairness * size_entropy
        loss = self.augmentation_weight * of_view + self.information_weight * information
        return {"loss": loss, "view": of_view, "uncertainty": uncertainty, "size_entropy": size_entropy}


def adversarial_view(network: Callable[[Tensor], Tensor], images: Tensor, radius: float) -> Tensor:
    """Move each image in the direction in which the prediction changes most.

    Parameters
    ----------
    network : callable
        Maps images to logits. Its parameters get no gradient.
    images : tensor (n, …)
        At least two.
    radius : float
        Length of the move, as a fraction of the distance to the nearest other image.

    Returns
    -------
    tensor (n, …)

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    >>> moved = adversarial_view(torch.nn.Linear(2, 3), points, radius=0.25)
    >>> (moved - points).norm(dim=1).round(decimals=3)
    tensor([1., 1.])
    """
    flat = images.flatten(start_dim=1)
    distances = torch.cdist(flat, flat)
    nearest = distances.fill_diagonal_(torch.inf).amin(dim=1, keepdim=True)
    direction = functional.normalize(torch.randn_like(flat)).requires_grad_()
    with torch.no_grad():
        targets = network(images).softmax(dim=1)
    probed = network(images + PROBE * direction.view_as(images))
    (gradient,) = torch.autograd.grad(shannon_cross_entropy(targets, probed), direction)
    return images + (radius * nearest * functional.normalize(gradient)).view_as(images)
