"""Files of arrays in any format: which there are, which is the matrix, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.io.array_files import open_npy, open_npz, open_safetensors
from cceclust.io.hdf5 import open_hdf5
from cceclust.io.reading import StoredArray, StoredFile, by_ending, listed, naming, refuse_what_is_no_file
from cceclust.io.tables import STDIN, TABLE_FILES

__all__ = ["ARRAY_FILES", "choose_matrix", "contents", "load_array", "load_column", "stored_file"]

# Parts of AnnData files that do not have a row for each observation and a column for each feature. Files of version 0.2
# may have neighbours beside their features.
NO_FEATURES = ("obsp/", "varm/", "varp/", "uns/", "neighbors", "probabilities")
HDF5 = ("an HDF5 file", open_hdf5)
ARRAY_FILES: dict[str, tuple[str, Callable[[Path], StoredFile]]] = {
    ".h5": HDF5,
    ".hdf5": HDF5,
    ".h5ad": HDF5,
    ".npy": ("an array of numbers or text", open_npy),
    ".npz": ("an archive of arrays", open_npz),
    ".safetensors": ("a safetensors file", open_safetensors),
}


@contextmanager
def stored_file(path: Path) -> Iterator[StoredFile]:
    """Open a file of arrays or a table, or separated values on standard input; every error names the file."""
    if path != STDIN:
        refuse_what_is_no_file(path)
    known = ARRAY_FILES | TABLE_FILES
    what, open_file = TABLE_FILES[".csv"] if path == STDIN else by_ending(path, known, "read", FileContentError)
    with naming("standard input" if path == STDIN else str(path), what):
        file = open_file(path)
        try:
            yield file
        finally:
            file.close()


def contents(stored: Mapping[str, StoredArray]) -> str:
    """List arrays with their shapes and types, for an error message."""
    return listed(f"{name} {array.shape} {array.type_name}".strip() for name, array in stored.items())


def load_array(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read an array of numbers or text into memory, if it exists."""
    if name not in stored:
        return None
    if stored[name].kind not in ("numbers", "text"):
        raise FileContentError(f"{path}: {name or 'it'} holds {stored[name].type_name}; expected numbers or text")
    with naming(f"{path}, dataset {name!r},", "what it says it is"):
        array = np.asarray(stored[name].load()[...])
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def load_column(path: Path, stored: Mapping[str, StoredArray], name: str) -> NDArray[Any] | None:
    """Read a value for each row into memory, if it exists; (n, 1) counts as (n,)."""
    array = load_array(path, stored, name)
    return array[:, 0] if array is not None and array.ndim == 2 and array.shape[1] == 1 else array


def choose_matrix(path: Path, stored: Mapping[str, StoredArray], wanted: str | None) -> str:
    """Return the name of the wanted matrix, or else of ``features``, the only dense one or the only sparse one."""
    if wanted is not None and wanted.strip("/") not in stored:
        raise FileContentError(f"{path} has no dataset {wanted!r}; it has {contents(stored)}")
    named = ["features", ""] if wanted is None else [wanted.strip("/")]
    for name in named:
        if name in stored:
            if stored[name].kind not in ("numbers", "sparse"):
                raise FileContentError(f"{path}: {name or 'it'} holds {stored[name].type_name}; expected numbers")
            return name
    matrices = {
        name: array
        for name, array in stored.items()
        if array.kind in ("numbers", "sparse") and len(array.shape) == 2 and not name.startswith(NO_FEATURES)
    }
    choice = [name for name, array in matrices.items() if array.kind == "numbers"] or list(matrices)
    if len(choice) == 1:
        return choice[0]
    if matrices:
        raise FileContentError(f"{path} has several matrices; choose one with --dataset: {contents(matrices)}")
    raise FileContentError(f"{path} has no matrix of numbers (n_samples, n_features); it has {contents(stored)}")
