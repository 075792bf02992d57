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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.atomic import writing
from cceclust.io.features import open_features, write_features
from cceclust.io.stored import load_array, stored_file

__all__ = ["ExtractionJournal", "holds_result_of", "skipped_images"]


class ExtractionJournal:
    """The features of an unfinished extraction, batch by batch.

    The settings are everything that the rows depend on, their `dtype` included; they become attributes of the target.
    `images_done` counts the images that are safely stored or skipped. `restart` discards what an earlier run has done.
    """

    def __init__(self, target: Path, settings: Mapping[str, Any], *, restart: bool = False) -> None:
        self.images_done = 0
        self._target = target
        self._settings = dict(settings)
        self._dtype = np.dtype(settings["dtype"])
        self._n_rows = self._n_columns = 0
        # Images that could not be read, with the reason.
        self._skipped: list[tuple[int, str]] = []
        self._folder = folder_beside(target)
        self._rows_file, self._journal_file = self._folder / "features.bin", self._folder / "journal.jsonl"
        with writing(self._folder):
            self._folder.mkdir(exist_ok=True)
            self._take_over(self._folder / "settings.json", restart)

    def _take_over(self, settings: Path, restart: bool) -> None:
        earlier = read_settings(settings)
        if earlier is None or restart:
            # If a kill interrupts this, the folder has no settings and counts as empty.
            for file in (settings, self._journal_file, self._rows_file):
                file.unlink(missing_ok=True)
            fresh = settings.with_suffix(".tmp")
            fresh.write_text(json.dumps(self._settings, indent=1), "utf-8")
            fresh.replace(settings)
        elif earlier != self._settings:
            names = {name for name in {*earlier, *self._settings} if earlier.get(name) != self._settings.get(name)}
            changes = [f"{name} was {earlier.get(name)!r}, is {self._settings.get(name)!r}" for name in sorted(names)]
            raise InputError(
                f"the extraction to {self._target} was begun with something else: {'; '.join(changes)}; repeat the "
                "first command, or use --restart (restart=True) to start over"
            )
        with self._rows_file.open("ab") as rows, self._journal_file.open("ab") as journal:
            journal.truncate(self._replay(self._journal_file.read_bytes(), rows.tell()))
            rows.truncate(self._n_rows * self._n_columns * self._dtype.itemsize)

    def _replay(self, journal: bytes, stored_bytes: int) -> int:
        """Take over the finished work listed in the journal, and return the length of its valid lines."""
        end = 0
        for line in journal.splitlines(keepends=True):
            entry = parse_entry(line)
            if entry is None or entry["rows"] * entry["columns"] * self._dtype.itemsize > stored_bytes:
                break
            end += len(line)
            self.images_done, self._n_rows, self._n_columns = entry["images"], entry["rows"], entry["columns"]
            self._skipped += entry["skipped"]
        return end

    def append(self, features: NDArray[Any] | None, n_images: int, skipped: Sequence[tuple[int, str]] = ()) -> None:
        """Store the rows of a batch of images; those with the skipped numbers have none, for the reasons given."""
        self.images_done += n_images
        self._skipped += skipped
        if features is not None:
            self._n_rows += len(features)
            self._n_columns = features.shape[1]
        counts = {"images": self.images_done, "rows": self._n_rows, "columns": self._n_columns}
        rows = b"" if features is None else np.ascontiguousarray(features, self._dtype).tobytes()
        line = json.dumps({**counts, "skipped": list(skipped)}).encode() + b"\n"
        with writing(self._folder):
            for path, data in ((self._rows_file, rows), (self._journal_file, line)):
                with path.open("ab") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())

    def finish(self, *, labels: ArrayLike | None = None, paths: ArrayLike | None = None) -> None:
        """Write the target, with the labels and paths of all images except the skipped ones, and remove the folder."""
        if not self._n_rows:
            raise FileContentError(
                f"none of the {self.images_done} images can be read; the first: {self._skipped[0][1]}"
            )
        kept = np.ones(self.images_done, bool)
        kept[[index for index, _ in self._skipped]] = False
        whole = self._folder / "whole.h5"
        write_features(
            whole,
            np.memmap(self._rows_file, self._dtype, "r", shape=(self._n_rows, self._n_columns)),
            labels=None if labels is None else np.asarray(labels)[kept],
            paths=None if paths is None else np.asarray(paths)[kept],
            skipped=[reason for _, reason in self._skipped],
            attributes=self._settings,
            force=True,
        )
        with writing(self._target):
            whole.replace(self._target)
        shutil.rmtree(self._folder, ignore_errors=True)


def holds_result_of(target: Path, settings: Mapping[str, Any]) -> bool:
    """Tell whether ``target`` is a complete feature file that was made with these settings.

    If so, a folder that a kill left beside it is removed.
    """
    try:
        with open_features(target) as features:
            attributes = features.attributes
    except FileError:
        return False
    is_result = attributes.get("complete") is True and all(attributes.get(name) == settings[name] for name in settings)
    if is_result:
        shutil.rmtree(folder_beside(target), ignore_errors=True)
    return is_result


def skipped_images(target: Path) -> list[str]:
    """Read from a feature file which images have no row in it, and why."""
    with stored_file(target) as file:
        skipped = load_array(target, file.arrays, "skipped")
    return [] if skipped is None else skipped.tolist()


def folder_beside(target: Path) -> Path:
    """Return the folder that holds the features of ``target`` until it is complete."""
    return target.with_name(target.name + ".part")


def read_settings(path: Path) -> dict[str, Any] | None:
    """Read the settings of an earlier run; None if it was killed before they were written."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def parse_entry(line: bytes) -> dict[str, Any] | None:
    """Parse a line of the journal; None for a line that a kill cut off or that cceclust did not write."""
    try:
        entry = dict(json.loads(line))
        is_whole = line.endswith(b"\n") and entry.keys() == {"images", "rows", "columns", "skipped"}
    except (ValueError, TypeError):
        return None
    return entry if is_whole else None
