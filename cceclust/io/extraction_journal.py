"""The journal of an extraction: it can be killed at any moment and continues where it stopped.

HDF5 files do not survive a kill in the middle of a write. So the rows of each batch of images go to a small file of
their own first, in the folder ``<target>.part``, beside ``settings.json``, which says what makes these features what
they are: a run with other settings does not add to them. When all images are done, the target is written inside the
folder and renamed, so that it exists either complete or not at all.
"""

from __future__ import annotations

import io
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
        self._batches: list[Path] = []
        # Images that could not be read, with the reason.
        self._skipped: list[tuple[int, str]] = []
        self._folder = folder_beside(target)
        earlier = None if restart else read_settings(self._folder)
        if earlier is None:
            with writing(self._folder):
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder.mkdir()
            self._write(self._folder / "settings.json", json.dumps(self._settings, indent=1).encode())
        elif earlier != self._settings:
            names = {name for name in {*earlier, *self._settings} if earlier.get(name) != self._settings.get(name)}
            changes = [f"{name} was {earlier.get(name)!r}, is {self._settings.get(name)!r}" for name in sorted(names)]
            raise InputError(
                f"the extraction to {target} was begun with something else: {'; '.join(changes)}; repeat the first "
                "command, or use --restart (restart=True) to start over"
            )
        for path in sorted(self._folder.glob("*.npz")):
            # After a power cut, a batch may be missing; those behind it are made again.
            if int(path.stem) == self.images_done:
                with stored_file(path) as batch:
                    n_images, skipped = (batch.arrays[name].load().item() for name in ("n_images", "skipped"))
                    self._add(path, n_images, json.loads(skipped))

    def _write(self, path: Path, content: bytes) -> None:
        part = path.with_suffix(".new")
        with writing(self._folder):
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)

    def _add(self, path: Path, n_images: int, skipped: Sequence[tuple[int, str]]) -> None:
        self._batches.append(path)
        self._skipped += skipped
        self.images_done += n_images

    def append(self, features: NDArray[Any] | None, n_images: int, skipped: Sequence[tuple[int, str]] = ()) -> None:
        """Store the rows of a batch of images; those with the skipped numbers have none, for the reasons given."""
        rows = np.empty((0, 0)) if features is None else features
        path, buffer = self._folder / f"{self.images_done:012}.npz", io.BytesIO()
        np.savez(buffer, rows=rows, n_images=n_images, skipped=json.dumps(list(skipped)))
        self._write(path, buffer.getvalue())
        self._add(path, n_images, skipped)

    def finish(self, *, labels: ArrayLike | None = None, paths: ArrayLike | None = None) -> None:
        """Write the target, with the labels and paths of all images except the skipped ones, and remove the folder."""
        kept = np.ones(self.images_done, bool)
        kept[[index for index, _ in self._skipped]] = False
        if not kept.any():
            raise FileContentError(
                f"none of the {self.images_done} images can be read; the first: {self._skipped[0][1]}"
            )
        # All rows together may be larger than memory.
        together, whole = self._folder / "rows.bin", self._folder / "whole.h5"
        with writing(self._folder), together.open("wb") as file:
            for path in self._batches:
                with np.load(path) as batch:
                    file.write(batch["rows"].tobytes())
        write_features(
            whole,
            np.memmap(together, self._settings["dtype"], "r").reshape(kept.sum(), -1),
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
    return target.with_name(target.name + ".part")


def read_settings(folder: Path) -> dict[str, Any] | None:
    """Read the settings of an earlier run; None if it was killed before they were written."""
    try:
        return dict(json.loads((folder / "settings.json").read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None
