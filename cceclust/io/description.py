"""What a file holds: the facts behind ``cceclust info``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.sample import needs_column_scaling
from cceclust.io.clusters import Clusters, read_clusters
from cceclust.io.features import FeatureFile, feature_files, open_features
from cceclust.io.models import Model, read_model
from cceclust.io.reading import listed, refuse_what_is_no_file
from cceclust.io.run_folders import CLUSTERS, RUN_FILES, is_run, read_config, read_metrics
from cceclust.io.stored import stored_file
from cceclust.io.tables import TABLE_FILES

__all__ = ["FileDescription", "describe"]


@dataclass
class FileDescription:
    """What a file holds, in the order a reader wants to know it.

    Attributes
    ----------
    path : str
        The file, or the folder of a run.
    kind : {"features", "clusters", "model", "network", "run"}
        What it is.
    bytes : int
        Its size.
    facts : dict
        Shape, type, labels, …: plain values by name.
    provenance : dict
        What the file says about its origin.
    """

    path: str
    kind: str
    bytes: int
    facts: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def describe(
    path: str | Path,
    *,
    dataset: str | None = None,
    labels_dataset: str | None = None,
    names_dataset: str | None = None,
    keep: Sequence[str] = (),
) -> FileDescription:
    """Describe a feature, cluster or model file, or a run of ``cceclust deep``.

    Parameters
    ----------
    path : str or Path
        Any file that cceclust reads, the folder of a run, or several files of features, as a folder or a pattern.
    dataset, labels_dataset, names_dataset, keep
        As in :func:`cceclust.io.open_features`.

    Examples
    --------
    >>> from cceclust.io.description import describe
    >>> describe("sample_data/digits.h5").facts["shape"]
    (1797, 64)
    """
    path = Path(path)
    if is_run(path):
        return describe_run(path)
    files = feature_files(path)
    for file in files:
        refuse_what_is_no_file(file)
    kind = "features" if dataset is not None or len(files) > 1 else kind_of(files[0])
    description = FileDescription(str(path), kind, sum(file.stat().st_size for file in files))
    if kind == "clusters":
        clusters = read_clusters(path)
        description.facts, description.provenance = cluster_facts(clusters), clusters.provenance
    elif kind == "model":
        model = read_model(path)
        description.facts, description.provenance = model_facts(model), model.provenance
    elif kind == "network":
        description.facts, description.provenance = network_facts(path)
    else:
        with open_features(
            path, dataset=dataset, labels_dataset=labels_dataset, names_dataset=names_dataset, keep=keep
        ) as features:
            description.facts, description.provenance = feature_facts(features), features.attributes
    return description


def cluster_facts(clusters: Clusters) -> dict[str, Any]:
    """Summarise a clustering."""
    return {
        "samples": len(clusters.labels),
        "clusters": np.unique(clusters.labels).size,
        "probabilities": None if clusters.probabilities is None else clusters.probabilities.shape,
        **label_facts(clusters.true_labels),
        "restarts": None if clusters.losses is None else len(clusters.losses),
        "loss": None if clusters.losses is None else float(np.nanmin(clusters.losses)),
        "parameters": clusters.parameters,
    }


def model_facts(model: Model) -> dict[str, Any]:
    """Summarise a model."""
    return {
        "clusters": model.coef.shape[0],
        "features": model.coef.shape[1],
        "dtype": str(model.coef.dtype),
        "borders": "linear" if model.curves is None else "curved",
        "parameters": model.parameters,
    }


def network_facts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise a network that ``cceclust deep`` trained, and return its provenance."""
    with stored_file(path) as file:
        provenance = dict(sorted(file.attributes.items()))
        n_weights = sum(math.prod(array.shape) for array in file.arrays.values())
    network, n_clusters = provenance.pop("network", None), provenance.pop("n_clusters", None)
    return {"network": network, "clusters": n_clusters, "weights": n_weights}, provenance


def describe_run(path: Path) -> FileDescription:
    """Describe the folder of a run: how far it is, and its settings."""
    config, epochs = read_config(path), read_metrics(path)
    files = [path / name for name in RUN_FILES if (path / name).is_file()]
    last = epochs[-1] if epochs else {}
    names = {"n_clusters": "clusters", "network": "network", "objective": "objective", "images": "images"}
    facts = {
        **{name: config.pop(key, None) for key, name in names.items()},
        "epochs": f"{len(epochs)} of {config.pop('n_epochs', None)}",
        "complete": (path / CLUSTERS).is_file(),
        **{name: last.get(name) for name in ("loss", "cluster_entropy", "accuracy", "nmi", "ari")},
        "files": ", ".join(file.name for file in files),
    }
    provenance = {name: value for name, value in config.items() if value is not None}
    return FileDescription(str(path), "run", sum(file.stat().st_size for file in files), facts, provenance)


def kind_of(path: Path) -> str:
    """Read the kind that a file states; a file without one is taken for features."""
    if path.suffix.lower() in TABLE_FILES:
        return "features"
    with stored_file(path) as file:
        kind = str(file.attributes.get("format", "")).removeprefix("cceclust-")
    return kind if kind in ("clusters", "model", "network") else "features"


def feature_facts(features: FeatureFile) -> dict[str, Any]:
    """Collect facts in one pass over all rows."""
    not_finite, first_not_finite = 0, None
    lowest = np.full(features.n_features, np.inf)
    highest = np.full(features.n_features, -np.inf)
    digests = bytearray()
    for where, rows in features.blocks():
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any() and first_not_finite is None:
            first_not_finite = where.start + int(np.argmax(bad))
        not_finite += int(bad.sum())
        if not bad.all():
            good = rows[~bad] if bad.any() else rows
            lowest = np.minimum(lowest, good.min(axis=0))
            highest = np.maximum(highest, good.max(axis=0))
        for row in np.ascontiguousarray(rows):
            digests += hashlib.blake2b(row, digest_size=8).digest()
    return {
        "shape": features.shape,
        "dtype": str(features.dtype),
        "dataset": features.dataset or None,
        **label_facts(features.labels),
        "paths": features.paths is not None,
        "names": None if features.names is None else f"{features.names[0]} … {features.names[-1]}",
        "columns": None if features.columns is None else listed(features.columns),
        "neighbors": None if features.neighbors is None else features.neighbors.shape[1],
        "rows_with_nan_or_infinity": not_finite,
        "first_row_with_nan_or_infinity": first_not_finite,
        "constant_columns": int((lowest == highest).sum()),
        "widest_column": widest_column(highest - lowest),
        "duplicate_rows": features.n_samples - np.unique(np.frombuffer(digests, np.uint64)).size,
        "range": None if not_finite == features.n_samples else (float(lowest.min()), float(highest.max())),
    }


def widest_column(ranges: NDArray[Any]) -> str | None:
    """Name the column that dominates all distances, if columns seem to be in different units."""
    if not (np.isfinite(ranges).all() and needs_column_scaling(ranges.astype(np.float64))):
        return None
    times = ranges.max() / np.median(ranges[ranges > 0])
    return f"column {int(ranges.argmax())} spans {times:,.0f} times what the median column does; fit scales columns"


def label_facts(labels: NDArray[Any] | None) -> dict[str, Any]:
    """Count the classes."""
    if labels is None:
        return {"labels": None}
    classes, sizes = np.unique(labels, return_counts=True)
    return {
        "labels": str(labels.dtype) if labels.dtype.kind != "U" else "text",
        "classes": len(classes),
        "smallest_class": int(sizes.min()),
        "largest_class": int(sizes.max()),
    }
