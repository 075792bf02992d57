"""A cluster of workers: how it is reached, and functions that run on it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import distributed
from dask.base import compute
from dask.delayed import delayed
from distributed.comm import connect
from distributed.scheduler import KilledWorker

from cceclust.errors import ClusterError
from cceclust.version import __version__

__all__ = ["connected", "current_client", "naming_lost_workers", "run_on_workers"]

Result = TypeVar("Result")

# Seconds to wait for an answer of the scheduler, and for a first worker.
PATIENCE = 30


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Run everything that Dask is asked for on the workers of a scheduler.

    Parameters
    ----------
    address : str
        Where the scheduler is, such as ``tcp://10.0.0.1:8786``.
    """
    try:
        asyncio.run(expect_answer(address))
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"there is no scheduler of Dask at {address!r}; expected an address such as tcp://10.0.0.1:8786, as "
            "`dask scheduler` prints it"
        ) from error
    with distributed.Client(address, timeout=PATIENCE, set_as_default=False) as client, client.as_current():
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterError(
                f"the scheduler at {address} has no workers; start some with: dask worker {address}"
            ) from error
        refuse_other_versions(client)
        yield


async def expect_answer(address: str) -> None:
    """Raise unless something answers at an address.

    A client that waits in vain stays half open. If it is collected while another one starts, each waits for the
    other until Dask gives up.
    """
    connection = await connect(address, timeout=PATIENCE)
    await connection.close()


def refuse_other_versions(client: Any) -> None:
    """Raise unless all workers have this version of cceclust, which the results depend on."""

    # Defined in here, so that it is sent as a whole: a worker without cceclust could not look it up.
    def version_of_worker() -> str:
        try:
            from cceclust.version import __version__
        except ImportError:
            return "none"
        return __version__

    versions = set(client.run(version_of_worker).values())
    if versions != {__version__}:
        raise ClusterError(
            f"versions of cceclust on the workers: {', '.join(sorted(versions))}; install {__version__}, the version "
            "of this machine, on all of them"
        )


def current_client() -> Any:
    """Return the connection to the cluster that Dask uses now; None if it uses this process."""
    try:
        return distributed.default_client()
    except ValueError:
        return None


def run_on_workers(function: Callable[..., Result], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
    """Yield the results of a function for several tuples of arguments, in their order, wherever they are computed.

    Dask has all of them at once, so that what several tasks need is computed once, and starts those of lost workers
    anew on others.
    """
    tasks = [delayed(function)(*values) for values in arguments]
    client = current_client()
    with naming_lost_workers():
        if client is None:
            yield from compute(*tasks, traverse=False)
            return
        waiting = deque(client.compute(tasks, traverse=False))
        while waiting:
            # Workers forget a result as soon as nothing here refers to it.
            yield waiting.popleft().result()


@contextmanager
def naming_lost_workers() -> Iterator[None]:
    """Say in one line that Dask gave up, because every worker that had a task was lost."""
    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"Dask gave up after {error.allowed_failures + 1} workers in a row were lost with the same rows, probably "
            "for lack of memory; use smaller chunks or shards, or start workers with more memory"
        ) from error
