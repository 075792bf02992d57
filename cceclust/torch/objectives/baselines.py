"""The published objectives that collision cross-entropy is compared with, but for IMSAT.

IIC: X. Ji, J. F. Henriques, A. Vedaldi, "Invariant information clustering for unsupervised image classification and
segmentation", ICCV 2019 (arXiv:1807.06653).
MIADM: M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between discriminative models and
K-means", TPAMI 2021 (arXiv:1810.04246); the solver is that of :mod:`cceclust.pseudo_labels.alternating_direction`.
SeLa: Y. M. Asano, C. Rupprecht, A. Vedaldi, "Self-labelling via simultaneous clustering and representation learning",
ICLR 2020 (arXiv:1911.05371); here labels are found batch by batch, and not from time to time for all the data.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cceclust.torch.objectives.objective import Objective, SelfLabeling
from cceclust.validation import check_positive

__all__ = ["IIC", "MIADM", "SeLa", "balanced_labels"]

# The exponent of the probabilities in SeLa's transport, as in its paper, and the part of the iterations in which it
# grows to that.
SHARPNESS, GROWING = 25.0, 0.8


class IIC(Objective):
    """−I(c; c_view) for the joint distribution P = mean of σ σ_viewᵀ, made symmetric."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss, which has no parts."""
        joint = logits.softmax(dim=1).T @ view.softmax(dim=1) / len(logits)
        # Entries of 0 add nothing, but their logarithm would be infinite.
        joint = ((joint + joint.T) / 2).clamp_min(torch.finfo(joint.dtype).tiny)
        marginal = joint.sum(dim=1)
        information = (joint * (joint.log() - marginal.log()[:, None] - marginal.log()[None, :])).sum()
        return {"loss": -information}


class MIADM(SelfLabeling):
    """Mean of H(y, σ) + λ KL(ȳ ‖ u) + w · mean of H(y, σ_view) (equation 5); u is uniform, λ = 1 as in Jabi et al."""

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


class SeLa(SelfLabeling):
    """Mean of H(y, σ) + w · mean of H(y, σ_view) (equation 4) with one-hot y in clusters of equal size."""

    max_iter = 50

    def __init__(self, augmentation_weight: float = 1.0) -> None:
        super().__init__(0.0, augmentation_weight)

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return y for these logits."""
        labels = balanced_labels(logits, SHARPNESS, self.max_iter)
        return torch.zeros_like(labels).scatter_(1, labels.argmax(dim=1, keepdim=True), 1.0)


def balanced_labels(logits: Tensor, sharpness: float, max_iter: int) -> Tensor:
    """Return y (n_samples, n_clusters) ∝ α_k σ_k^sharpness with row sums of 1 and about equal column sums, by Sinkhorn.

    All in logarithms: for a head that is sure of itself, σ^sharpness would be 0 in whole columns, which no α can fill.
    The sharpness grows up to its value, from one that makes all entries alike: otherwise the columns that such a head
    does not predict would need thousands of iterations to fill.
    """
    log_sigma = logits.log_softmax(dim=1)
    size = logits.new_tensor(logits.shape[0] / logits.shape[1]).log()
    pull = torch.zeros_like(size)
    softest = (-1 / log_sigma.amin()).clamp_max(sharpness)
    for step in range(1, max_iter + 1):
        now = softest * (sharpness / softest) ** min(1.0, step / (GROWING * max_iter))
        pull = pull + (size - (now * (log_sigma + pull)).log_softmax(dim=1).logsumexp(dim=0)) / now
    return (sharpness * (log_sigma + pull)).softmax(dim=1)
