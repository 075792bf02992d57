"""Collision cross-entropy with pseudo-labels by EM, L_CCE+ (equation 11), or by projected descent, L_CCE (equation 10).

Z. Zhang, Y. Boykov, "Collision Cross-Entropy for Soft Class Labels and Deep Clustering" (arXiv:2303.07321).
"""

from __future__ import annotations

import torch
from torch import Tensor

from cceclust.torch.em import estimate_pseudo_labels
from cceclust.torch.losses import collision_cross_entropy
from cceclust.torch.objectives.objective import SelfLabeling

__all__ = ["CCE", "CCEByPGD", "project_to_simplex"]


class CCE(SelfLabeling):
    """Mean of H₂(y, σ) + λ KL(u ‖ ȳ) + w · mean of H₂(y, σ_view), with y by EM and uniform u; λ = 100 as in the paper.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> CCE()(logits, logits)["loss"].backward()
    """

    max_iter = 20

    def __init__(self, fairness: float = 100.0, augmentation_weight: float = 1.0) -> None:
        super().__init__(fairness, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        return estimate_pseudo_labels(logits.softmax(dim=1), fairness=self.fairness, max_iter=self.max_iter)

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of H₂(y, σ)."""
        return collision_cross_entropy(logits, labels).mean()

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(u ‖ ȳ)."""
        return -(labels.shape[1] * labels.mean(dim=0)).log().mean()


class CCEByPGD(CCE):
    """Mean of H₂(y, σ) + λ KL(ȳ ‖ u) + w · mean of H₂(y, σ_view), with y found by projected gradient descent.

    A step that would raise the loss is not taken, and later steps are half as long: unlike the fixed step sizes of
    the paper's Table 1, this needs no tuning and cannot diverge.
    """

    max_iter = 200

    @torch.no_grad()
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        probabilities = logits.softmax(dim=1)
        n_clusters = probabilities.shape[1]
        smallest = torch.finfo(probabilities.dtype).tiny
        labels, loss = probabilities, self._value(probabilities, probabilities)
        # Multiplied by the number of samples, like all steps here: a step size that suits the term of one point.
        step = torch.ones_like(loss)
        for _ in range(self.max_iter):
            collision = (labels * probabilities).sum(dim=1, keepdim=True).clamp_min(smallest)
            pull = self.fairness * (n_clusters * labels.mean(dim=0)).clamp_min(smallest).log()
            moved = project_to_simplex(labels - step * (pull - probabilities / collision))
            value = self._value(moved, probabilities)
            # Decided on the device, so that nothing waits for it.
            lower = value < loss
            labels, loss = torch.where(lower, moved, labels), torch.where(lower, value, loss)
            step = torch.where(lower, 1.2 * step, 0.5 * step)
        return labels

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(ȳ ‖ u)."""
        return SelfLabeling.unfairness(self, labels)

    def _value(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        collision = (labels * probabilities).sum(dim=1).clamp_min(torch.finfo(labels.dtype).tiny)
        return -collision.log().mean() + self.fairness * self.unfairness(labels)


def project_to_simplex(rows: Tensor) -> Tensor:
    """Return the nearest points (n, k) whose entries are not negative and sum to 1.

    J. Duchi et al., "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008.
    """
    # A shift of a row along (1, …, 1) does not change its projection, and keeps the digits of small numbers.
    rows = rows - rows.amax(dim=1, keepdim=True)
    largest = rows.sort(dim=1, descending=True).values
    excess = largest.cumsum(dim=1) - 1
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    n_positive = (largest * count > excess).sum(dim=1, keepdim=True)
    shift = excess.gather(1, n_positive - 1) / n_positive
    return (rows - shift).clamp_min(0)
