"""What all objectives have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["Objective", "shannon_cross_entropy"]


class Objective(nn.Module, ABC):
    """A loss of the logits of a batch of images and of one augmented view of each."""

    @abstractmethod
    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts.

        Parameters
        ----------
        logits, view : tensor (n_samples, n_clusters) of float32 or float64
            Of the images as they are, and of their augmented views, in the same order.

        Returns
        -------
        dict of scalar tensors
            ``loss``, to be minimised, and what it is made of; only ``loss`` need carry gradients.
        """


def shannon_cross_entropy(targets: Tensor, logits: Tensor) -> Tensor:
    """Return the mean of H(y, σ) = −Σ_k y_k ln σ_k for σ = softmax(logits)."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()
