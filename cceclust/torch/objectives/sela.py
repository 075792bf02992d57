"""SeLa: one-hot pseudo-labels in clusters of equal size, by optimal transport (equation 4 of arXiv:2303.07321).

Y. M. Asano, C. Rupprecht, A. Vedaldi, "Self-labelling via simultaneous clustering and representation learning",
ICLR 2020 (arXiv:1911.05371). Here labels are found batch by batch, as for all objectives, and not from time to time for
all the data.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cceclust.torch.objectives.objective import Objective
from cceclust.validation import check_non_negative

__all__ = ["SeLa", "balanced_labels"]

# The exponent of the probabilities in the transport, as in the SeLa paper; its iterations in each batch, and the part
# of them in which the exponent grows.
SHARPNESS, ITERATIONS, GROWING = 25.0, 50, 0.8


class SeLa(Objective):
    """Mean of H(y, σ) + w · mean of H(y, σ_view) with one-hot y in clusters of equal size.

    `augmentation_weight` is w, the weight of the loss of the augmented views, which have the same pseudo-labels.
    """

    def __init__(self, augmentation_weight: float = 1.0) -> None:
        super().__init__()
        check_non_negative(augmentation_weight, "augmentation_weight")
        self.augmentation_weight = augmentation_weight

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        labels = balanced_labels(logits.detach()).argmax(dim=1)
        of_images, of_views = (functional.cross_entropy(scores, labels) for scores in (logits, view))
        return {"loss": of_images + self.augmentation_weight * of_views, "images": of_images, "views": of_views}


def balanced_labels(logits: Tensor, sharpness: float = SHARPNESS, max_iter: int = ITERATIONS) -> Tensor:
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
