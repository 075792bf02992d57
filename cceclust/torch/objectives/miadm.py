"""MIADM: Shannon's cross-entropy with soft pseudo-labels and a soft fairness term (equation 5 of arXiv:2303.07321).

M. Jabi, M. Pedersoli, A. Mitiche, I. Ben Ayed, "Deep clustering: On the link between discriminative models and
K-means", TPAMI 2021 (arXiv:1810.04246). The solver is that of :mod:`cceclust.pseudo_labels.alternating_direction`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cceclust.torch.objectives.objective import Objective, shannon_cross_entropy
from cceclust.validation import check_count, check_non_negative, check_positive

__all__ = ["MIADM"]


class MIADM(Objective):
    """Mean of H(y, σ) + λ KL(ȳ ‖ u) + w · mean of H(y, σ_view), with the y that minimises the first two terms.

    Parameters
    ----------
    fairness : float
        λ, the weight of equal cluster sizes; 1 in Jabi et al.
    augmentation_weight : float
        w, the weight of the loss of the augmented views, which have the same pseudo-labels.
    max_iter : int
        Iterations of the solver per batch.

    Examples
    --------
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> MIADM()(logits, logits)["loss"].backward()
    """

    def __init__(self, fairness: float = 1.0, augmentation_weight: float = 1.0, max_iter: int = 50) -> None:
        super().__init__()
        check_positive(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        check_count(max_iter, "max_iter")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight
        self.max_iter = max_iter

    @torch.no_grad()
    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return the pseudo-labels (n_samples, n_clusters) for these logits."""
        log_sigma = logits.log_softmax(dim=1)
        labels = log_sigma
        for _ in range(self.max_iter):
            # y ∝ y · σ^(1/λ) / ȳ, all in logarithms.
            labels = (labels + log_sigma / self.fairness - labels.logsumexp(dim=0)).log_softmax(dim=1)
        return labels.exp()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        labels = self.pseudo_labels(logits)
        mean = labels.mean(dim=0)
        unfairness = torch.xlogy(mean, len(mean) * mean).sum()
        of_images, of_views = (shannon_cross_entropy(labels, scores) for scores in (logits, view))
        return {
            "loss": of_images + self.fairness * unfairness + self.augmentation_weight * of_views,
            "cross_entropy": of_images,
            "view": of_views,
            "unfairness": unfairness,
        }
