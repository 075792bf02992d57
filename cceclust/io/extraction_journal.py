"""The journal of an extraction: it can be killed at any moment and continues where it stopped.

HDF5 files do not survive a kill in the middle of a write, so rows go to a plain file first, in the folder
``<target>.part``::

    settings.json   what makes these features what they are; a run with other settings does not add to them
    features.bin    the rows, as raw numbers
    journal.jsonl   a line for each batch that is safely in features.bin, written after it

Rows without a line in the journal are cut off when the work continues. When all images are done, the target is written
inside the folder and renamed, so that it exists either complete or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cceclust.errors import CceclustError, FileError, InputError
from cceclust.io.features import write_features
from cceclust.io.stored import load_column, stored_file

__all__ = ["ExtractionJournal", "discard_leftovers", "holds_result_of", "skipped_images"]


class ExtractionJournal:
    """The features of an unfinished extraction, batch by batch. Use it in a ``with`` statement.

    The caller must have claimed the target (:func:`cceclust.io.atomic.claiming`), so that nobody else writes to it.

    Parameters
    ----------
    target : Path
        The feature file to write in the end.
    settings : mapping of str to str, int or float
        Everything that the rows depend on. They become attributes of the target.
    dtype : dtype
        Type of the features.
    restart : bool
        Discard what an earlier run has done.

    Attributes
    ----------
    images_done : int
        Number of images that are safely stored or skipped.
    n_rows : int
        Number of rows that are safely stored.
    skipped : list of (int, str)
        Images that could not be read, with the reason.
    """

    def __init__(self, target: Path, settings: Mapping[str, Any], dtype: DTypeLike, *, restart: bool = False) -> None:
        self.images_done = 0
        self.skipped: list[tuple[int, str]] = []
        self._target = target
        self._settings = dict(settings)
        self.dtype = np.dtype(dtype)
        self._rows: BinaryIO | None = None
        self._journal: BinaryIO | None = None
        self.n_rows = 0
        self._n_columns = 0
        self._folder = folder_beside(target)
        try:
            with self._writing():
                self._folder.mkdir(exist_ok=True)
                self._start(restart)
        except BaseException:
            self.close()
            raise

    def _start(self, restart: bool) -> None:
        settings, journal, rows = (self._folder / name for name in ("settings.json", "journal.jsonl", "features.bin"))
        earlier = read_settings(settings)
        if earlier is None or restart:
            # If a kill interrupts this, the folder has no settings and counts as empty.
            for file in (settings, journal, rows):
                file.unlink(missing_ok=True)
            fresh = settings.with_suffix(".tmp")
            fresh.write_text(json.dumps(self._settings, indent=1), "utf-8")
            fresh.replace(settings)
        else:
            self._refuse_other_settings(earlier)
        self._rows, self._journal = rows.open("ab"), journal.open("ab")
        journal_bytes = self._replay(journal.read_bytes(), stored_bytes=rows.stat().st_size)
        self._rows.truncate(self.n_rows * self._n_columns * self.dtype.itemsize)
        self._journal.truncate(journal_bytes)

    def _refuse_other_settings(self, earlier: Mapping[str, Any]) -> None:
        names = sorted(name for name in {*earlier, *self._settings} if earlier.get(name) != self._settings.get(name))
        if names:
            changes = "; ".join(f"{name} was {earlier.get(name)!r}, is {self._settings.get(name)!r}" for name in names)
            raise InputError(
                f"the extraction to {self._target} was begun with something else: {changes}; repeat the first command, "
                "or use --restart (restart=True) to start over"
            )

    def _replay(self, journal: bytes, *, stored_bytes: int) -> int:
        """Take over the finished work listed in the journal, and return the length of its valid lines."""
        end = 0
        for line in journal.splitlines(keepends=True):
            entry = parse_entry(line)
            if entry is None or entry["rows"] * entry["columns"] * self.dtype.itemsize > stored_bytes:
                break
            end += len(line)
            self.images_done, self.n_rows, self._n_columns = entry["images"], entry["rows"], entry["columns"]
            self.skipped += entry["skipped"]
        return end

    def append(self, features: NDArray[Any], n_images: int, skipped: Sequence[tuple[int, str]] = ()) -> None:
        """Store a batch.

        Parameters
        ----------
        features : ndarray of shape (n_images - len(skipped), n_features)
            The rows of the images that could be read.
        n_images : int
            Number of images of the batch.
        skipped : sequence of (int, str)
            Numbers of the images that could not be read, with the reason.
        """
        assert self._rows is not None
        assert self._journal is not None
        with self._writing():
            self.n_rows += len(features)
            self._n_columns = features.shape[1]
            self.images_done += n_images
            self.skipped += skipped
            entry = {
                "images": self.images_done,
                "rows": self.n_rows,
                "columns": self._n_columns,
                "skipped": list(skipped),
            }
            store(self._rows, np.ascontiguousarray(features, self.dtype).tobytes())
            store(self._journal, json.dumps(entry).encode() + b"\n")

    def finish(self, *, labels: ArrayLike | None = None, paths: ArrayLike | None = None) -> None:
        """Write the target and remove the folder.

        Parameters
        ----------
        labels, paths : array-like of shape (n_images,), optional
            Of all images; those of skipped ones are left out.
        """
        kept = np.ones(self.images_done, bool)
        kept[[index for index, _ in self.skipped]] = False
        whole = self._folder / "whole.h5"
        write_features(
            whole,
            np.memmap(self._folder / "features.bin", self.dtype, "r", shape=(self.n_rows, self._n_columns)),
            labels=None if labels is None else np.asarray(labels)[kept],
            paths=None if paths is None else np.asarray(paths)[kept],
            skipped=[reason for _, reason in self.skipped],
            attributes=self._settings,
            force=True,
        )
        with self._writing():
            whole.replace(self._target)
        self.close()
        discard_leftovers(self._target)

    def close(self) -> None:
        """Close the files; appended rows are kept for the next run."""
        for file in (self._rows, self._journal):
            if file is not None:
                file.close()

    def __enter__(self) -> ExtractionJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except CceclustError:
            raise
        except OSError as error:
            raise FileError(
                f"cannot write to {self._folder}: {error.strerror or error}; repeat the command to go on from there"
            ) from error


def holds_result_of(target: Path, settings: Mapping[str, Any]) -> bool:
    """Tell whether ``target`` is a complete feature file that was made with these settings."""
    try:
        with stored_file(target) as file:
            attributes = file.attributes
    except FileError:
        return False
    return attributes.get("complete") is True and all(attributes.get(name) == settings[name] for name in settings)


def skipped_images(target: Path) -> list[str]:
    """Read from a feature file which images have no row in it, and why."""
    with stored_file(target) as file:
        skipped = load_column(target, file.arrays, "skipped")
    return [] if skipped is None else [str(reason) for reason in skipped]


def folder_beside(target: Path) -> Path:
    """Return the folder that holds the features of ``target`` until it is complete."""
    return target.with_name(target.name + ".part")


def discard_leftovers(target: Path) -> None:
    """Remove the folder beside a complete target."""
    shutil.rmtree(folder_beside(target), ignore_errors=True)


def store(file: BinaryIO, data: bytes) -> None:
    """Append bytes and wait until they are on the disk."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def read_settings(path: Path) -> dict[str, Any] | None:
    """Read the settings of an earlier run; None if it was killed before they were written."""
    try:
        settings = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return settings if isinstance(settings, dict) else None


def parse_entry(line: bytes) -> dict[str, Any] | None:
    """Parse a line of the journal; None for a line that a kill cut off or that cceclust did not write."""
    try:
        entry = json.loads(line)
        counts = [entry[name] for name in ("images", "rows", "columns")]
        is_whole = line.endswith(b"\n") and all(type(count) is int and count >= 0 for count in counts)
        skipped = [(int(index), str(reason)) for index, reason in entry["skipped"]]
    except (ValueError, TypeError, LookupError):
        return None
    return {**entry, "skipped": skipped} if is_whole else None
