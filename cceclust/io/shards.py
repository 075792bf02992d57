"""Several files as one matrix: which files a folder or a pattern stands for, and their rows one after the other."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError, FileError, InputError

if TYPE_CHECKING:
    from cceclust.io.features import FeatureFile

__all__ = ["StackedRows", "clusters_beside", "files_meant", "named_after", "stacked_columns"]

CLUSTERS = ".clusters.h5"
# How the names of files end that hold what was found in others.
RESULTS = (CLUSTERS, ".predicted.h5", ".model.safetensors")
WILDCARD = re.compile(r"[*?[]")


def files_meant(paths: Sequence[Path], endings: Collection[str]) -> list[Path]:
    """Return the files that paths, folders and patterns such as ``features/*.h5`` stand for.

    The files of a folder, if they have one of the endings, and those of a pattern are sorted by name.
    """
    files = [file for path in paths for file in files_of(path, endings)]
    if not files:
        raise InputError("there are no features; name a file")
    if len(set(files)) < len(files):
        raise InputError(f"{next(file for file in files if files.count(file) > 1)} is given twice; name each file once")
    return files


def files_of(path: Path, endings: Collection[str]) -> list[Path]:
    """Return the files of one path; a path that is neither a folder nor a pattern stands for itself."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in endings and is_meant(file))
        if not found:
            raise FileError(f"{path} is a folder without feature files; expected some that end in {', '.join(endings)}")
        return found
    if not WILDCARD.search(str(path)) or path.exists():
        return [path]
    start = Path(path.anchor)
    found = sorted(file for file in start.glob(str(path.relative_to(start))) if is_meant(file))
    if not found:
        raise FileError(f"there is no file that matches {path}")
    return found


def is_meant(file: Path) -> bool:
    """Tell whether a folder or a pattern stands for a file: not if it is hidden, or holds the clusters of another."""
    return file.is_file() and not file.name.startswith(".") and not file.name.endswith(RESULTS)


def clusters_beside(file: Path) -> Path:
    """Return where the clusters of one of several files are written."""
    return file.with_suffix(CLUSTERS)


def named_after(paths: Sequence[Path]) -> Path | None:
    """Return the file or folder that results of these features are named after; None if there is no such name.

    Several files and the files of a pattern are named after their folder.
    """
    if len(paths) == 1 and paths[0].exists():
        return paths[0] if paths[0].name not in ("", "..") else paths[0].resolve()
    folders = {folder_of(path) for path in paths}
    folder = folders.pop() if len(folders) == 1 else Path()
    return folder if folder.name not in ("", "..") else None


def folder_of(path: Path) -> Path:
    """Return the folder of a file, or the one above the first part of a pattern that has a wildcard."""
    patterns = [folder for folder in [path, *path.parents] if WILDCARD.search(folder.name)]
    return (patterns or [path])[-1].parent


class StackedRows:
    """The rows of several feature files of the same columns, one file after the other, in runs of rows."""

    def __init__(self, features: Sequence[FeatureFile]) -> None:
        first = features[0]
        for part in features[1:]:
            if part.n_features != first.n_features or part.columns != first.columns:
                differing = set(first.columns or []).symmetric_difference(part.columns or [])
                raise FileContentError(
                    f"{part.path} has other columns ({part.n_features:,}) than {first.path} ({first.n_features:,}); "
                    "expected the same in all files, in the same order"
                    + (f", but {', '.join(sorted(differing)[:3])} differ" if differing else "")
                )
        ends = np.cumsum([part.n_samples for part in features]).tolist()
        self.parts = [(part, slice(end - part.n_samples, end)) for part, end in zip(features, ends, strict=True)]
        self.dtype = np.result_type(*(part.dtype for part in features))
        self.is_sparse = all(part.is_sparse for part in features)
        self.shape = (ends[-1], first.n_features)
        self.chunks = (max(part.chunk_rows for part in features), first.n_features)

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
    if not there or len(there) < len(columns):
        return None
    if len({column.dtype.kind == "U" for column in there}) > 1:
        there = [column.astype(str) for column in there]
    return np.concatenate(there)
