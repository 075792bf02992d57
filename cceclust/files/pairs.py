"""Clusters and the model that made them: two files, told apart from those of another fit by the model's digest."""

from __future__ import annotations

import warnings
from pathlib import Path

from cceclust.errors import ClusteringWarning, FileError
from cceclust.files.stored import stored_file

__all__ = ["warn_of_another_pair"]

# What a fit writes beside the features by default.
ENDINGS = (".clusters.h5", ".model.safetensors")


def warn_of_another_pair(path: Path, model_id: str | None) -> None:
    """Warn if the file that lies beside clusters or a model as the other half of the pair is from another fit."""
    for ending, other_ending in (ENDINGS, ENDINGS[::-1]):
        other = path.with_name(path.name.removesuffix(ending) + other_ending)
        if not path.name.endswith(ending) or model_id is None or not other.is_file():
            continue
        try:
            with stored_file(other) as file:
                other_id = file.attributes.get("model_id", model_id)
        except FileError:
            # Who asked for one file is not stopped by the other.
            continue
        if other_id != model_id:
            warnings.warn(
                f"{path.name} and {other.name} are not from the same fit; repeat the fit if they should be",
                ClusteringWarning,
                stacklevel=3,
            )
