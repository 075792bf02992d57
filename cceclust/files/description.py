"""What a file holds: the facts behind ``cceclust info``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cceclust.files.clusters import read_clusters
from cceclust.files.features import FeatureFile, as_text, open_features, refuse_what_is_no_file
from cceclust.files.models import read_model

__all__ = ["FileDescription", "describe"]


@dataclass
class FileDescription:
    """What a file holds, in the order a reader wants to know it.

    Attributes
    ----------
    path : str
        The file.
    kind : {"features", "clusters", "model"}
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


def describe(path: str | Path, *, dataset: str | None = None, labels_dataset: str | None = None) -> FileDescription:
    """Describe a feature, cluster or model file.

    Parameters
    ----------
    path : str or Path
        Any file that cceclust reads.
    dataset, labels_dataset : str, optional
        As in :func:`cceclust.files.open_features`.

    Examples
    --------
    >>> from cceclust.files.description import describe
    >>> describe("sample_data/digits.h5").facts["shape"]
    (1797, 64)
    """
    path = Path(path)
    refuse_what_is_no_file(path)
    kind = kind_of(path) if dataset is None else "features"
    description = FileDescription(str(path), kind, path.stat().st_size)
    if kind == "clusters":
        clusters = read_clusters(path)
        description.facts = {
            "samples": len(clusters.labels),
            "clusters": np.unique(clusters.labels).size,
            "probabilities": None if clusters.probabilities is None else clusters.probabilities.shape,
            **label_facts(clusters.true_labels),
            "restarts": None if clusters.losses is None else len(clusters.losses),
            "loss": None if clusters.losses is None else float(clusters.losses.min()),
            "parameters": clusters.parameters,
        }
        description.provenance = clusters.provenance
    elif kind == "model":
        model = read_model(path)
        description.facts = {
            "clusters": model.coef.shape[0],
            "features": model.coef.shape[1],
            "dtype": str(model.coef.dtype),
            "parameters": model.parameters,
        }
        description.provenance = model.provenance
    else:
        with open_features(path, dataset=dataset, labels_dataset=labels_dataset) as features:
            description.facts = feature_facts(features)
            description.provenance = features.attributes
    return description


def kind_of(path: Path) -> str:
    """Read a file's own word on its kind; what says nothing is taken for features."""
    stated = ""
    if path.suffix.lower() in (".h5", ".hdf5") and h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            stated = str(as_text(file.attrs.get("format", "")))
    elif path.suffix.lower() == ".safetensors":
        with path.open("rb") as file:
            header = file.read(min(1 << 20, 8 + int.from_bytes(file.read(8), "little")))
        stated = "cceclust-model" if b'"format":"cceclust-model"' in header else ""
    kind = stated.removeprefix("cceclust-")
    return kind if kind in ("clusters", "model") else "features"


def feature_facts(features: FeatureFile) -> dict[str, Any]:
    """Look at every row once."""
    not_finite, first_not_finite, duplicates = 0, None, 0
    lowest = np.full(features.n_features, np.inf)
    highest = np.full(features.n_features, -np.inf)
    seen: set[bytes] = set()
    for start, rows in features.blocks():
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any() and first_not_finite is None:
            first_not_finite = start + int(np.argmax(bad))
        not_finite += int(bad.sum())
        if not bad.all():
            lowest = np.minimum(lowest, rows[~bad].min(axis=0))
            highest = np.maximum(highest, rows[~bad].max(axis=0))
        for row in np.ascontiguousarray(rows):
            digest = hashlib.blake2b(row.tobytes(), digest_size=12).digest()
            duplicates += digest in seen
            seen.add(digest)
    return {
        "shape": features.shape,
        "dtype": str(features.dtype),
        "dataset": features.dataset or None,
        **label_facts(features.labels),
        "paths": features.paths is not None,
        "neighbors": None if features.neighbors is None else features.neighbors.shape[1],
        "rows with NaN or infinity": not_finite,
        "first row with NaN or infinity": first_not_finite,
        "constant columns": int((lowest == highest).sum()),
        "duplicate rows": duplicates,
        "range": None if not_finite == features.n_samples else (float(lowest.min()), float(highest.max())),
    }


def label_facts(labels: NDArray[Any] | None) -> dict[str, Any]:
    """Count the classes."""
    if labels is None:
        return {"labels": None}
    classes, sizes = np.unique(labels, return_counts=True)
    return {
        "labels": str(labels.dtype) if labels.dtype.kind != "U" else "text",
        "classes": len(classes),
        "smallest class": int(sizes.min()),
        "largest class": int(sizes.max()),
    }
