"""Feature files: one matrix with a row for each sample, in one file or several, behind one interface.

The contract of our own format (``.h5``) is in ``docs/files.md``.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.fit.source import block_slices, computing_dtype
from cceclust.io.atomic import replacing
from cceclust.io.hdf5 import OBSERVATIONS, write_hdf5
from cceclust.io.provenance import check_stamp, stamp
from cceclust.io.reading import StoredFile, by_ending, naming, refuse_what_is_no_file
from cceclust.io.stored import ARRAY_FILES, choose_matrix, contents, load_column, stored_file
from cceclust.io.table_features import choose_columns
from cceclust.io.tables import STDIN, TABLE_FILES

__all__ = ["FeatureFile", "clusters_beside", "existing_files", "named_after", "open_features", "write_features"]

# Rows here and there are read in runs of about this size.
RUN_BYTES = 1 << 20
FLOAT_TYPES = ("float16", "float32", "float64")
CLUSTERS = ".clusters.h5"
# How the names of files end that hold what was found in others.
RESULTS = (CLUSTERS, ".predicted.h5", ".model.safetensors")
WILDCARD = re.compile(r"[*?[]")


@dataclass(eq=False)
class FeatureFile:
    """A matrix of features in a file, read in parts of any size, with what the file knows of its rows.

    Made by :func:`open_features`. Use it in a ``with`` statement, or call ``close()``.

    Attributes
    ----------
    path, dataset : Path and str
        The file, and the name of the matrix inside it; empty for ``.npy``, which holds only one.
    matrix : object
        The stored numbers, which can be read by runs of rows.
    labels, paths, names : ndarray of shape (n_samples,) or None
        True labels (integers or strings), the source and the name of each row, if the file has them.
    kept : dict of str to ndarray of shape (n_samples,)
        Other columns of the file that are to be kept with the clusters.
    columns : list of str or None
        The names of the features, if they are the columns of a table.
    attributes : dict
        What the file states about itself: backbone, weights, …
    notes : list of str
        What a user should be told about the reading.
    choices : dict
        The names that were given to :func:`open_features` for labels, row names and columns to keep.
    """

    path: Path
    dataset: str
    matrix: Any
    labels: NDArray[Any] | None = None
    paths: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    kept: dict[str, NDArray[Any]] = field(default_factory=dict)
    columns: list[str] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    choices: dict[str, Any] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        where = f"{self.path}: dataset {self.dataset!r}" if self.dataset else f"{self.path}"
        shape = tuple(self.matrix.shape)
        if len(shape) != 2 or 0 in shape:
            raise FileContentError(f"{where} has shape {shape}; expected a matrix (n_samples, n_features), not empty")
        for name, column in {"labels": self.labels, "paths": self.paths, "names": self.names, **self.kept}.items():
            if column is not None and column.shape != shape[:1]:
                raise FileContentError(
                    f"{self.path}: {name} have shape {column.shape}; expected one for each row: {shape[:1]}"
                )

    @property
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features)."""
        return self.matrix.shape[0], self.matrix.shape[1]

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
        """float32 or float64: the type of all rows that are handed out."""
        return computing_dtype(self.matrix.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are handed out as a sparse matrix (CSR), except by :meth:`read`."""
        return hasattr(self.matrix, "tocsr") or getattr(self.matrix, "is_sparse", False)

    @property
    def parts(self) -> list[tuple[Path, slice]]:
        """The files that hold the matrix, and the rows that each of them has."""
        if isinstance(self.matrix, StackedRows):
            return [(part.path, place) for part, place in self.matrix.parts]
        return [(self.path, slice(0, self.n_samples))]

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def array(self) -> Any:
        """Return the whole matrix; ``.npy`` stays memory-mapped if its type allows it, sparse matrices stay sparse."""
        return self.run(0, self.n_samples)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield successive blocks of rows with their place."""
        for where in block_slices(self.shape, self.dtype):
            yield where, self.run(where.start, where.stop)

    def run(self, start: int, stop: int) -> Any:
        # The pages of a memory map that were read before are released: a pass over a large file needs little memory.
        mapping = getattr(self.matrix, "base", None)
        if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)
        with naming(f"{self.path}, rows {start} to {stop},", "compressed in a way that h5py knows"):
            return self.matrix[start:stop].astype(self.dtype, copy=False)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return the rows with these ascending numbers, as an array or a CSR matrix."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return self.run(int(rows[0]), int(rows[-1]) + 1)
        if self.is_sparse or type(self.matrix) is np.ndarray:
            whole = self.array() if isinstance(self.matrix, StackedRows) else self.matrix
            return whole[rows].astype(self.dtype, copy=False)
        # Each chunk of the file is read once, and of a memory map only one run of rows is held at a time.
        chunk = chunk_rows(self.matrix)
        run_rows = chunk * max(1, RUN_BYTES // (chunk * self.n_features * self.matrix.dtype.itemsize))
        result = np.empty((len(rows), self.n_features), self.dtype)
        runs, begins = np.unique(rows // run_rows, return_index=True)
        for start, begin, end in zip(runs * run_rows, begins, [*begins, len(rows)][1:], strict=True):
            stop = min(start + run_rows, self.n_samples)
            result[begin:end] = self.run(int(start), int(stop))[rows[begin:end] - start]
        return result

    def read(self, rows: slice | ArrayLike) -> NDArray[Any]:
        """Return the rows of a slice or of an array of row numbers, in that order; sparse ones are made dense."""
        indices = np.arange(*rows.indices(self.n_samples)) if isinstance(rows, slice) else np.asarray(rows)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise InputError(f"rows have shape {indices.shape} and type {indices.dtype}; expected a list of integers")
        outside = (indices < 0) | (indices >= self.n_samples)
        if outside.any():
            raise InputError(f"there is no row {indices[outside][0]}: {self.path} has {self.n_samples} rows")
        ascending, places = np.unique(indices.astype(np.intp), return_inverse=True)
        found = self.take(ascending)
        return np.asarray((found.toarray() if self.is_sparse else found)[places])


def chunk_rows(matrix: Any) -> int:
    return int((getattr(matrix, "chunks", None) or (1,))[0])


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
        ``.arrow``, ``.feather`` or ``.jsonl`` file; ``-`` for comma-separated values on standard input. A folder, a
        pattern such as ``features/*.h5`` or several files are one matrix, with the rows of the files in sorted order,
        or in the order given.
    dataset : str, optional
        Name of the matrix inside the file; by default ``features``, or the only matrix there is. In a table: the name
        of a column of lists, or the names of columns with commas between them; by default all columns that have no
        other use.
    labels_dataset : str, optional
        Name of the true labels inside the file; by default ``labels``, if it is there; in a table also ``label`` or
        ``class``.
    names_dataset : str, optional
        Name of the row names inside the file; by default ``names``, the index of an AnnData file or, in a table, a
        first column without a name, ``id``, ``name`` or ``index``, or else a column of whole numbers that only rise.
    keep : sequence of str
        Names of other columns inside the file to keep with the clusters. In a table they are no features.

    Examples
    --------
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     digits.shape, digits.read([0, 5]).shape
    ((1797, 64), (2, 64))
    """
    files = existing_files(path)
    roles = {"labels_dataset": labels_dataset, "names_dataset": names_dataset, "keep": list(dict.fromkeys(keep))}
    with ExitStack() as stack:
        parts = [stack.enter_context(open_one(file, dataset=dataset, **roles)) for file in files]
        features = parts[0]
        if len(parts) > 1:
            features = stacked(Path(path) if isinstance(path, str | Path) else files[0].parent, parts)
            features.close = stack.pop_all().close
        stack.pop_all()
    features.choices = {name: value for name, value in roles.items() if value}
    return features


def existing_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files that a path, a folder, a pattern or several of them stand for, after a check of each."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(file) for file in path]
    files = [file for path in paths for file in files_of(path)]
    if not files:
        raise InputError("there are no features; name a file")
    if len(set(files)) < len(files):
        raise InputError(f"{next(file for file in files if files.count(file) > 1)} is given twice; name each file once")
    for file in files:
        if file != STDIN:
            refuse_what_is_no_file(file)
    return files


def files_of(path: Path) -> list[Path]:
    """Return the files of a folder or a pattern by name, without hidden ones and results of earlier fits."""
    endings = (*ARRAY_FILES, *TABLE_FILES)
    if path.is_dir():
        found = [file for file in path.iterdir() if file.suffix.lower() in endings]
        problem = f"{path} is a folder without feature files; expected some that end in {', '.join(endings)}"
    elif WILDCARD.search(str(path)) and not path.exists():
        start = Path(path.anchor)
        found = list(start.glob(str(path.relative_to(start))))
        problem = f"there is no file that matches {path}"
    else:
        return [path]
    meant = [file for file in found if file.is_file() and not file.name.startswith(".")]
    files = sorted(file for file in meant if not file.name.endswith(RESULTS))
    if not files:
        raise FileError(problem)
    return files


def clusters_beside(file: Path) -> Path:
    return file.with_suffix(CLUSTERS)


def named_after(paths: Sequence[Path]) -> Path | None:
    """Return the file or folder that results of these features are named after; None if there is no such name.

    Several files and the files of a pattern are named after their folder.
    """
    if len(paths) == 1 and paths[0].exists():
        return paths[0] if paths[0].name not in ("", "..") else paths[0].resolve()
    # The folder of a pattern is the one above its first part that has a wildcard.
    patterns = [[part for part in (path, *path.parents) if WILDCARD.search(part.name)] for path in paths]
    folders = {(parts or [path])[-1].parent for parts, path in zip(patterns, paths, strict=True)}
    folder = folders.pop() if len(folders) == 1 else Path()
    return folder if folder.name not in ("", "..") else None


class StackedRows:
    """The rows of several feature files of the same columns, one file after the other, in runs of rows."""

    def __init__(self, features: Sequence[FeatureFile]) -> None:
        first = features[0]
        for part in features[1:]:
            if part.n_features != first.n_features or part.columns != first.columns:
                raise FileContentError(
                    f"{part.path} has other columns ({part.n_features:,}) than {first.path} ({first.n_features:,}); "
                    "expected the same in all files, in the same order"
                )
        ends = np.cumsum([part.n_samples for part in features]).tolist()
        self.parts = [(part, slice(end - part.n_samples, end)) for part, end in zip(features, ends, strict=True)]
        self.dtype = np.result_type(*(part.dtype for part in features))
        self.is_sparse = all(part.is_sparse for part in features)
        self.shape = (ends[-1], first.n_features)
        self.chunks = (max(chunk_rows(part.matrix) for part in features), first.n_features)

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        pieces = [
            part.run(max(start, place.start) - place.start, min(stop, place.stop) - place.start)
            for part, place in self.parts
            if start < place.stop and place.start < stop
        ]
        if self.is_sparse:
            from scipy import sparse

            return sparse.vstack(pieces, format="csr", dtype=self.dtype)
        dense = [piece.toarray() if hasattr(piece, "toarray") else piece for piece in pieces]
        return dense[0] if len(dense) == 1 else np.concatenate(dense)


def stacked_columns(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Join a column of several files; None if not all files have it."""
    there = [column for column in columns if column is not None]
    if len(there) < len(columns):
        return None
    is_text = any(column.dtype.kind == "U" for column in there)
    return np.concatenate([column.astype(str) for column in there] if is_text else there)


def stacked(path: Path, parts: Sequence[FeatureFile]) -> FeatureFile:
    """Put feature files together to one matrix. What only some of them have is left out."""
    first = parts[0]
    known = ("labels", "paths", "names")
    columns: dict[str, Any] = {name: stacked_columns([getattr(part, name) for part in parts]) for name in known}
    columns["kept"] = {name: stacked_columns([part.kept[name] for part in parts]) for name in first.kept}
    shared = [item for item in first.attributes.items() if all(item in part.attributes.items() for part in parts)]
    return replace(first, path=path, matrix=StackedRows(parts), attributes=dict(shared), **columns)


def open_one(path: Path, **roles: Any) -> FeatureFile:
    with ExitStack() as stack:
        file = stack.enter_context(stored_file(path))
        if path == STDIN or path.suffix.lower() in TABLE_FILES:
            shown = Path("stdin") if path == STDIN else path
            return FeatureFile(shown, roles["dataset"] or "", **choose_columns(shown, file.arrays, **roles))
        # Other tools may use the attribute "format" differently.
        if str(file.attributes.get("format", "")).startswith("cceclust-"):
            check_stamp(file.attributes, "features", path)
            if not file.attributes.get("complete", True):
                raise FileContentError(
                    f"{path} is not complete: its extraction was stopped; repeat the same extract command to finish it"
                )
        features = choose_arrays(path, file, **roles)
        # The rows are read later, from the open file.
        features.close = stack.pop_all().close
    return features


def choose_arrays(path: Path, file: StoredFile, **roles: Any) -> FeatureFile:
    stored = file.arrays
    name = choose_matrix(path, stored, roles["dataset"])

    def column(wanted: str | None, purpose: str, default: str = "") -> NDArray[Any] | None:
        if wanted is not None and wanted.strip("/") not in stored:
            raise FileContentError(f"{path} has no dataset {wanted!r} {purpose}; it has {contents(stored)}")
        return load_column(path, stored, (wanted or default).strip("/"))

    # Other matrices of an AnnData file, as those of its variables, have other rows than its index.
    has_index = OBSERVATIONS in stored and stored[OBSERVATIONS].shape == stored[name].shape[:1]
    usual_names = OBSERVATIONS if has_index and "names" not in stored else "names"
    names = column(roles["names_dataset"], "for row names", usual_names)
    return FeatureFile(
        path,
        name,
        stored[name].load(),
        labels=column(roles["labels_dataset"], "for labels", "labels"),
        paths=load_column(path, stored, "paths"),
        names=None if names is None else names.astype(str),
        kept={wanted: np.asarray(column(wanted, "to keep")) for wanted in roles["keep"]},
        attributes=file.attributes,
    )


def write_features(
    path: str | Path,
    features: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    paths: ArrayLike | None = None,
    names: ArrayLike | None = None,
    skipped: ArrayLike | None = None,
    attributes: Mapping[str, Any] | None = None,
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
    attributes : mapping, optional
        Provenance: backbone, source, licence, …
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
    matrix = np.asarray(features)
    by_ending(path, dict.fromkeys((".h5", ".hdf5")), "write features to", InputError)
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
    if skipped is not None and np.size(skipped):
        columns["skipped"] = np.asarray(skipped)
    stated = {**(attributes or {}), **stamp("features"), "complete": True}
    with replacing(path, force=force) as part:
        write_hdf5(part, {"features": matrix, **columns}, stated)
