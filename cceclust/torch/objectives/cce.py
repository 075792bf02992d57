"""Collision cross-entropy with pseudo-labels by EM: L_CCE+ (equation 11).

Z. Zhang, Y. Boykov, "Collision Cross-Entropy for Soft Class Labels and Deep Clustering" (arXiv:2303.07321).
"""

from __future__ import annotations

from torch import Tensor

from cceclust.torch.em import estimate_pseudo_labels
from cceclust.torch.losses import collision_cross_entropy
from cceclust.torch.objectives.objective import Objective
from cceclust.validation import check_count, check_non_negative

__all__ = ["CCE"]


class CCE(Objective):
    """Mean of H₂(y, σ) + λ KL(u ‖ ȳ) + w · mean of H₂(y, σ_view), with y found by EM for the images as they are.

    Parameters
    ----------
    fairness : float
        λ, the weight of equal cluster sizes; the paper uses 100. It affects y only; no gradient flows through it.
    augmentation_weight : float
        w, the weight of the loss of the augmented views, which have the same pseudo-labels.
    max_iter : int
        EM iterations per batch.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> CCE()(logits, logits)["loss"].backward()
    """

    def __init__(self, fairness: float = 100.0, augmentation_weight: float = 1.0, max_iter: int = 20) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(augmentation_weight, "augmentation_weight")
        check_count(max_iter, "max_iter")
        self.fairness = fairness
        self.augmentation_weight = augmentation_weight
        self.max_iter = max_iter

    def pseudo_labels(self, logits: Tensor) -> Tensor:
        """Return the pseudo-labels (n_samples, n_clusters) for these logits."""
        return estimate_pseudo_labels(logits.detach().softmax(dim=1), fairness=self.fairness, max_iter=self.max_iter)

    def unfairness(self, labels: Tensor) -> Tensor:
        """Return KL(u ‖ ȳ) for the uniform u."""
        n_clusters = labels.shape[1]
        return -(n_clusters * labels.mean(dim=0)).log().mean()

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        labels = self.pseudo_labels(logits)
        collision = collision_cross_entropy(logits, labels).mean()
        of_view = collision_cross_entropy(view, labels).mean()
        unfairness = self.unfairness(labels)
        loss = collision + self.fairness * unfairness + self.augmentation_weight * of_view
        return {"loss": loss, "collision": collision, "view": of_view, "unfairness": unfairness}
