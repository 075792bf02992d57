"""What a file holds: the facts behind ``cceclust info``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.fit.sample import needs_column_scaling
from cceclust.io.clusters import read_clusters
from cceclust.io.features import FeatureFile, existing_files, open_features
from cceclust.io.models import read_model
from cceclust.io.reading import listed
from cceclust.io.run_folders import clusters_of
from cceclust.io.stored import ARRAY_FILES, stored_file
from cceclust.io.tables import STDIN

__all__ = ["FileDescription", "describe"]

Facts = tuple[dict[str, Any], dict[str, Any]]


@dataclass
class FileDescription:
    """What a file holds ("features", "clusters" or "model") and what it says about its origin."""

    path: str
    kind: str
    bytes: int
    facts: dict[str, Any]
    provenance: dict[str, Any]


def describe(path: str | Path, **choices: Any) -> FileDescription:
    """Describe a feature, cluster or model file, several files of features, or the clusters of a run.

    The choices are those of :func:`cceclust.io.open_features`.
    """
    path = clusters_of(path)
    files = existing_files(path)
    n_bytes = sum(file.stat().st_size for file in files if file != STDIN)
    kind = "features"
    if not choices.get("dataset") and len(files) == 1 and files[0].suffix.lower() in ARRAY_FILES:
        with stored_file(files[0]) as file:
            kind = str(file.attributes.get("format")).removeprefix("cceclust-")
    if kind in ("clusters", "model"):
        facts = cluster_facts(path) if kind == "clusters" else model_facts(path)
        return FileDescription(str(path), kind, n_bytes, *facts)
    with open_features(path, **choices) as features:
        return FileDescription(str(path), "features", n_bytes, feature_facts(features), features.attributes)


def cluster_facts(path: Path) -> Facts:
    clusters = read_clusters(path)
    facts = {
        "samples": len(clusters.labels),
        "clusters": np.unique(clusters.labels).size,
        **label_facts(clusters.true_labels),
        "modularity": clusters.diagnostics.get("modularity"),
        "parameters": clusters.parameters,
    }
    return facts, clusters.provenance


def model_facts(path: Path) -> Facts:
    model = read_model(path)
    facts = {
        "clusters": model.coef.shape[0],
        "features": model.coef.shape[1],
        "borders": "linear" if model.curves is None else "curved",
        "parameters": model.parameters,
    }
    return facts, model.provenance


def feature_facts(features: FeatureFile) -> dict[str, Any]:
    n_not_finite, digests = 0, []
    lowest = np.full(features.n_features, np.inf)
    highest = -lowest
    for _, block in features.blocks():
        rows = np.ascontiguousarray(block.toarray() if features.is_sparse else block)
        finite = rows[np.isfinite(rows).all(axis=1)]
        n_not_finite += len(rows) - len(finite)
        lowest = np.minimum(lowest, finite.min(axis=0, initial=np.inf))
        highest = np.maximum(highest, finite.max(axis=0, initial=-np.inf))
        digests.append(np.array([hash(row.tobytes()) for row in rows]))
    # Where no row is finite, nothing is known of the columns.
    widths = np.maximum(highest - lowest, 0)
    names, units = features.names, f"column {widths.argmax()} is the widest"
    return {
        "shape": features.shape,
        "dtype": str(features.matrix.dtype),
        "dataset": features.dataset or None,
        **label_facts(features.labels),
        "names": None if names is None else f"{names[0]} … {names[-1]}",
        "columns": None if features.columns is None else listed(features.columns),
        "notes": "; ".join(features.notes) or None,
        "rows_with_nan_or_infinity": n_not_finite,
        "duplicate_rows": features.n_samples - len(np.unique(np.concatenate(digests))),
        "constant_columns": int((lowest == highest).sum()),
        "columns_in_different_units": units if needs_column_scaling(widths) else None,
    }


def label_facts(labels: NDArray[Any] | None) -> dict[str, Any]:
    if labels is None:
        return {"labels": None}
    sizes = np.unique(labels, return_counts=True)[1]
    kind = "text" if labels.dtype.kind == "U" else str(labels.dtype)
    return {"labels": kind, "classes": len(sizes), "smallest_class": int(sizes.min())}
