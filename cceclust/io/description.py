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
from cceclust.io.clusters import read_clusters
from cceclust.io.features import FeatureFile, existing_files, open_features
from cceclust.io.models import read_model
from cceclust.io.reading import listed
from cceclust.io.run_folders import CLUSTERS, RUN_FILES, is_run, read_config, read_metrics
from cceclust.io.stored import stored_file
from cceclust.io.tables import STDIN, TABLE_FILES

__all__ = ["FileDescription", "describe"]


@dataclass
class FileDescription:
    """What a file holds: plain values by name, and what it says about its origin.

    Its kind is "features", "clusters", "model", "network" or "run".
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
    """Describe a feature, cluster or model file, several files of features, or a run of ``cceclust deep``.

    The names of datasets are those of :func:`cceclust.io.open_features`.
    """
    path = Path(path)
    if is_run(path):
        files, kind = [path / name for name in RUN_FILES if (path / name).is_file()], "run"
    else:
        files = existing_files(path)
        kind = "features" if dataset is not None or len(files) > 1 else kind_of(files[0])
    n_bytes = sum(file.stat().st_size for file in files if file != STDIN)
    if kind == "features":
        with open_features(
            path, dataset=dataset, labels_dataset=labels_dataset, names_dataset=names_dataset, keep=keep
        ) as features:
            return FileDescription(str(path), kind, n_bytes, feature_facts(features), features.attributes)
    facts = {"clusters": cluster_facts, "model": model_facts, "network": network_facts, "run": run_facts}[kind]
    return FileDescription(str(path), kind, n_bytes, *facts(path))


def cluster_facts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise a clustering."""
    clusters = read_clusters(path)
    facts = {
        "samples": len(clusters.labels),
        "clusters": np.unique(clusters.labels).size,
        "probabilities": None if clusters.probabilities is None else clusters.probabilities.shape,
        **label_facts(clusters.true_labels),
        "modularity": clusters.diagnostics.get("modularity"),
        "parameters": clusters.parameters,
    }
    return facts, clusters.provenance


def model_facts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise a model."""
    model = read_model(path)
    facts = {
        "clusters": model.coef.shape[0],
        "features": model.coef.shape[1],
        "dtype": str(model.coef.dtype),
        "borders": "linear" if model.curves is None else "curved",
        "parameters": model.parameters,
    }
    return facts, model.provenance


def network_facts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise a network that ``cceclust deep`` trained, and return its provenance."""
    with stored_file(path) as file:
        provenance = dict(sorted(file.attributes.items()))
        n_weights = sum(math.prod(array.shape) for array in file.arrays.values())
    network, n_clusters = provenance.pop("network", None), provenance.pop("n_clusters", None)
    return {"network": network, "clusters": n_clusters, "weights": n_weights}, provenance


def run_facts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Summarise a run: how far it is, and its settings."""
    config, epochs = read_config(path), read_metrics(path)
    last = epochs[-1] if epochs else {}
    names = {"n_clusters": "clusters", "network": "network", "objective": "objective", "images": "images"}
    facts = {
        **{name: config.pop(key, None) for key, name in names.items()},
        "epochs": f"{len(epochs)} of {config.pop('n_epochs', None)}",
        "complete": (path / CLUSTERS).is_file(),
        **{name: last.get(name) for name in ("loss", "cluster_entropy", "accuracy", "nmi", "ari")},
        "files": ", ".join(name for name in RUN_FILES if (path / name).is_file()),
    }
    return facts, {name: value for name, value in config.items() if value is not None}


def kind_of(path: Path) -> str:
    """Read the kind that a file states; a file without one is taken for features."""
    if path == STDIN or path.suffix.lower() in TABLE_FILES:
        return "features"
    with stored_file(path) as file:
        kind = str(file.attributes.get("format", "")).removeprefix("cceclust-")
    return kind if kind in ("clusters", "model", "network") else "features"


def feature_facts(features: FeatureFile) -> dict[str, Any]:
    """Collect facts in one pass over all rows."""
    not_finite: list[int] = []
    lowest = np.full(features.n_features, np.inf)
    highest = np.full(features.n_features, -np.inf)
    digests = bytearray()
    for where, block in features.blocks():
        rows = block.toarray() if features.is_sparse else block
        bad = ~np.isfinite(rows).all(axis=1)
        not_finite += (np.flatnonzero(bad) + where.start).tolist()
        lowest = rows[~bad].min(axis=0, initial=np.inf).clip(max=lowest)
        highest = rows[~bad].max(axis=0, initial=-np.inf).clip(min=highest)
        for row in np.ascontiguousarray(rows):
            digests += hashlib.blake2b(row, digest_size=8).digest()
    is_empty = len(not_finite) == features.n_samples
    widths = np.zeros(1) if is_empty else highest - lowest
    widest = None
    if needs_column_scaling(widths):
        times = widths.max() / np.median(widths[widths > 0])
        widest = f"column {widths.argmax()} spans {times:,.0f} times what the median column does; fit scales columns"
    return {
        "shape": features.shape,
        "dtype": str(features.matrix.dtype),
        "dataset": features.dataset or None,
        **label_facts(features.labels),
        "paths": features.paths is not None,
        "names": None if features.names is None else f"{features.names[0]} … {features.names[-1]}",
        "columns": None if features.columns is None else listed(features.columns),
        "notes": "; ".join(features.notes) or None,
        "rows_with_nan_or_infinity": len(not_finite),
        "first_row_with_nan_or_infinity": not_finite[0] if not_finite else None,
        "constant_columns": int((lowest == highest).sum()),
        "widest_column": widest,
        "duplicate_rows": features.n_samples - np.unique(np.frombuffer(digests, np.uint64)).size,
        "range": None if is_empty else (float(lowest.min()), float(highest.max())),
    }


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
