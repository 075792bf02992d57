"""SCAN: an image and its nearest neighbours belong to one cluster, and clusters are equally large.

W. Van Gansbeke, S. Vandenhende, S. Georgoulis, M. Proesmans, L. Van Gool, "SCAN: Learning to classify images without
labels", ECCV 2020 (arXiv:2005.12320). Neighbours are found with the features at the start of training, so SCAN is meant
for a network that was pretrained on a pretext task.
"""

from __future__ import annotations

from torch import Tensor

from cceclust.torch.losses import collision_cross_entropy
from cceclust.torch.objectives.objective import Objective, entropy_of_mean
from cceclust.validation import check_count, check_non_negative

__all__ = ["SCAN"]


class SCAN(Objective):
    """Mean of −ln σ·σ_neighbour − w H(σ̄): the collision cross-entropy of neighbours, and the entropy of the sizes.

    The second argument of a call holds the logits of an augmented view of one neighbour of each image.

    Parameters
    ----------
    entropy_weight : float
        w; 5 in the authors' code.
    n_neighbors : int
        Number of neighbours of each image, of which every step draws one; 20 in the authors' paper.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(8, 3, requires_grad=True)
    >>> SCAN()(logits, logits)["loss"].backward()
    """

    def __init__(self, entropy_weight: float = 5.0, n_neighbors: int = 20) -> None:
        super().__init__()
        check_non_negative(entropy_weight, "entropy_weight")
        check_count(n_neighbors, "n_neighbors", 1)
        self.entropy_weight = entropy_weight
        self.n_neighbors = n_neighbors

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Compute the loss and its parts."""
        consistency = collision_cross_entropy(logits, view.softmax(dim=1)).mean()
        size_entropy = entropy_of_mean(logits)
        loss = consistency - self.entropy_weight * size_entropy
        return {"loss": loss, "consistency": consistency, "size_entropy": size_entropy}
