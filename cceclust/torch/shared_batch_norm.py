"""Batch norms with the statistics of the whole batch, when several processes have a part of it each."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

__all__ = ["BatchNorm", "SharedBatchNorm", "share_batch_norms"]

# The base of all batch norms, torch's synchronised one included.
BatchNorm = nn.modules.batchnorm._BatchNorm


class SumOverRanks(torch.autograd.Function):
    """The sum of a tensor over all processes. Each of them uses it, so gradients are summed over all of them, too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        """Sum values."""
        total = values.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Sum gradients."""
        return SumOverRanks.forward(ctx, gradients[0])


def summed_over_ranks(values: Tensor) -> Tensor:
    """Return the sum over all processes; gradients flow through it."""
    total: Tensor = SumOverRanks.apply(values)  # type: ignore[no-untyped-call]
    return total


class SharedBatchNorm(BatchNorm):
    """What :class:`torch.nn.SyncBatchNorm` is, for processes on CPUs, where that one refuses to work.

    Parameters
    ----------
    original : BatchNorm
        The batch norm to take the place of, with its parameters and statistics.
    """

    def __init__(self, original: BatchNorm) -> None:
        super().__init__(
            original.num_features,
            original.eps,
            original.momentum,
            affine=original.affine,
            track_running_stats=original.track_running_stats,
        )
        self.weight, self.bias = original.weight, original.bias
        for name, buffer in original.named_buffers(recurse=False):
            setattr(self, name, buffer)
        self.training = original.training

    def _check_input_dim(self, x: Tensor) -> None:
        """Accept what any of the originals accepts."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the rows (n, n_features, …) of this process by the statistics of all rows."""
        if not self.training:
            return super().forward(x)
        shape = [1, -1] + [1] * (x.ndim - 2)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        n_values = x.new_tensor([x.numel() // x.shape[1]])
        *_, count = sums = summed_over_ranks(torch.cat([x.sum(axes), n_values]))
        mean = sums[:-1] / count
        centred = x - mean.view(shape)
        variance = summed_over_ranks((centred * centred).sum(axes)) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1))
        scale = (variance + self.eps).rsqrt()
        result: Tensor = centred * (scale * self.weight if self.affine else scale).view(shape)
        return result + self.bias.view(shape) if self.affine else result

    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Move the statistics for prediction towards those of a batch."""
        if not self.track_running_stats:
            return
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        # None means the plain average of all batches.
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)


def share_batch_norms(network: nn.Module, device: torch.device) -> None:
    """Replace the batch norms in a network by ones that compute with the batch of all processes."""
    if device.type == "cuda":
        convert: Any = nn.SyncBatchNorm.convert_sync_batchnorm
        convert(network)
        return
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, BatchNorm):
                setattr(module, name, SharedBatchNorm(child))
