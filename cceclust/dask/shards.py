"""Features in many files, which workers read: only their shapes, and what training needs, come to this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from cceclust import choices
from cceclust.dask.cluster import run_on_workers
from cceclust.dask.rows import DaskRows
from cceclust.errors import FileContentError, FileError
from cceclust.files.features import open_features
from cceclust.files.tables import TABLE_FILES

__all__ = ["Shard", "look_at_shards", "refuse_unseen", "rows_of_shards"]


@dataclass(frozen=True)
class Shard:
    """What is known of a file of features without its rows.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple of int
        (n_samples, n_features).
    dtype : dtype
        Type of the numbers.
    columns : list of str or None
        The names of the features, if the file is a table.
    labels : ndarray of shape (n_samples,) or None
        True labels, if the file has them.
    dataset : str
        The name of the matrix inside the file.
    attributes : dict
        What the file states about itself.
    """

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    columns: list[str] | None
    labels: NDArray[Any] | None
    dataset: str
    attributes: dict[str, Any]

    @property
    def chunk_rows(self) -> int:
        """Number of rows that are read at once; tables can only be read as a whole."""
        if self.path.suffix.lower() in TABLE_FILES:
            return self.shape[0]
        return max(1, choices.SHARD_CHUNK_BYTES // (self.shape[1] * self.dtype.itemsize))


def look_at_shards(paths: Sequence[Path], roles: Mapping[str, Any]) -> list[Shard]:
    """Have workers look into files of features, which must have the same columns.

    Parameters
    ----------
    paths : sequence of Path
        The files, under names that workers see as well.
    roles : mapping
        What in the files is what, as in :func:`cceclust.files.open_features`.
    """
    shards = list(run_on_workers(look_at_shard, [(path, roles) for path in paths]))
    first = shards[0]
    for shard in shards[1:]:
        if shard.shape[1] != first.shape[1] or shard.columns != first.columns:
            raise FileContentError(
                f"{shard.path} ({shard.shape[1]:,} columns) and {first.path} ({first.shape[1]:,}) have different "
                "columns; expected the same in all files, in the same order"
            )
    return shards


def look_at_shard(path: Path, roles: Mapping[str, Any]) -> Shard:
    """Look into a file of features; this runs on a worker."""
    refuse_unseen(path)
    with open_features(path, **roles) as file:
        return Shard(path, file.shape, file.dtype, file.columns, file.labels, file.dataset, file.attributes)


def rows_of_shards(shards: Sequence[Shard], roles: Mapping[str, Any], memory: int | None) -> DaskRows:
    """Return the rows of several files, which are read by workers whenever they are needed.

    Parameters
    ----------
    shards : sequence of Shard
        From :func:`look_at_shards`.
    roles : mapping
        As for it.
    memory : int, optional
        Bytes that rows on this machine may take.
    """
    dtype = np.result_type(*(shard.dtype for shard in shards))
    chunks = []
    for shard in shards:
        for start in range(0, shard.shape[0], shard.chunk_rows):
            stop = min(start + shard.chunk_rows, shard.shape[0])
            task = delayed(read_rows)(shard.path, roles, start, stop, dtype)
            chunks.append(da.from_delayed(task, (stop - start, shard.shape[1]), meta=np.empty((0, 0), dtype)))
    return DaskRows(da.concatenate(chunks), memory)


def read_rows(path: Path, roles: Mapping[str, Any], start: int, stop: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read some rows of a file; this runs on a worker."""
    refuse_unseen(path)
    with open_features(path, **roles) as file:
        # A copy, as the rows of a memory map would be sent to other workers one by one.
        return np.array(file.read(slice(start, stop)), dtype)


def refuse_unseen(path: Path) -> None:
    """Raise if a worker does not find a file."""
    if not path.exists():
        raise FileError(f"a worker does not find {path}; all workers must see the files under the same paths")
