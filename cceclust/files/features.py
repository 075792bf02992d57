"""Feature files: one matrix, a row a sample, in any of several formats, opened as one thing.

The contract of our own format (``.h5``) is in ``docs/files.md``.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import safe_open

from cceclust.errors import FileContentError, InputError
from cceclust.files.atomic import replacing
from cceclust.files.hdf5 import plain_attributes, write_column, writing_hdf5
from cceclust.files.provenance import check_stamp, is_stamped, stamp
from cceclust.files.reading import reading, refuse_what_is_no_file
from cceclust.files.stored import (
    NUMBER_KINDS,
    NUMBERS,
    StoredArray,
    choose_matrix,
    contents,
    hdf5_arrays,
    load_column,
    load_neighbors,
    npz_arrays,
    read_npy_header,
    safetensors_arrays,
)

__all__ = ["FeatureFile", "open_features", "write_features"]

CHUNK_BYTES = 1 << 20
FLOAT_TYPES = ("float16", "float32", "float64")
# Streams are mixed from at least this many places of the file at a time, lest a file sorted by class yield
# batches of one class.
RUNS_IN_MEMORY = 16


class FeatureFile:
    """A matrix of features in a file, read in pieces of any size.

    Made by :func:`open_features`. Use it in a ``with`` statement, or call :meth:`close`.

    Attributes
    ----------
    path : Path
        The file.
    dataset : str
        The name of the matrix inside the file; empty for ``.npy``, which holds only one.
    labels : ndarray of shape (n_samples,) or None
        True labels, integers or strings, if the file has them.
    paths : ndarray of shape (n_samples,) or None
        Where each row came from, if the file says so.
    neighbors : ndarray of shape (n_samples, n_neighbors) or None
        Nearest neighbours of each row, if the file has them for this matrix.
    attributes : dict
        What the file says about itself: backbone, weights, …
    """

    def __init__(
        self,
        path: Path,
        dataset: str,
        matrix: Any,
        *,
        labels: NDArray[Any] | None = None,
        paths: NDArray[Any] | None = None,
        neighbors: NDArray[Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.dataset = dataset
        self.labels = labels
        self.paths = paths
        self._neighbors = neighbors
        self.attributes = dict(attributes or {})
        self._matrix = matrix
        self._close = close
        self._check()

    def _check(self) -> None:
        where = f"{self.path}: dataset {self.dataset!r}" if self.dataset else f"{self.path}"
        shape = tuple(self._matrix.shape)
        if len(shape) != 2:
            raise FileContentError(f"{where} has shape {shape}; expected a matrix (n_samples, n_features)")
        if 0 in shape:
            raise FileContentError(f"{where} is empty: its shape is {shape}")
        for name in ("labels", "paths"):
            column = getattr(self, name)
            if column is None:
                continue
            if column.ndim != 1:
                raise FileContentError(f"{self.path}: {name} have shape {column.shape}; expected 1-D")
            if len(column) != self.n_samples:
                raise FileContentError(
                    f"{self.path}: {len(column)} {name} for {self.n_samples} rows; expected one a row"
                )

    @property
    def neighbors(self) -> NDArray[Any] | None:
        """Nearest neighbours of each row, if the file has them for this matrix; checked when they are asked for."""
        graph = self._neighbors
        if graph is None:
            return None
        problem = None
        if graph.ndim != 2 or len(graph) != self.n_samples or graph.shape[1] == 0:
            problem = f"have shape {graph.shape}; expected ({self.n_samples}, n_neighbors)"
        elif not is_index_of(graph, self.n_samples):
            # Compiled code that follows them would read outside its arrays, unchecked.
            problem = f"are not all row numbers from 0 to {self.n_samples - 1}"
        if problem is not None:
            raise FileContentError(
                f"{self.path}: neighbors {problem}; find them anew with cceclust neighbors --force, or do without by "
                "--neighbors 0"
            )
        return graph

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        rows, columns = self._matrix.shape
        return int(rows), int(columns)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers in the file."""
        dtype: np.dtype[Any] = self._matrix.dtype
        return dtype

    @property
    def block_rows(self) -> int:
        """Number of successive rows that are cheap to read at once: whole chunks, about 1 MiB."""
        chunks = getattr(self._matrix, "chunks", None)
        chunk_rows = min(int(chunks[0]), self.n_samples) if chunks else 1
        return chunk_rows * max(1, CHUNK_BYTES // (chunk_rows * self.n_features * self.dtype.itemsize))

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        return f"<FeatureFile {str(self.path)!r} {self.shape} {self.dtype}>"

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._close()

    def array(self) -> NDArray[Any]:
        """Return the whole matrix; ``.npy`` and ``.safetensors`` stay memory-mapped."""
        return self._matrix if isinstance(self._matrix, np.ndarray) else self.read(slice(None))

    def read(self, rows: slice | ArrayLike) -> NDArray[Any]:
        """Return the rows of a slice or of an array of indices (negative ones count from the end), in that order."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_samples)
            if step == 1:
                return self._read_run(start, stop)
            rows = np.arange(start, stop, step)
        indices = self._as_indices(rows)
        return self._matrix[indices] if type(self._matrix) is np.ndarray else self._gather(indices)

    def _read_run(self, start: int, stop: int) -> NDArray[Any]:
        forget_mapped_pages(self._matrix)
        try:
            return np.asarray(self._matrix[start : max(start, stop)])
        except OSError as error:
            raise FileContentError(
                f"cannot read rows {start} to {stop} of {self.path}: it is damaged, or compressed in a way that h5py "
                f"does not know ({error})"
            ) from error

    def _as_indices(self, rows: ArrayLike) -> NDArray[np.intp]:
        indices = np.asarray(rows)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise InputError(f"rows have shape {indices.shape} and type {indices.dtype}; expected a list of integers")
        indices = indices.astype(np.intp)
        outside = (indices < -self.n_samples) | (indices >= self.n_samples)
        if outside.any():
            raise InputError(f"there is no row {indices[outside][0]}: {self.path} has {self.n_samples} rows")
        return np.where(indices < 0, indices + self.n_samples, indices)

    def _gather(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        # h5py's own indexing by arrays is slow and wants them sorted: read each block once instead. Of a memory map
        # only one block is held at a time.
        result = np.empty((len(indices), self.n_features), self.dtype)
        order = np.argsort(indices, kind="stable")
        blocks, begins = np.unique(indices[order] // self.block_rows, return_index=True)
        for block, wanted in zip(blocks, np.split(order, begins[1:]), strict=False):
            start = int(block) * self.block_rows
            result[wanted] = self._read_run(start, start + self.block_rows)[indices[wanted] - start]
        return result

    def blocks(self, n_rows: int | None = None) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield ``(first row, rows)`` from top to bottom, ``n_rows`` at a time or as many as are cheap."""
        step = n_rows or self.block_rows
        for start in range(0, self.n_samples, step):
            yield start, self.read(slice(start, start + step))

    def shuffled_buffers(
        self, generator: np.random.Generator, *, rows_in_memory: int, dtype: np.dtype[Any]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield ``(indices, rows)`` so that every row comes once, many rows at a time.

        Each buffer is made of runs of successive rows from all over the file, in their order. Its memory is used
        again for the next one.

        Parameters
        ----------
        generator : numpy.random.Generator
            Decides which runs come together.
        rows_in_memory : int
            Rows a buffer, at most.
        dtype : dtype
            Type of the rows that are yielded.
        """
        run = max(1, min(self.block_rows, rows_in_memory // RUNS_IN_MEMORY))
        starts = generator.permutation(np.arange(0, self.n_samples, run))
        runs_at_once = max(1, rows_in_memory // run)
        memory = np.empty((min(runs_at_once * run, self.n_samples), self.n_features), dtype)
        for first in range(0, len(starts), runs_at_once):
            pieces = [np.arange(s, s + self._run_length(s, run)) for s in np.sort(starts[first : first + runs_at_once])]
            indices = np.concatenate(pieces)
            rows = memory[: len(indices)]
            held = 0
            for piece in pieces:
                rows[held : held + len(piece)] = self._read_run(int(piece[0]), int(piece[-1]) + 1)
                held += len(piece)
            yield indices, rows

    def _run_length(self, start: int, run: int) -> int:
        return min(run, self.n_samples - int(start))


def forget_mapped_pages(matrix: Any) -> None:
    """Give back the memory of what was read from a map before: a stream through a large file should stay small."""
    mapping = getattr(matrix, "base", None)
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def is_index_of(indices: NDArray[Any], length: int) -> bool:
    """Tell whether all of ``indices`` are integers from 0 to ``length - 1``."""
    return indices.dtype.kind in "iu" and (indices.size == 0 or bool(indices.min() >= 0 and indices.max() < length))


def open_features(path: str | Path, *, dataset: str | None = None, labels_dataset: str | None = None) -> FeatureFile:
    """Open a feature file: HDF5 (AnnData included), NumPy or safetensors.

    Parameters
    ----------
    path : str or Path
        A ``.h5``, ``.hdf5``, ``.h5ad``, ``.npy``, ``.npz`` or ``.safetensors`` file.
    dataset : str, optional
        Name of the matrix inside the file; by default ``features``, or the only matrix there is.
    labels_dataset : str, optional
        Name of the true labels inside the file; by default ``labels``, if it is there.

    Returns
    -------
    FeatureFile

    Examples
    --------
    >>> from cceclust.files import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     digits.shape, digits.read([0, 5]).shape
    ((1797, 64), (2, 64))
    """
    path = Path(path)
    refuse_what_is_no_file(path)
    opener = OPENERS.get(path.suffix.lower())
    if opener is None:
        raise FileContentError(
            f"{path}: cannot read files that end in {path.suffix!r}; expected one of {', '.join(OPENERS)}"
        )
    return opener(path, dataset, labels_dataset)


def assemble(
    path: Path,
    stored: Mapping[str, StoredArray],
    dataset: str | None,
    labels_dataset: str | None,
    *,
    attributes: Mapping[str, Any] | None = None,
    close: Callable[[], None] = lambda: None,
) -> FeatureFile:
    """Choose features, labels, paths and neighbours among the arrays of a file."""
    name = choose_matrix(path, stored, dataset)
    if labels_dataset is not None and labels_dataset.strip("/") not in stored:
        raise FileContentError(f"{path} has no dataset {labels_dataset!r} for labels; it has {contents(stored)}")
    return FeatureFile(
        path,
        name,
        stored[name].load(),
        labels=load_column(path, stored, (labels_dataset or "labels").strip("/")),
        paths=load_column(path, stored, "paths"),
        neighbors=load_neighbors(path, stored, name),
        attributes=attributes,
        close=close,
    )


def open_hdf5(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Open an HDF5 file, ours or anybody's."""
    with reading(path, "an HDF5 file"):
        file = h5py.File(path, "r")
        try:
            attributes = plain_attributes(file.attrs)
            if is_stamped(attributes):
                check_stamp(attributes, "features", path)
                refuse_incomplete(attributes, path)
            stored = hdf5_arrays(file)
            return assemble(path, stored, dataset, labels_dataset, attributes=attributes, close=file.close)
        except BaseException:
            file.close()
            raise


def refuse_incomplete(attributes: Mapping[str, Any], path: Path) -> None:
    """Raise if the file says that it was not finished."""
    if not attributes.get("complete", True):
        raise FileContentError(
            f"{path} is not complete: its extraction was stopped; repeat the same extract command to finish it"
        )


def open_npy(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Map a NumPy file into memory; labels are looked for in no other file."""
    if dataset is not None or labels_dataset is not None:
        raise InputError(f"{path}: a .npy file holds one unnamed array; leave out --dataset and --labels-dataset")
    with reading(path, "an array of numbers"):
        with path.open("rb") as file:
            shape, _, dtype = read_npy_header(file)
        if dtype.kind not in NUMBER_KINDS:
            raise FileContentError(f"{path} holds {dtype}; expected {NUMBERS}")
        is_there = 0 not in shape
        return FeatureFile(path, "", np.lib.format.open_memmap(path, mode="r") if is_there else np.empty(shape, dtype))


def open_npz(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Open an archive of NumPy arrays; only the arrays in use are read, into memory."""
    with (
        reading(path, "an archive of arrays of numbers"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return assemble(path, npz_arrays(archive), dataset, labels_dataset)


def open_safetensors(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Map the tensors of a safetensors file into memory."""
    with reading(path, "a safetensors file"):
        # The library checks the header, sizes and offsets included, but cannot map tensors; NumPy can.
        with safe_open(path, framework="numpy") as file:
            attributes = file.metadata() or {}
        if is_stamped(attributes):
            check_stamp(attributes, "features", path)
        return assemble(path, safetensors_arrays(path), dataset, labels_dataset, attributes=attributes)


OPENERS: dict[str, Callable[[Path, str | None, str | None], FeatureFile]] = {
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".h5ad": open_hdf5,
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
}


def write_features(
    path: str | Path,
    features: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    paths: ArrayLike | None = None,
    skipped: ArrayLike | None = None,
    attributes: Mapping[str, Any] | None = None,
    compress: bool = False,
    force: bool = False,
) -> None:
    """Write a feature file (HDF5).

    Parameters
    ----------
    path : str or Path
        The file to write; it must end in ``.h5`` or ``.hdf5``.
    features : array-like of shape (n_samples, n_features)
        float16, float32 or float64.
    labels, paths : array-like of shape (n_samples,), optional
        True labels (integers or strings), and where each row came from.
    skipped : array-like of str, optional
        What has no row because it could not be read, and why; a dataset of its own if there is any.
    attributes : mapping of str to str, int, float or bool, optional
        Provenance: backbone, source, licence, …
    compress : bool
        Write a smaller file that is slower to read.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.files import open_features, write_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_features(f"{folder}/tiny.h5", np.eye(3, dtype="float32"), labels=["a", "b", "a"])
    ...     with open_features(f"{folder}/tiny.h5") as tiny:
    ...         tiny.shape, tiny.labels.tolist()
    ((3, 3), ['a', 'b', 'a'])
    """
    path, matrix = Path(path), np.asarray(features)
    if path.suffix.lower() not in (".h5", ".hdf5"):
        raise InputError(f"cannot write features to a file that ends in {path.suffix!r}; expected .h5 or .hdf5")
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.name not in FLOAT_TYPES:
        raise InputError(
            f"features have shape {matrix.shape} and type {matrix.dtype}; expected a matrix (n_samples, n_features) of "
            f"{', '.join(FLOAT_TYPES)}"
        )
    columns = {
        name: np.asarray(column) for name, column in (("labels", labels), ("paths", paths)) if column is not None
    }
    for name, column in columns.items():
        if column.shape != matrix.shape[:1]:
            raise InputError(f"{name} have shape {column.shape}; expected one a row: {matrix.shape[:1]}")
    chunk_rows = min(len(matrix), max(1, CHUNK_BYTES // (matrix.shape[1] * matrix.dtype.itemsize)))
    with replacing(path, force=force) as part, writing_hdf5(part) as (file, storage):
        dataset = file.create_dataset(
            "features",
            matrix.shape,
            matrix.dtype,
            chunks=(chunk_rows, matrix.shape[1]),
            compression="gzip" if compress else None,
            compression_opts=9 if compress else None,
            shuffle=compress,
        )
        for start in range(0, len(matrix), chunk_rows):
            dataset[start : start + chunk_rows] = matrix[start : start + chunk_rows]
            storage.raise_error()
        for name, column in columns.items():
            write_column(file, name, column)
        if skipped is not None and len(np.asarray(skipped)):
            write_column(file, "skipped", skipped)
        file.attrs.update({**(attributes or {}), **stamp("features"), "complete": True})
