"""How good the clusters in a file are: the figures behind ``cceclust score``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cceclust.errors import FileContentError, FileError, InputError
from cceclust.io.clusters import Clusters, read_clusters
from cceclust.io.features import FeatureFile, open_features
from cceclust.io.label_files import read_label_file
from cceclust.io.pairs import warn_of_another_pair
from cceclust.io.reading import refuse_what_is_no_file
from cceclust.io.run_folders import clusters_of
from cceclust.io.stored import ARRAY_FILES, stored_file
from cceclust.scoring import LabelFreeScores, Scores, is_missing, score_clusters, score_without_labels

__all__ = ["FileScores", "open_again", "open_features_of", "score_file", "score_without_truth"]


@dataclass(frozen=True)
class FileScores:
    """The figures for one file.

    Attributes
    ----------
    path : str
        The file.
    with_labels : Scores or None
        Scores against true labels, if there are any.
    without_labels : LabelFreeScores
        Scores that need no true labels.
    """

    path: str
    with_labels: Scores | None
    without_labels: LabelFreeScores


def score_file(
    path: str | Path,
    *,
    labels: str | Path | None = None,
    labels_dataset: str | None = None,
    features: str | Path | None = None,
) -> FileScores:
    """Score the clusters in a file.

    Parameters
    ----------
    path : str or Path
        A cluster file, the folder of a run of ``cceclust deep``, or predicted labels as ``.h5``, ``.npy``, ``.csv`` or
        ``.txt``.
    labels : str or Path, optional
        A file with the true labels, by default those in the cluster file.
    labels_dataset : str, optional
        Name of the true labels inside that file.
    features : str or Path, optional
        The features that were clustered, for the silhouette; by default looked for beside the clusters.

    Returns
    -------
    FileScores

    Examples
    --------
    >>> from cceclust.io.scores import score_file
    >>> score_file("sample_data/digits.h5")
    Traceback (most recent call last):
    cceclust.errors.FileContentError: sample_data/digits.h5 holds features, not clusters; ...
    """
    path = clusters_of(path)
    clusters = read_any_clusters(path)
    warn_of_another_pair(path, clusters.model_id)
    if labels is not None:
        clusters.true_labels = read_label_file(labels, column=labels_dataset)
    elif labels_dataset is not None:
        raise InputError(f"labels_dataset={labels_dataset!r} names labels inside a file: give the file with --labels")
    opened = open_features_of(clusters, path) if features is None else open_again(clusters, features)
    try:
        without_labels = score_without_truth(clusters, opened)
    finally:
        if opened is not None:
            opened.close()
    truth = clusters.true_labels
    return FileScores(
        str(path), None if truth is None else score_clusters(truth, clusters.named_labels), without_labels
    )


def read_any_clusters(path: Path) -> Clusters:
    """Read a cluster file, or labels alone."""
    refuse_what_is_no_file(path)
    if path.suffix.lower() in ARRAY_FILES:
        with stored_file(path) as file:
            kind = str(file.attributes.get("format", ""))
            if "features" in file.arrays:
                raise FileContentError(f"{path} holds features, not clusters; make them: cceclust fit {path}")
        if kind == "cceclust-clusters":
            return read_clusters(path)
    return Clusters(read_label_file(path))


def open_features_of(clusters: Clusters, path: Path) -> FeatureFile | None:
    """Open the features that were clustered, if they lie beside the cluster file at ``path``.

    Only the file name of the stored path is used: the file may come from somebody else and must not make us open
    files elsewhere.
    """
    stated = clusters.provenance.get("features")
    if not isinstance(stated, str):
        return None
    file = path.parent / Path(stated).name
    if not file.is_file() or not file.resolve().is_relative_to(path.parent.resolve()):
        return None
    try:
        features = open_again(clusters, file)
    except (FileError, InputError):
        return None
    if features.n_samples == len(clusters.labels):
        return features
    features.close()
    return None


def open_again(clusters: Clusters, path: str | Path) -> FeatureFile:
    """Open features with the same matrix, labels and names as those that were clustered."""
    origin = clusters.provenance
    return open_features(
        path,
        dataset=origin.get("dataset") or None,
        labels_dataset=origin.get("labels_dataset"),
        names_dataset=origin.get("names_dataset"),
        keep=[str(name) for name in origin.get("keep") or []],
    )


def score_without_truth(clusters: Clusters, features: FeatureFile | None = None) -> LabelFreeScores:
    """Score clusters without true labels; scores that need the features use a fixed sample of rows where necessary."""
    losses, chosen = clusters.losses, clusters.chosen_restart
    loss = clusters.diagnostics.get("loss")
    if not isinstance(loss, float):
        loss = None if losses is None or chosen is None else float(losses[chosen])
    modularity = clusters.diagnostics.get("modularity")
    sample = rows = None
    if features is not None:
        n_rows = min(3000, features.n_samples)
        sample = np.sort(np.random.default_rng(0).choice(features.n_samples, n_rows, replace=False))
        rows = features.read(sample)
        if not isinstance(modularity, float):
            modularity = None
    return score_without_labels(
        clusters.labels,
        probabilities=clusters.probabilities,
        loss=loss,
        modularity=modularity if isinstance(modularity, float) else None,
        restart_agreement=clusters.diagnostics.get("restart_agreement"),
        sample=sample,
        sample_features=rows,
    )


def sampled_modularity(clusters: Clusters, features: FeatureFile) -> float | None:
    """Return the modularity of clusters on the graph of a fixed sample of their features."""
    # These take long to load, and most cluster files hold their modularity.
    from cceclust.training.candidates import modularity_of_rows
    from cceclust.training.robustness import scaled_columns
    from cceclust.training.rows import Rows, in_memory
    from cceclust.training.standardization import rows_not_finite

    codes = np.unique(clusters.labels, return_inverse=True)[1]
    n_rows = min(3000, features.n_samples)
    sample = np.sort(np.random.default_rng(0).choice(features.n_samples, n_rows, replace=False))
    sample = sample[~is_missing(clusters.labels[sample])]
    rows: Rows = in_memory(features.read(sample))
    if clusters.diagnostics.get("columns_scaled") is True:
        rows = scaled_columns(rows, np.std(features.read(sample), axis=0, dtype=np.float64))
    if any(bad.any() for _, bad in rows.map_blocks(rows_not_finite)):
        return None
    return modularity_of_rows(rows, codes[sample], np.ones(len(sample)))
