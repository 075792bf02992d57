"""Clusters of any kind of file, and the features that they are of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.clusters import Clusters, read_clusters
from cceclust.io.features import FeatureFile, open_features
from cceclust.io.partial_labels import read_label_file
from cceclust.io.reading import refuse_what_is_no_file
from cceclust.io.stored import stored_file
from cceclust.io.tables import TABLE_FILES

__all__ = ["clustered_features", "read_any_clusters"]


def read_any_clusters(path: Path) -> Clusters:
    refuse_what_is_no_file(path)
    if path.suffix.lower() not in (*TABLE_FILES, ".txt"):
        with stored_file(path) as file:
            is_clusters = file.attributes.get("format") == "cceclust-clusters"
            if "features" in file.arrays:
                raise FileContentError(f"{path} holds features, not clusters; make them: cceclust fit {path}")
        if is_clusters:
            return read_clusters(path)
    return Clusters(read_label_file(path))


@contextmanager
def clustered_features(
    clusters: Clusters, path: Path, features: str | Path | None = None
) -> Iterator[FeatureFile | None]:
    """Open the features that were clustered, by default if they lie beside the cluster file at `path`.

    Only the file name that is stored there is used: the file may come from somebody else and must not make us open
    files elsewhere.
    """
    origin = clusters.provenance
    beside = path.parent / Path(str(origin.get("features") or "")).name
    is_inside = False
    with suppress(OSError):  # A name may be too long for the system.
        is_inside = beside.is_file() and beside.resolve().is_relative_to(path.parent.resolve())
    choices = {name: origin.get(name) or None for name in ("dataset", "labels_dataset", "names_dataset")}
    opened = None
    if features is not None or is_inside:
        try:
            opened = open_features(features or beside, **choices, keep=[str(name) for name in origin.get("keep") or []])
        except (FileError, InputError):
            if features is not None:
                raise
    with opened or nullcontext():
        is_same = opened is not None and opened.n_samples == len(clusters.labels)
        if features is not None and opened is not None and not is_same:
            raise InputError(f"{features} has {opened.n_samples:,} rows, but {path} {len(clusters.labels):,}")
        yield opened if is_same else None
