"""IMSAT: mutual information and self-augmented training.

W. Hu, T. Miyato, S. Tokui, E. Matsumoto, M. Sugiyama, "Learning discrete representations via information maximizing
self-augmented training", ICML 2017 (arXiv:1702.08720). The augmentation here is the trainer's, in the place of
virtual adversarial perturbations.
"""

from __future__ import annotations

from torch import Tensor

from cceclust.torch.objectives.objective import Objective, shannon_cross_entropy
from cceclust.validation import check_non_negative

__all__ = ["IMSAT"]


class IMSAT(Objective):
    """w · mean of H(σ, σ_view) + t (mean of H(σ) − μ H(σ̄)), where σ in the first term is a constant.

    Parameters
    ----------
    fairness : float
        μ, the weight of equal cluster sizes, H(σ̄); 4 in the authors' code.
    information_weight : float
        t, the weight of the mutual information; 0.1 in the authors' code.
    augmentation_weight : float
        w, the weight of the loss of the augmented views.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> IMSAT()(logits, logits)["loss"].backward()
    """

    def __init__(
        self, fairness: float = 4.0, information_weight: float = 0.1, augmentation_weight: float = 1.0
    ) -> None:
        super().__init__()
        check_non_negative(fairness, "fairness")
        check_non_negative(information_weight, "information_weight")
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.fairness = fairness
        self.information_weight = information_weight
        self.augmentation_weight = augmentation_weight

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        probabilities = logits.softmax(dim=1)
        uncertainty = shannon_cross_entropy(probabilities, logits)
        # From log-probabilities, a mean of 0 has a finite logarithm.
        log_mean = logits.log_softmax(dim=1).logsumexp(dim=0) - logits.new_tensor(len(logits)).log()
        size_entropy = -(log_mean.exp() * log_mean).sum()
        of_view = shannon_cross_entropy(probabilities.detach(), view)
        information = uncertainty - self.fairness * size_entropy
        loss = self.augmentation_weight * of_view + self.information_weight * information
        return {"loss": loss, "view": of_view, "uncertainty": uncertainty, "size_entropy": size_entropy}
