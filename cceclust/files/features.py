"""Feature files: one matrix, a row a sample, in any of several formats, opened as one thing.

The contract of our own format (``.h5``) is in ``docs/files.md``.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.files.atomic import replacing
from cceclust.files.provenance import check_stamp, stamp

__all__ = ["FeatureFile", "open_features", "write_features"]

CHUNK_BYTES = 1 << 20
SAFETENSORS_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


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
        Nearest neighbours of each row, if the file has them.
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
        self.neighbors = neighbors
        self.attributes = dict(attributes or {})
        self._matrix = matrix
        self._close = close
        self._check()

    def _check(self) -> None:
        where = f"{self.path}: dataset {self.dataset!r}" if self.dataset else f"{self.path}"
        if len(self._matrix.shape) != 2:
            raise FileContentError(
                f"{where} has shape {tuple(self._matrix.shape)}; expected a matrix (n_samples, n_features)"
            )
        if 0 in self._matrix.shape:
            raise FileContentError(f"{where} is empty: its shape is {tuple(self._matrix.shape)}")
        for name in ("labels", "paths", "neighbors"):
            column = getattr(self, name)
            if column is not None and len(column) != self.n_samples:
                raise FileContentError(
                    f"{self.path}: {len(column)} {name} for {self.n_samples} rows; expected one a row"
                )

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
        """Number of successive rows that are cheap to read at once: a chunk's, or about 1 MiB."""
        chunks = getattr(self._matrix, "chunks", None)
        if chunks:
            return int(chunks[0])
        return max(1, CHUNK_BYTES // (self.n_features * self.dtype.itemsize))

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
        """Return the rows of a slice or of an array of indices, in that order."""
        try:
            if isinstance(rows, slice) or isinstance(self._matrix, np.ndarray):
                return np.asarray(self._matrix[rows])
            return self._read_indices(np.asarray(rows))
        except OSError as error:
            raise FileContentError(f"{self.path} is damaged: {error}") from error

    def _read_indices(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        # h5py's own indexing by arrays is slow and wants them sorted: read each chunk once instead.
        indices = np.where(indices < 0, indices + self.n_samples, indices)
        result = np.empty((len(indices), self.n_features), self.dtype)
        block_of_index = indices // self.block_rows
        for block in np.unique(block_of_index):
            start = block * self.block_rows
            wanted = np.flatnonzero(block_of_index == block)
            result[wanted] = self._matrix[start : start + self.block_rows][indices[wanted] - start]
        return result

    def blocks(self, n_rows: int | None = None) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield ``(first row, rows)`` from top to bottom, about ``n_rows`` at a time."""
        step = n_rows or self.block_rows
        for start in range(0, self.n_samples, step):
            yield start, self.read(slice(start, start + step))

    def shuffled_batches(
        self, batch_size: int, generator: np.random.Generator, *, rows_in_memory: int
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield ``(indices, rows)`` so that every row comes once, in a random order that disks like.

        Runs of successive rows are read in a random order into a buffer of at most ``rows_in_memory`` rows,
        and batches are drawn at random from the buffer. Only the last batch may be smaller.

        Parameters
        ----------
        batch_size : int
            Rows a batch.
        generator : numpy.random.Generator
            Source of the order.
        rows_in_memory : int
            Size of the buffer. The larger it is, the better the shuffling.
        """
        # Many short runs mix better than few long ones when the file is sorted by class.
        run = max(1, min(self.block_rows, rows_in_memory // 16))
        starts = generator.permutation(np.arange(0, self.n_samples, run))
        runs_at_once = max(1, rows_in_memory // run)
        indices, rows = np.empty(0, np.intp), np.empty((0, self.n_features), self.dtype)
        for first in range(0, len(starts), runs_at_once):
            chosen = np.sort(starts[first : first + runs_at_once])
            pieces = [np.arange(start, min(start + run, self.n_samples)) for start in chosen]
            indices = np.concatenate([indices, *pieces])
            rows = np.concatenate([rows, *(self.read(slice(piece[0], piece[-1] + 1)) for piece in pieces)])
            order = generator.permutation(len(indices))
            is_last = first + runs_at_once >= len(starts)
            whole = len(order) if is_last else len(order) - len(order) % batch_size
            for begin in range(0, whole, batch_size):
                batch = order[begin : min(begin + batch_size, whole)]
                yield indices[batch], rows[batch]
            indices, rows = indices[order[whole:]], rows[order[whole:]]


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
    opener = OPENERS.get(path.suffix.lower())
    refuse_what_is_no_file(path)
    if opener is None:
        raise FileContentError(
            f"{path}: cannot read files that end in {path.suffix!r}; expected one of {', '.join(OPENERS)}"
        )
    return opener(path, dataset, labels_dataset)


def refuse_what_is_no_file(path: Path) -> None:
    """Raise a clear error for what is missing, a directory, unreadable or empty."""
    if path.is_dir():
        raise FileError(f"{path} is a directory; expected a file")
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise FileContentError(f"{path} is empty (0 bytes)")
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except PermissionError:
        raise FileError(f"{path} cannot be read: permission denied") from None


def open_hdf5(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Open an HDF5 file, ours or anybody's."""
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise FileContentError(f"{path} is damaged or not an HDF5 file ({error})") from None
    try:
        attributes = {name: as_text(value) for name, value in file.attrs.items()}
        if "format" in attributes:
            check_stamp(attributes, "features", path)
        if not attributes.get("complete", True):
            raise FileContentError(
                f"{path} is not complete: its extraction was stopped; repeat the same extract command to finish it"
            )
        matrices: list[str] = []
        file.visititems(lambda name, item: matrices.append(name) if is_matrix(item) else None)
        name = choose_dataset(path, dataset, matrices, everything=hdf5_names(file))
        return FeatureFile(
            path,
            name,
            numeric(file[name], path, name),
            labels=read_labels(file, labels_dataset, path),
            paths=read_column(file["paths"]) if "paths" in file else None,
            neighbors=file["neighbors"][...] if "neighbors" in file else None,
            attributes=attributes,
            close=file.close,
        )
    except BaseException:
        file.close()
        raise


def is_matrix(item: Any) -> bool:
    """Tell whether an HDF5 item could be features."""
    is_numeric = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub" and len(item.shape) == 2
    return is_numeric and item.name.strip("/") not in ("neighbors", "probabilities")


def hdf5_names(file: h5py.File) -> list[str]:
    """List all datasets of a file."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def choose_dataset(path: Path, wanted: str | None, matrices: list[str], *, everything: list[str]) -> str:
    """Return the name of the matrix to read: the wanted one, ``features``, or the only one."""
    if wanted is not None:
        if wanted.strip("/") in everything:
            return wanted.strip("/")
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {listed(everything)}")
    if "features" in everything:
        return "features"
    if len(matrices) == 1:
        return matrices[0]
    if matrices:
        raise FileContentError(f"{path} has several matrices; choose one with --dataset: {listed(matrices)}")
    raise FileContentError(f"{path} has no matrix of numbers; it has {listed(everything)}")


def listed(names: list[str]) -> str:
    """Join names for an error message."""
    shown = ", ".join(names[:12]) or "none"
    return shown + (f", … ({len(names)} in all)" if len(names) > 12 else "")


def numeric(matrix: Any, path: Path, name: str) -> Any:
    """Return the matrix if it holds real numbers."""
    if matrix.dtype.kind not in "fiub":
        raise FileContentError(
            f"{path}: dataset {name!r} holds {matrix.dtype}; expected numbers (float16, float32, float64 or integers)"
        )
    return matrix


def read_labels(file: h5py.File, name: str | None, path: Path) -> NDArray[Any] | None:
    """Read true labels: a column, or a categorical column of an AnnData file."""
    if name is None:
        name = "labels"
        if name not in file:
            return None
    if name not in file:
        raise FileContentError(f"{path} has no dataset {name!r} for labels; it has {listed(hdf5_names(file))}")
    item = file[name]
    if isinstance(item, h5py.Group):
        if "codes" not in item or "categories" not in item:
            raise FileContentError(f"{path}: {name!r} is a group, not a column of labels")
        # AnnData marks missing values with code -1, which picks the empty string appended here.
        categories = np.append(read_column(item["categories"]).astype(str), "")
        return np.asarray(categories[item["codes"][...]])
    return read_column(item)


def read_column(dataset: h5py.Dataset) -> NDArray[Any]:
    """Read a column of integers or strings."""
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.asarray(dataset.asstr()[...], dtype=str)
    return np.asarray(dataset[...])


def as_text(value: Any) -> Any:
    """Return an HDF5 attribute as a plain Python value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value


def open_npy(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Map a NumPy file into memory; labels are looked for in no other file."""
    if dataset is not None or labels_dataset is not None:
        raise InputError(f"{path}: a .npy file holds one unnamed array; leave out --dataset and --labels-dataset")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FileContentError(f"{path} is damaged or not an array of numbers ({error})") from None
    return FeatureFile(path, "", numeric(matrix, path, path.name))


def open_npz(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Open an archive of NumPy arrays; its matrix is read into memory."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FileContentError(f"{path} is damaged or not an archive of arrays of numbers ({error})") from None
    return from_arrays(path, arrays, dataset, labels_dataset)


def open_safetensors(path: Path, dataset: str | None, labels_dataset: str | None) -> FeatureFile:
    """Map the tensors of a safetensors file into memory."""
    try:
        arrays = map_safetensors(path)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise FileContentError(f"{path} is damaged or not a safetensors file ({error})") from None
    return from_arrays(path, arrays, dataset, labels_dataset)


def map_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return memory maps of the tensors whose types NumPy knows."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > path.stat().st_size:
            raise ValueError("its header is longer than the file")
        header = json.loads(file.read(header_bytes))
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] in SAFETENSORS_TYPES:
            begin, end = entry["data_offsets"]
            if 8 + header_bytes + end > path.stat().st_size:
                raise ValueError("it is shorter than its header says")
            dtype, shape = np.dtype(SAFETENSORS_TYPES[entry["dtype"]]), tuple(entry["shape"])
            offset = 8 + header_bytes + begin
            is_there = end > begin
            arrays[name] = np.memmap(path, dtype, "r", offset, shape) if is_there else np.empty(shape, dtype)
    return arrays


def from_arrays(
    path: Path, arrays: dict[str, NDArray[Any]], dataset: str | None, labels_dataset: str | None
) -> FeatureFile:
    """Choose features, labels, paths and neighbours among named arrays."""
    matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiub"]
    name = choose_dataset(path, dataset, matrices, everything=list(arrays))
    if labels_dataset is not None and labels_dataset not in arrays:
        raise FileContentError(f"{path} has no array {labels_dataset!r} for labels; it has {listed(list(arrays))}")
    return FeatureFile(
        path,
        name,
        numeric(arrays[name], path, name),
        labels=arrays.get(labels_dataset or "labels"),
        paths=arrays.get("paths"),
        neighbors=arrays.get("neighbors"),
    )


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
    attributes: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write a feature file (HDF5).

    Parameters
    ----------
    path : str or Path
        The file to write.
    features : array-like of shape (n_samples, n_features)
        float16, float32 or float64.
    labels, paths : array-like of shape (n_samples,), optional
        True labels (integers or strings), and where each row came from.
    attributes : mapping, optional
        Provenance: backbone, source, licence, …
    force : bool
        Overwrite an existing file.
    """
    matrix = np.asarray(features)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(f"features have shape {matrix.shape} and type {matrix.dtype}; expected a matrix of numbers")
    columns = {"labels": labels, "paths": paths}
    for name, column in columns.items():
        if column is not None and len(np.asarray(column)) != len(matrix):
            raise InputError(f"{len(np.asarray(column))} {name} for {len(matrix)} rows; expected one a row")
    with replacing(path, force=force) as part, h5py.File(part, "w") as file:
        row_bytes = max(1, matrix.shape[1] * matrix.dtype.itemsize)
        chunk_rows = min(len(matrix), max(1, CHUNK_BYTES // row_bytes))
        file.create_dataset("features", data=matrix, chunks=(chunk_rows, matrix.shape[1]))
        for name, column in columns.items():
            if column is not None:
                write_column(file, name, column)
        file.attrs.update({**stamp("features"), **(attributes or {}), "complete": True})


def write_column(file: h5py.File, name: str, column: ArrayLike) -> None:
    """Write a column of integers or strings."""
    values = np.asarray(column)
    if values.dtype.kind in "US":
        file.create_dataset(name, data=values.astype(object), dtype=h5py.string_dtype())
    else:
        file.create_dataset(name, data=values)
