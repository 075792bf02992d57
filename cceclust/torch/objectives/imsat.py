"""IMSAT: mutual information and self-augmented training.

W. Hu, T. Miyato, S. Tokui, E. Matsumoto, M. Sugiyama, "Learning discrete representations via information maximizing
self-augmented training", ICML 2017 (arXiv:1702.08720). Its views are those of virtual adversarial training:
T. Miyato, S. Maeda, M. Koyama, K. Nakae, S. Ishii, "Distributional smoothing with virtual adversarial training",
ICLR 2016 (arXiv:1507.00677).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from cceclust.torch.objectives.objective import Objective, shannon_cross_entropy
from cceclust.validation import check_non_negative

__all__ = ["IMSAT", "adversarial_view"]

# Deviation of the head's initial weights in the authors' code. A head with larger weights saturates in its first steps,
# with all images in one cluster, and the information term is too weak to undo that.
HEAD_DEVIATION = 1e-4
# Weight of the mutual information in the authors' code.
INFORMATION_WEIGHT = 0.1
# Distance of a view from its image, as a fraction of the distance to the nearest other image of the batch. The authors
# use 0.25 of the distance to the tenth nearest of all images.
RADIUS = 0.25
# Length of the random step used to find the adversarial direction: 10 in the authors' code, whose pixels go
# from -1 to 1.
PROBE = 5.0


class IMSAT(Objective):
    """w · mean of H(σ, σ_view) + t (mean of H(σ) − μ H(σ̄)), where σ in the first term is a constant.

    A view is the image, moved by a quarter of the distance to the next one in the direction in which the prediction
    changes most. `fairness` is μ, the weight of equal cluster sizes, H(σ̄): 4 in the authors' code.
    """

    def __init__(self, fairness: float = 4.0, augmentation_weight: float = 1.0) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight

    def start_head(self, head: nn.Linear) -> None:
        """Make the head's initial weights so small that all clusters are equally likely everywhere."""
        nn.init.normal_(head.weight, std=HEAD_DEVIATION)

    def make_view(
        self, network: Callable[[Tensor], Tensor], images: Tensor, augmentation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return adversarial views of images (n, …)."""
        return adversarial_view(network, images)

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        probabilities = logits.softmax(dim=1)
        uncertainty = shannon_cross_entropy(logits, probabilities)
        # From log-probabilities: even a mean that underflows to 0 has a finite logarithm.
        log_mean = logits.log_softmax(dim=1).logsumexp(dim=0) - logits.new_tensor(len(logits)).log()
        size_entropy = -(log_mean.exp() * log_mean).sum()
        of_views = shannon_cross_entropy(view, probabilities.detach())
        information = uncertainty - self.fairness * size_entropy
        loss = self.augmentation_weight * of_views + INFORMATION_WEIGHT * information
        return {"loss": loss, "views": of_views, "uncertainty": uncertainty, "size_entropy": size_entropy}


def adversarial_view(network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """Move each of at least two images in the direction in which the prediction changes most."""
    flat = images.flatten(start_dim=1)
    distances = torch.cdist(flat, flat)
    nearest = distances.fill_diagonal_(torch.inf).amin(dim=1, keepdim=True)
    direction = functional.normalize(torch.randn_like(flat)).requires_grad_()
    with torch.no_grad():
        targets = network(images).softmax(dim=1)
    probed = network(images + PROBE * direction.view_as(images))
    (gradient,) = torch.autograd.grad(shannon_cross_entropy(probed, targets), direction)
    return images + (RADIUS * nearest * functional.normalize(gradient)).view_as(images)
