"""Clusters and the model that made them: two files that belong together by the model's digest."""

from __future__ import annotations

import warnings
from pathlib import Path

from cceclust.errors import ClusteringWarning, FileError
from cceclust.io.stored import stored_file

__all__ = ["warn_of_another_pair"]

# The files that a fit writes beside the features by default.
ENDINGS = (".clusters.h5", ".model.safetensors")


def warn_of_another_pair(path: Path, model_id: str | None) -> None:
    """Warn if the clusters beside a model, or the model beside clusters, are from another fit."""
    for ending, other_ending in (ENDINGS, ENDINGS[::-1]):
        other = path.with_name(path.name.removesuffix(ending) + other_ending)
        if not path.name.endswith(ending) or model_id is None or not other.is_file():
            continue
        try:
            with stored_file(other) as file:
                other_id = file.attributes.get("model_id", model_id)
        except FileError:
            # A problem with the other file must not stop the work on this one.
            continue
        if other_id != model_id:
            warnings.warn(
                f"{path.name} and {other.name} are not from the same fit; repeat the fit if they should be",
                ClusteringWarning,
                stacklevel=3,
            )
