"""What all objectives have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

__all__ = ["Objective", "entropy_of_mean", "shannon_cross_entropy"]


class Objective(nn.Module, ABC):
    """A loss of the logits of a batch of images and of one view of each image; by default an augmented view.

    Attributes
    ----------
    n_neighbors : int
        If above 0, the view is not of the image itself but of one of this many nearest neighbours.
    """

    n_neighbors: int = 0

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
        """Compute the loss and its parts.

        Parameters
        ----------
        logits, view : tensor (n_samples, n_clusters) of float32 or float64
            Logits of the images as they are, and of their augmented views, in the same order.

        Returns
        -------
        dict of scalar tensors
            ``loss``, to be minimised, and its parts; only ``loss`` needs gradients.
        """


def shannon_cross_entropy(targets: Tensor, logits: Tensor) -> Tensor:
    """Return the mean of H(y, σ) = −Σ_k y_k ln σ_k for σ = softmax(logits)."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()


def entropy_of_mean(logits: Tensor) -> Tensor:
    """Return H(σ̄) for σ = softmax(logits) and its mean σ̄ over samples."""
    # Computed from log-probabilities: even a mean that underflows to 0 has a finite logarithm.
    log_mean = logits.log_softmax(dim=1).logsumexp(dim=0) - logits.new_tensor(len(logits)).log()
    return -(log_mean.exp() * log_mean).sum()
