"""Choosing where to compute."""

from __future__ import annotations

import torch

from cceclust.errors import InputError

__all__ = ["resolve_device"]


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device of the given name: ``auto`` takes CUDA or MPS where available, otherwise the CPU.

    Examples
    --------
    >>> from cceclust.torch.devices import resolve_device
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    cuda_devices, has_mps = torch.cuda.device_count(), torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda_devices else "mps" if has_mps else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device={name!r}; expected auto, cpu, mps, cuda or cuda:N") from None
    usable = {"cpu": True, "mps": has_mps, "cuda": (device.index or 0) < cuda_devices}
    if not usable.get(device.type, False):
        raise InputError(f"device={name!r} is not there: torch {torch.__version__} sees {cuda_devices} CUDA devices")
    return device
