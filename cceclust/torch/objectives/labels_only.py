"""No objective at all, to see how much the others add to some labels ("only seeds" in Table 5 of arXiv:2303.07321)."""

from __future__ import annotations

from torch import Tensor

from cceclust.torch.objectives.objective import Objective

__all__ = ["LabelsOnly"]


class LabelsOnly(Objective):
    """A loss of 0, which leaves only the trainer's loss of labelled images. Without labels nothing is learned.

    Examples
    --------
    >>> import torch
    >>> LabelsOnly()(torch.randn(8, 3), torch.randn(8, 3))["loss"]
    tensor(0.)
    """

    def forward(self, logits: Tensor, view: Tensor) -> dict[str, Tensor]:
        """Return a loss of 0."""
        return {"loss": logits.new_zeros(())}
