"""Feature files: one matrix with a row for each sample, in one file or several, behind one interface.

The contract of our own format (``.h5``) is in ``docs/files.md``.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import FileContentError, InputError
from cceclust.io.atomic import replacing
from cceclust.io.hdf5 import refuse_chunk_bombs, write_column, writing_hdf5
from cceclust.io.provenance import check_stamp, is_stamped, stamp
from cceclust.io.reading import by_ending, naming, refuse_bomb, refuse_what_is_no_file
from cceclust.io.shards import StackedRows, common_attributes, files_meant, stacked_columns
from cceclust.io.sparse_arrays import is_sparse
from cceclust.io.stored import (
    ARRAY_FILES,
    StoredFile,
    choose_matrix,
    contents,
    load_column,
    load_neighbors,
    load_row_names,
    refuse_names_in_npy,
    stored_file,
)
from cceclust.io.table_features import choose_columns
from cceclust.io.tables import STDIN, TABLE_FILES

__all__ = ["FeatureFile", "check_features_name", "existing_files", "feature_files", "open_features", "write_features"]

CHUNK_BYTES = 1 << 20
FLOAT_TYPES = ("float16", "float32", "float64")


class FeatureFile:
    """A matrix of features in a file, read in parts of any size.

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
        The source of each row, if the file has it.
    names : ndarray of shape (n_samples,) or None
        The name of each row, if the file has one.
    kept : dict of str to ndarray of shape (n_samples,)
        Other columns of the file that are to be kept with the clusters.
    columns : list of str or None
        The names of the features, if they are the columns of a table.
    neighbors : ndarray of shape (n_samples, n_neighbors) or None
        Nearest neighbours of each row, if the file has them for this matrix.
    attributes : dict
        What the file states about itself: backbone, weights, …
    choices : dict
        The names that were given to :func:`open_features` for labels, row names and columns to keep.
    """

    def __init__(
        self,
        path: Path,
        dataset: str,
        matrix: Any,
        *,
        labels: NDArray[Any] | None = None,
        paths: NDArray[Any] | None = None,
        names: NDArray[Any] | None = None,
        kept: Mapping[str, NDArray[Any]] | None = None,
        columns: list[str] | None = None,
        neighbors: NDArray[Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.dataset = dataset
        self.labels = labels
        self.paths = paths
        self.names = names
        self.kept = dict(kept or {})
        self.columns = columns
        self._neighbors = neighbors
        self.attributes = dict(attributes or {})
        self.choices: dict[str, Any] = {}
        self.notes: list[str] = []
        self._matrix = matrix
        self._close: Callable[[], None] = lambda: None
        self._check()

    def _check(self) -> None:
        where = f"{self.path}: dataset {self.dataset!r}" if self.dataset else f"{self.path}"
        shape = tuple(self._matrix.shape)
        if len(shape) != 2:
            raise FileContentError(f"{where} has shape {shape}; expected a matrix (n_samples, n_features)")
        if 0 in shape:
            raise FileContentError(f"{where} is empty: its shape is {shape}")
        if isinstance(self._matrix, h5py.Dataset):
            refuse_chunk_bombs(self._matrix)
        columns = {"labels": self.labels, "paths": self.paths, "names": self.names, **self.kept}
        for name, column in columns.items():
            if column is None:
                continue
            if column.ndim != 1:
                raise FileContentError(f"{self.path}: {name} have shape {column.shape}; expected 1-D")
            if len(column) != self.n_samples:
                raise FileContentError(
                    f"{self.path}: {len(column)} {name} for {self.n_samples} rows; expected one for each"
                )

    @property
    def neighbors(self) -> NDArray[Any] | None:
        """Nearest neighbours of each row, if the file has them for this matrix; checked on first use."""
        graph = self._neighbors
        if graph is None:
            return None
        problem = None
        if graph.ndim != 2 or len(graph) != self.n_samples or graph.shape[1] == 0:
            problem = f"have shape {graph.shape}; expected ({self.n_samples}, n_neighbors)"
        elif not is_index_of(graph, self.n_samples):
            # Compiled code uses them as indices without a check, and would read outside its arrays.
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
    def parts(self) -> list[tuple[Path, slice]]:
        """The files that hold the matrix, and the rows that each of them has."""
        if not isinstance(self._matrix, StackedRows):
            return [(self.path, slice(0, self.n_samples))]
        begins = self._matrix.begins.tolist()
        return [
            (part.path, slice(begin, end))
            for part, begin, end in zip(self._matrix.parts, begins[:-1], begins[1:], strict=True)
        ]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers in the file."""
        from cceclust.fit.source import computing_dtype

        return computing_dtype(self._matrix.dtype)

    def take(self, rows: NDArray[np.intp]) -> Any:
        whole = self.array() if self.is_sparse else None
        return (self.read(rows) if whole is None else whole.tocsr()[rows]).astype(self.dtype, copy=False)

    @property
    def is_sparse(self) -> bool:
        """Whether :meth:`array` returns a sparse matrix."""
        return is_sparse(self._matrix) or getattr(self._matrix, "is_sparse", False)

    @property
    def chunk_rows(self) -> int:
        """Number of successive rows that the file stores, and reads, as one."""
        chunks = getattr(self._matrix, "chunks", None)
        return min(int(chunks[0]), self.n_samples) if chunks else 1

    @property
    def block_rows(self) -> int:
        """Number of successive rows that are cheap to read at once: whole chunks, about 1 MiB."""
        return self.chunk_rows * max(1, CHUNK_BYTES // (self.chunk_rows * self.n_features * self.dtype.itemsize))

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

    def array(self) -> Any:
        """Return the whole matrix; ``.npy`` and ``.safetensors`` stay memory-mapped, sparse matrices sparse (CSR)."""
        if isinstance(self._matrix, StackedRows):
            return self._matrix.whole()
        is_loaded = isinstance(self._matrix, np.ndarray) or self.is_sparse
        return self._matrix if is_loaded else self.read(slice(None))

    def read(self, rows: slice | ArrayLike) -> NDArray[Any]:
        """Return the rows of a slice or of an array of indices (negative ones count from the end), in that order.

        Rows of a sparse matrix are made dense.
        """
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_samples)
            if step == 1:
                return self._read_run(start, stop)
            rows = np.arange(start, stop, step)
        indices = self._as_indices(rows)
        if type(self._matrix) is np.ndarray:
            return self._matrix[indices]
        return self._matrix[indices].toarray() if is_sparse(self._matrix) else self._gather(indices)

    def _read_run(self, start: int, stop: int) -> NDArray[Any]:
        forget_mapped_pages(self._matrix)
        with naming(f"{self.path}, rows {start} to {stop},", "compressed in a way that h5py knows"):
            rows = self._matrix[start : max(start, stop)]
            return rows.toarray() if is_sparse(rows) else np.asarray(rows)

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
        # h5py's own indexing by arrays is slow and needs sorted indices: read each block once instead. Of a memory map
        # only one block is held at a time.
        result = np.empty((len(indices), self.n_features), self.dtype)
        order = np.argsort(indices, kind="stable")
        blocks, begins = np.unique(indices[order] // self.block_rows, return_index=True)
        for block, wanted in zip(blocks, np.split(order, begins[1:]), strict=False):
            start = int(block) * self.block_rows
            result[wanted] = self._read_run(start, start + self.block_rows)[indices[wanted] - start]
        return result

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        from cceclust.fit.source import block_slices

        whole = self.array().tocsr() if self.is_sparse else None
        for where in block_slices(self.shape, self.dtype):
            yield where, (self.read(where) if whole is None else whole[where]).astype(self.dtype, copy=False)


def forget_mapped_pages(matrix: Any) -> None:
    """Release the pages of a memory map that were read before, so that a pass over a large file needs little memory."""
    mapping = getattr(matrix, "base", None)
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def is_index_of(indices: NDArray[Any], length: int) -> bool:
    """Tell whether all of ``indices`` are integers from 0 to ``length - 1``."""
    return indices.dtype.kind in "iu" and (indices.size == 0 or bool(indices.min() >= 0 and indices.max() < length))


def open_features(
    path: str | Path | Sequence[str | Path],
    *,
    dataset: str | None = None,
    labels_dataset: str | None = None,
    names_dataset: str | None = None,
    keep: Sequence[str] = (),
) -> FeatureFile:
    """Open features: HDF5 (AnnData included), NumPy, SciPy, safetensors, tables; one file or several.

    Parameters
    ----------
    path : str, Path or sequence of them
        A ``.h5``, ``.hdf5``, ``.h5ad``, ``.npy``, ``.npz``, ``.safetensors``, ``.csv``, ``.tsv``, ``.parquet``,
        ``.arrow`` or ``.feather`` file; ``-`` for comma-separated values on standard input. A folder, a pattern such as
        ``features/*.h5`` or several files are one matrix, with the rows of the files in sorted order, or in the order
        given.
    dataset : str, optional
        Name of the matrix inside the file; by default ``features``, or the only matrix there is. In a table: the name
        of a column of lists, or the names of columns with commas between them; by default all columns that have no
        other use.
    labels_dataset : str, optional
        Name of the true labels inside the file; by default ``labels``, if it is there; in a table also ``label`` or
        ``class``.
    names_dataset : str, optional
        Name of the row names inside the file; by default ``names``, the index of an AnnData file or, in a table, a
        first column without a name, ``id``, ``name`` or ``index``, if it is there.
    keep : sequence of str
        Names of other columns inside the file to keep with the clusters. In a table they are no features.

    Returns
    -------
    FeatureFile

    Examples
    --------
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     digits.shape, digits.read([0, 5]).shape
    ((1797, 64), (2, 64))
    """
    files = feature_files(path)
    roles = {"labels_dataset": labels_dataset, "names_dataset": names_dataset, "keep": list(dict.fromkeys(keep))}
    with ExitStack() as stack:
        parts = [stack.enter_context(open_one(file, dataset=dataset, **roles)) for file in files]
        is_one = len(parts) == 1
        features = (
            parts[0] if is_one else stacked(Path(path) if isinstance(path, str | Path) else files[0].parent, parts)
        )
        opened = stack.pop_all()
    features._close = features._close if is_one else opened.close
    features.choices = {name: value for name, value in roles.items() if value}
    return features


def feature_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files that a path, a folder, a pattern or several of them stand for, in the order of their rows."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(file) for file in path]
    return files_meant(paths, (*ARRAY_FILES, *TABLE_FILES))


def existing_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files of features, after a check that they are there."""
    files = feature_files(path)
    for file in files:
        if file != STDIN:
            refuse_what_is_no_file(file)
    return files


def stacked(path: Path, parts: Sequence[FeatureFile]) -> FeatureFile:
    """Put feature files together to one matrix. What only some of them have is left out."""
    columns = {name: stacked_columns([getattr(part, name) for part in parts]) for name in ("labels", "paths", "names")}
    kept = {name: stacked_columns([part.kept[name] for part in parts]) for name in parts[0].kept}
    return FeatureFile(
        path,
        parts[0].dataset,
        StackedRows(parts),
        **columns,
        kept={name: column for name, column in kept.items() if column is not None},
        columns=parts[0].columns,
        attributes=common_attributes([part.attributes for part in parts]),
    )


def open_one(path: Path, **roles: Any) -> FeatureFile:
    """Open one file of features."""
    if path == STDIN or path.suffix.lower() in TABLE_FILES:
        return FeatureFile(
            Path("stdin") if path == STDIN else path, roles["dataset"] or "", **choose_columns(path, **roles)
        )
    refuse_what_is_no_file(path)
    refuse_names_in_npy(path, roles["dataset"], roles["labels_dataset"], roles["names_dataset"], *roles["keep"])
    with ExitStack() as stack:
        file = stack.enter_context(stored_file(path))
        if is_stamped(file.attributes):
            check_stamp(file.attributes, "features", path)
            refuse_incomplete(file.attributes, path)
        features = choose_arrays(path, file, **roles)
        if isinstance(features._matrix, h5py.Dataset):
            # The rows are read later, from the open file.
            features._close = stack.pop_all().close
    return features


def choose_arrays(
    path: Path,
    file: StoredFile,
    dataset: str | None,
    labels_dataset: str | None,
    names_dataset: str | None,
    keep: Sequence[str],
) -> FeatureFile:
    """Choose features, labels, paths, names and neighbours among the arrays of a file."""
    stored = file.arrays
    name = choose_matrix(path, stored, dataset)
    wanted = {"for labels": [labels_dataset], "for row names": [names_dataset], "to keep": keep}
    for purpose, columns in wanted.items():
        for column in columns:
            if column is not None and column.strip("/") not in stored:
                raise FileContentError(f"{path} has no dataset {column!r} {purpose}; it has {contents(stored)}")
    refuse_bomb(path, name, stored[name].n_bytes)
    kept = {column: load_column(path, stored, column.strip("/")) for column in keep}
    return FeatureFile(
        path,
        name,
        stored[name].load(),
        labels=load_column(path, stored, (labels_dataset or "labels").strip("/")),
        paths=load_column(path, stored, "paths"),
        names=load_row_names(path, stored, names_dataset, matrix=name),
        kept={column: values for column, values in kept.items() if values is not None},
        neighbors=load_neighbors(path, stored, name),
        attributes=file.attributes,
    )


def refuse_incomplete(attributes: Mapping[str, Any], path: Path) -> None:
    """Raise if the file is marked as unfinished."""
    if not attributes.get("complete", True):
        raise FileContentError(
            f"{path} is not complete: its extraction was stopped; repeat the same extract command to finish it"
        )


def check_features_name(path: str | Path) -> None:
    """Raise unless features can be written to a file of this name; call this before long work."""
    by_ending(path, dict.fromkeys((".h5", ".hdf5")), "write features to", InputError)


def write_features(
    path: str | Path,
    features: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    paths: ArrayLike | None = None,
    names: ArrayLike | None = None,
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
    labels, paths, names : array-like of shape (n_samples,), optional
        True labels (integers or strings), the source of each row, and its name.
    skipped : array-like of str, optional
        What has no row because it could not be read, and why; stored as a separate dataset if not empty.
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
    >>> from cceclust.io import open_features, write_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_features(f"{folder}/tiny.h5", np.eye(3, dtype="float32"), labels=["a", "b", "a"])
    ...     with open_features(f"{folder}/tiny.h5") as tiny:
    ...         tiny.shape, tiny.labels.tolist()
    ((3, 3), ['a', 'b', 'a'])
    """
    path, matrix = Path(path), np.asarray(features)
    check_features_name(path)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.name not in FLOAT_TYPES:
        raise InputError(
            f"features have shape {matrix.shape} and type {matrix.dtype}; expected a matrix (n_samples, n_features) of "
            f"{', '.join(FLOAT_TYPES)}"
        )
    given = {"labels": labels, "paths": paths, "names": names}
    columns = {name: np.asarray(column) for name, column in given.items() if column is not None}
    for name, column in columns.items():
        if column.shape != matrix.shape[:1]:
            raise InputError(f"{name} have shape {column.shape}; expected one for each row: {matrix.shape[:1]}")
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
