"""Collision cross-entropy with pseudo-labels by EM: L_CCE+ (equation 11).

Z. Zhang, Y. Boykov, "Collision Cross-Entropy for Soft Class Labels and Deep Clustering" (arXiv:2303.07321).
"""

from __future__ import annotations

from torch import Tensor

from cceclust.torch.em import estimate_pseudo_labels
from cceclust.torch.losses import collision_cross_entropy
from cceclust.torch.objectives.objective import SelfLabeling

__all__ = ["CCE"]


class CCE(SelfLabeling):
    """Mean of H₂(y, σ) + λ KL(u ‖ ȳ) + w · mean of H₂(y, σ_view), with y found by EM; u is uniform, λ = 100 as in the paper.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> CCE()(logits, logits)["loss"].backward()
    """

    def __init__(self, fairness: float = 100.0, augmentation_weight: float = 1.0, max_iter: int = 20) -> None:
        super().__init__(fairness, augmentation_weight, max_iter)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        return estimate_pseudo_labels(logits.softmax(dim=1), fairness=self.fairness, max_iter=self.max_iter)

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of H₂(y, σ)."""
        return collision_cross_entropy(logits, labels).mean()

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(u ‖ ȳ)."""
        return -(labels.shape[1] * labels.mean(dim=0)).log().mean()
