"""Rows of a Dask array: every pass runs where its chunks are, and what comes back is put together in their order."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from cceclust import choices
from cceclust.dask.arrays import as_dask_array, lazy_results, use_one_thread
from cceclust.dask.cluster import current_client, naming_lost_workers, run_on_workers
from cceclust.errors import ClusterError, InputError
from cceclust.training.diagnosis import Prediction, predict_block, predict_blocks
from cceclust.training.head import Head
from cceclust.training.logits import head_on_blocks, likeliest, probabilities_of
from cceclust.training.progress import OnProgress, silent
from cceclust.training.rows import ArrayRows, computing_dtype, half_of_the_memory, refuse_little_memory, slices

__all__ = ["DaskRows", "LazyPrediction"]

Result = TypeVar("Result")


class DaskRows:
    """The rows of a Dask array or data frame, which are never brought to this machine as a whole.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The features. Where the lengths of its chunks are unknown, they are computed.
    memory : int, optional
        Bytes that rows on this machine may take: those that are trained on. By default half of its memory.
    """

    def __init__(self, X: Any, memory: int | None = None) -> None:
        array = as_dask_array(X)
        if any(np.isnan(length) for length in array.chunks[0]):
            with naming_lost_workers():
                array = array.compute_chunk_sizes()
        self.array: da.Array = array
        self.shape: tuple[int, int] = (int(array.shape[0]), int(array.shape[1]))
        if 0 in self.shape:
            raise InputError(f"X has shape {self.shape}; expected at least one row and one feature")
        self.dtype = computing_dtype(array.dtype)
        self.memory = half_of_the_memory() if memory is None else memory
        refuse_little_memory(self.memory, self.shape[1], self.dtype)
        row_bytes = self.shape[1] * self.dtype.itemsize
        refuse_large_chunks(max(array.chunks[0]), row_bytes)

    def room_for(self, shape: tuple[int, int]) -> NDArray[Any]:
        """Return an array of this shape in memory."""
        return np.empty(shape, self.dtype)

    def map_blocks(
        self, function: Callable[..., Result], *columns: NDArray[Any], n_outputs: int = 0, n_threads: int = 1
    ) -> Iterator[tuple[slice, Result]]:
        """Yield ``function(block, *parts)`` for successive blocks of rows, with their position.

        Dask decides how many chunks are worked on at the same time, and where.
        """
        # One node of the graph, on which the tasks depend; else each of them would carry a copy.
        shared = delayed(function)
        chunks = list(self._chunks())
        tasks = [
            (shared, chunk, [Packed.of(column[where]) for column in columns], self.dtype, n_outputs)
            for where, chunk in chunks
        ]
        for (where, _), found in zip(chunks, run_on_workers(apply_to_chunk, tasks), strict=True):
            blocks = slices((where.stop - where.start, self.shape[1]), self.dtype, n_outputs)
            for block, result in zip(blocks, found, strict=True):
                yield slice(where.start + block.start, where.start + block.stop), result

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the rows with these indices, which are few and sorted."""
        tasks = []
        for where, chunk in self._chunks():
            first, last = np.searchsorted(indices, [where.start, where.stop])
            if first < last:
                tasks.append((chunk, indices[first:last] - where.start))
        return np.concatenate(list(run_on_workers(take_from_chunk, tasks))).astype(self.dtype, copy=False)

    def predict(
        self,
        head: Head,
        *,
        sample_weight: NDArray[Any] | None = None,
        on_progress: OnProgress = silent,
    ) -> LazyPrediction:
        """Return labels and probabilities that stay where the rows are, and what is needed to sum them up."""
        codes = np.empty(self.shape[0], np.min_scalar_type(head.n_clusters - 1))
        confidences = np.empty(self.shape[0], np.float32)

        def keep(where: slice, block_codes: NDArray[Any], block_confidences: NDArray[Any]) -> None:
            codes[where], confidences[where] = block_codes, block_confidences

        predict = head_on_blocks(predict_compactly, head)
        centers = predict_blocks(
            predict, self, head.n_clusters, keep, sample_weight=sample_weight, on_progress=on_progress
        )
        return LazyPrediction(
            lazy_results(self.array, head, likeliest),
            lazy_results(self.array, head, single_precision),
            centers,
            codes=codes,
            confidences=confidences,
        )

    def _chunks(self) -> Iterator[tuple[slice, Any]]:
        """Yield the position of each chunk, and the chunk, not yet computed."""
        ends = np.cumsum(self.array.chunks[0]).tolist()
        for end, length, chunk in zip(ends, self.array.chunks[0], self.array.to_delayed().ravel(), strict=True):
            yield slice(end - length, end), chunk


