"""Reading labelled features for a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileContentError
from cceclust.files import open_features
from cceclust.training.rows import in_memory

__all__ = ["read_labelled"]


def read_labelled(
    path: Path, *, dataset: str | None = None, labels_dataset: str | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all features of a file and their labels as numbers from 0.

    Raises
    ------
    FileContentError
        If the file has no labels.
    """
    with open_features(path, dataset=dataset, labels_dataset=labels_dataset) as file:
        if file.labels is None:
            raise FileContentError(f"{path} has no labels, which this benchmark needs; name them with --labels-dataset")
        codes = np.unique(file.labels, return_inverse=True)[1]
        return in_memory(file.array()).matrix, codes
