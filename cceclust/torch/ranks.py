"""The device to compute on, and the processes that share the work of one command, which torchrun starts.

Every process runs the same program and must make the same exchanges in the same order. The first one alone prints and
writes files. A process that ends early ends the others, too: their next exchange fails.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from cceclust.errors import InputError, RankError

__all__ = ["count", "gather", "is_first", "join", "joined", "number", "part", "require_same", "resolve_device", "share"]

T = TypeVar("T")


def count() -> int:
    """Return how many processes work together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def number() -> int:
    """Return the number of this process, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def is_first() -> bool:
    """Tell whether this process prints and writes files."""
    return number() == 0


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device of the given name: ``auto`` takes CUDA or MPS where available, otherwise the CPU.

    Of several processes, each takes the GPU of its number.
    """
    cuda_devices, has_mps = torch.cuda.device_count(), torch.backends.mps.is_available()
    if name == "auto":
        name = "cuda" if cuda_devices else "mps" if has_mps else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"there is no device {name!r}; expected auto, cpu, mps, cuda or cuda:N") from None
    if device.type == "cuda" and device.index is None and count() > 1:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    usable = {"cpu": True, "mps": has_mps, "cuda": (device.index or 0) < cuda_devices}
    if not usable.get(device.type, False):
        raise InputError(
            f"the device {device} is not there: torch {torch.__version__} sees {cuda_devices} CUDA devices; several "
            "processes need one each"
        )
    return device


def gather(value: T) -> list[T]:
    """Return the values of all processes, in order."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    distributed.all_gather_object(values, value)
    return values


def share(value: T) -> T:
    """Return the value that the first process has."""
    return gather(value)[0]


def part(rows: Tensor) -> Tensor:
    """Return the rows of a batch that belong to this process."""
    return rows.tensor_split(count())[number()]


def join(rows: Tensor, lengths: Sequence[int]) -> list[Tensor]:
    """Return whole batches of the given lengths; `rows` are the parts of this process, one after the other.

    Gradients flow into these rows only.
    """
    if count() == 1:
        return list(torch.split(rows, list(lengths)))
    # As long as the parts that tensor_split makes.
    sizes = [[len(range(length)[rank :: count()]) for length in lengths] for rank in range(count())]
    padded = rows.new_zeros(max(map(sum, sizes)), *rows.shape[1:])
    padded[: len(rows)] = rows.detach()
    received = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(received, padded)
    received[number()] = rows
    split = [torch.split(of_rank[: sum(own)], own) for of_rank, own in zip(received, sizes, strict=True)]
    return [torch.cat(parts) for parts in zip(*split, strict=True)]


def require_same(settings: Mapping[str, Any]) -> None:
    """Raise in a process whose settings are not those of the first."""
    first = share(dict(settings))
    other = [name for name in sorted({*first, *settings}) if first.get(name) != settings.get(name)]
    if other:
        changes = "; ".join(f"{name} is {settings.get(name)!r}, not {first.get(name)!r}" for name in other)
        raise InputError(
            f"process {number()} on {socket.gethostname()} differs from the first: {changes}; all processes need the "
            "same files, under the same paths, and the same versions"
        )


@contextmanager
def joined() -> Iterator[bool]:
    """Join the other processes that torchrun started until the block ends; without torchrun, this process is alone.

    Yields whether this process is the first. If the block raises, the process that fails first keeps its exception, and
    the others leave with exit code 1 and without a message, so that a failure is told once. If a process is killed, one
    of the others raises :class:`~cceclust.errors.RankError`.
    """
    if not distributed.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield True
        return
    try:
        store, rank, world_size = next(rendezvous("env://"))
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend, store=store, rank=rank, world_size=world_size)
    except (RuntimeError, ValueError) as error:
        raise RankError(f"cannot join the other processes that torchrun started: {error}") from None
    try:
        yield is_first()
    except BaseException as error:
        if not fails_first(store):
            raise SystemExit(1) from None
        # Gloo raises plain RuntimeErrors, which name its source file.
        if isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error)):
            raise RankError("another of torchrun's processes has ended or is out of reach") from None
        raise
    distributed.destroy_process_group()


def fails_first(store: Any) -> bool:
    """Tell whether no other process has failed before."""
    try:
        return bool(store.add("cceclust/failures", 1) == 1)
    except RuntimeError:
        # The store ended with its machine; one process of every other machine tells it.
        return os.environ["LOCAL_RANK"] == "0"
