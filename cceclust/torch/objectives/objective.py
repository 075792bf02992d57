"""What the objectives have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from cceclust.validation import check_non_negative

__all__ = ["Objective", "SelfLabeling", "shannon_cross_entropy"]


class Objective(nn.Module, ABC):
    """A loss of the logits of a batch of images and of one view of each image; by default an augmented view."""

    def start_head(self, head: nn.Linear) -> None:
        """Change the head's initial weights as the authors of the objective do; by default they stay as they are."""

    def make_view(
        self, network: Callable[[Tensor], Tensor], images: Tensor, augmentation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return the view of each image (n, …) whose logits are compared with those of the image.

        If several processes train together, `network` returns the logits of all images, but gradients flow only into
        those that belong to this process; the views of the others are not used.
        """
        return augmentation(images)

    @abstractmethod
    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Return ``loss``, and its parts, for the logits (n_samples, n_clusters) of images and of their views."""


class SelfLabeling(Objective):
    """Mean of D(y, σ) + λ · unfairness(ȳ) + w · mean of D(y, σ_view), where y are the pseudo-labels of the images.

    `fairness` is λ, the weight of equal cluster sizes; it affects y only, as no gradient flows through y.
    `augmentation_weight` is w, the weight of the loss of the augmented views.
    """

    # Iterations that find the pseudo-labels of a batch.
    max_iter: int

    def __init__(self, fairness: float, augmentation_weight: float = 1.0) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight

    @abstractmethod
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y (n_samples, n_clusters) for these logits."""

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of D(y, σ); by default Shannon's cross-entropy."""
        return shannon_cross_entropy(logits, labels)

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return how far the sizes of the clusters, ȳ, are from equal ones; by default KL(ȳ ‖ u)."""
        mean = labels.mean(dim=0)
        return torch.xlogy(mean, len(mean) * mean).sum()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        labels = self.pseudo_labels(logits.detach())
        of_images, of_views = self.divergence(logits, labels), self.divergence(view, labels)
        unfairness = self.unfairness(labels)
        loss = of_images + self.fairness * unfairness + self.augmentation_weight * of_views
        return {"loss": loss, "images": of_images, "views": of_views, "unfairness": unfairness}


def shannon_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of H(y, σ) = −Σ_k y_k ln σ_k for σ = softmax(logits)."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()
