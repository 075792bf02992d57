"""Several processes that share the work of one command, on one machine or many; torchrun starts them.

Every process runs the same program, and the methods of :class:`Ranks` that exchange something must be called by all of
them, in the same order. A process that ends early ends the others, too: their next exchange fails.
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
from cceclust.torch.devices import resolve_device

__all__ = ["Ranks", "joined"]

T = TypeVar("T")
FAILURE = 1


class Ranks:
    """The processes of one command; by default this one alone.

    Parameters
    ----------
    number : int
        The number of this process, from 0. The first one alone prints and writes files.
    count : int
        How many there are.
    number_here : int
        The number of this process among those of its machine.
    count_here : int
        How many there are on this machine.

    Examples
    --------
    >>> Ranks().gather("mine")
    ['mine']
    >>> Ranks(number=1, count=3).part(torch.arange(10))
    tensor([4, 5, 6])
    """

    def __init__(self, number: int = 0, count: int = 1, number_here: int = 0, count_here: int = 1) -> None:
        self.number = number
        self.count = count
        self.number_here = number_here
        self.count_here = count_here

    @property
    def is_first(self) -> bool:
        """Whether this process prints and writes files."""
        return self.number == 0

    @property
    def are_many(self) -> bool:
        """Whether there are other processes."""
        return self.count > 1

    def device(self, name: str) -> torch.device:
        """Return the device of this process: with several, every one has a GPU of its own."""
        device = resolve_device(name)
        if not self.are_many or device.type != "cuda":
            return device
        if device.index is not None:
            raise InputError(f"device={name!r} is one GPU for {self.count} processes; use cuda, and each takes its own")
        if self.number_here >= torch.cuda.device_count():
            raise InputError(
                f"{self.count_here} processes on {socket.gethostname()}, which has {torch.cuda.device_count()} CUDA "
                "devices; start one for each"
            )
        device = torch.device("cuda", self.number_here)
        torch.cuda.set_device(device)
        return device

    def share(self, value: T) -> T:
        """Return the value that the first process has."""
        if not self.are_many:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0, device=torch.device("cpu"))
        return values[0]

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in order, in the first process; an empty list in the others."""
        if not self.are_many:
            return [value]
        values: list[Any] = [None] * self.count if self.is_first else []
        distributed.gather_object(value, values if self.is_first else None, dst=0)
        return values

    def gather_everywhere(self, value: T) -> list[T]:
        """Return the values of all processes, in order."""
        if not self.are_many:
            return [value]
        values: list[Any] = [None] * self.count
        distributed.all_gather_object(values, value)
        return values

    def part(self, rows: Tensor) -> Tensor:
        """Return the rows of a batch that belong to this process."""
        return rows.tensor_split(self.count)[self.number] if self.are_many else rows

    def join(self, rows: Tensor, lengths: Sequence[int]) -> list[Tensor]:
        """Return whole batches, of which each process has its part.

        Parameters
        ----------
        rows : tensor (n, …)
            The parts of this process, one after the other. Gradients flow into these rows only.
        lengths : sequence of int
            The length of each whole batch.

        Returns
        -------
        list of tensor
        """
        if not self.are_many:
            return list(torch.split(rows, list(lengths)))
        of_ranks = [[length_of_part(length, self.count, rank) for length in lengths] for rank in range(self.count)]
        padded = rows.new_zeros(max(map(sum, of_ranks)), *rows.shape[1:])
        padded[: len(rows)] = rows.detach()
        received = [torch.empty_like(padded) for _ in of_ranks]
        distributed.all_gather(received, padded)
        received[self.number] = rows
        split = [torch.split(part[: sum(sizes)], sizes) for part, sizes in zip(received, of_ranks, strict=True)]
        return [torch.cat(parts) for parts in zip(*split, strict=True)]

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Raise in a process whose settings are not those of the first."""
        first = self.share(dict(settings))
        other = [name for name in sorted({*first, *settings}) if first.get(name) != settings.get(name)]
        if other:
            changes = "; ".join(f"{name} is {settings.get(name)!r}, not {first.get(name)!r}" for name in other)
            raise InputError(
                f"process {self.number} on {socket.gethostname()} differs from the first: {changes}; all processes "
                "need the same files, under the same paths, and the same versions"
            )

    @contextmanager
    def own_random_numbers(self, device: torch.device) -> Iterator[None]:
        """Draw other random numbers than the other processes, and continue with the common ones afterwards."""
        if not self.are_many:
            yield
            return
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, ())) + self.number)
            yield


def length_of_part(length: int, count: int, rank: int) -> int:
    """Return the length of a part that ``tensor_split`` makes."""
    return length // count + (rank < length % count)


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the other processes that torchrun started until the block ends; without torchrun, this process is alone.

    If the block raises, the process that fails first keeps its exception, and the others leave with exit code 1 and
    without a message, so that a failure is told once. If a process is killed, one of the others raises
    :class:`~cceclust.errors.RankError`.

    Yields
    ------
    Ranks

    Examples
    --------
    >>> from cceclust.torch.ranks import joined
    >>> with joined() as ranks:
    ...     ranks.count
    1
    """
    if not distributed.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield Ranks()
        return
    try:
        store, number, count = next(rendezvous("env://"))
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        distributed.init_process_group(backend, store=store, rank=number, world_size=count)
    except (RuntimeError, ValueError) as error:
        raise RankError(f"cannot join the other processes that torchrun started: {error}") from None
    here = (int(os.environ[name]) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    try:
        yield Ranks(number, count, *here)
    except BaseException as error:
        if not fails_first(store):
            raise SystemExit(FAILURE) from None
        if is_lost_connection(error):
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


def is_lost_connection(error: BaseException) -> bool:
    """Tell whether an exchange between processes failed."""
    # Gloo raises plain RuntimeErrors, which name its source file.
    return isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))