@dataclass(frozen=True)
class LazyPrediction(Prediction):
    """Predictions of rows that are elsewhere; labels and probabilities are Dask arrays.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The cluster of each row, in as few bytes as it takes.
    confidences : ndarray of shape (n_samples,), float32
        The largest probability of each row.
    """

    codes: NDArray[Any] = field(kw_only=True)
    confidences: NDArray[np.float32] = field(kw_only=True)

    def sizes(self, sample_weight: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the number of rows in each cluster, or their weight."""
        return np.bincount(self.codes, sample_weight, minlength=self.probabilities.shape[1])

    def mean_confidence(self, sample_weight: NDArray[Any] | None = None) -> float:
        """Return the mean of each row's largest probability."""
        return float(np.average(self.confidences.astype(np.float64), weights=sample_weight))


@dataclass(frozen=True)
class Packed:
    """An array for a task. Weights are often all the same, and then take next to nothing on their way."""

    data: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Packed:
        """Pack an array."""
        return cls(zlib.compress(array.tobytes(), 1), array.dtype, array.shape)

    def array(self) -> NDArray[Any]:
        """Return the array."""
        # Writable, as compiled functions have another version for arrays that are not.
        return np.frombuffer(bytearray(zlib.decompress(self.data)), self.dtype).reshape(self.shape)


def apply_to_chunk(
    function: Callable[..., Result], chunk: NDArray[Any], parts: list[Packed], dtype: np.dtype[Any], n_outputs: int
) -> list[Result]:
    """Return the results of a function for the blocks of a chunk; this runs on a worker."""
    use_one_thread()
    rows = ArrayRows(np.ascontiguousarray(chunk, dtype))
    columns = [part.array() for part in parts]
    return [result for _, result in rows.map_blocks(function, *columns, n_outputs=n_outputs)]


def take_from_chunk(chunk: NDArray[Any], indices: NDArray[np.intp]) -> NDArray[Any]:
    """Return some rows of a chunk; this runs on a worker."""
    return np.asarray(chunk)[indices]


def predict_compactly(block: NDArray[Any], *weights: NDArray[Any], **head: Any) -> tuple[NDArray[Any], ...]:
    """Predict a block, and return of its probabilities only the largest of each row."""
    labels, probabilities, *rest = predict_block(block, *weights, **head)
    return labels.astype(np.min_scalar_type(probabilities.shape[1] - 1)), probabilities.max(axis=1), *rest


def single_precision(logits: NDArray[Any]) -> NDArray[np.float32]:
    """Return the probabilities of the clusters of each row, in single precision."""
    return probabilities_of(logits).astype(np.float32, copy=False)


def refuse_large_chunks(n_rows: int, row_bytes: int) -> None:
    """Raise if a worker has too little memory for a chunk and what is made of it."""
    client = current_client()
    if client is None:
        return
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
    most = min(limits, default=0) // (choices.CHUNKS_IN_WORKER * row_bytes)
    if limits and n_rows > most:
        raise ClusterError(
            f"a chunk of {n_rows:,} rows takes {n_rows * row_bytes:,} bytes, too many for a worker with "
            f"{min(limits):,} bytes of memory; rechunk to at most {most:,} rows, or start workers with more memory"
        )
