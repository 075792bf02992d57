"""MIADM: Shannon's cross-entropy with soft pseudo-labels and a soft fairness term (equation 5 of arXiv:2303.07321).

M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between discriminative models and
K-means", TPAMI 2021 (arXiv:1810.04246). The solver is that of :mod:`cceclust.pseudo_labels.alternating_direction`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cceclust.torch.objectives.objective import SelfLabeling, shannon_cross_entropy
from cceclust.validation import check_positive

__all__ = ["MIADM"]


class MIADM(SelfLabeling):
    """Mean of H(y, σ) + λ KL(ȳ ‖ u) + w · mean of H(y, σ_view); u is uniform, λ = 1 as in Jabi et al."""

    max_iter = 50

    def __init__(self, fairness: float = 1.0, augmentation_weight: float = 1.0) -> None:
        check_positive(fairness, "fairness")
        super().__init__(fairness, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        log_sigma = logits.log_softmax(dim=1)
        labels = log_sigma
        for _ in range(self.max_iter):
            # y ∝ y · σ^(1/λ) / ȳ, all in logarithms.
            labels = (labels + log_sigma / self.fairness - labels.logsumexp(dim=0)).log_softmax(dim=1)
        return labels.exp()

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of H(y, σ)."""
        return shannon_cross_entropy(logits, labels)

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(ȳ ‖ u)."""
        mean = labels.mean(dim=0)
        return torch.xlogy(mean, len(mean) * mean).sum()
