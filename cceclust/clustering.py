"""From a feature file to clusters and a model, from a model and new features to clusters, from clusters to scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cceclust.errors import ClusteringWarning, InputError
from cceclust.estimators.cce_classifier import CCEClassifier, fit_labelled
from cceclust.estimators.cce_clusterer import CCEClusterer, numbers_of_clusters
from cceclust.estimators.given_labels import read_labels
from cceclust.estimators.softmax_estimator import STORED_TYPES, draw_seed, settings_of
from cceclust.fit.judge import modularity_of_rows
from cceclust.fit.kmeans import fit_kmeans
from cceclust.fit.pipeline import Fit, fit_source
from cceclust.fit.predict import Prediction, predict_source
from cceclust.fit.progress import OnProgress, silent
from cceclust.io import Clusters, FeatureFile, Model, open_features, read_model, write_clusters, write_model
from cceclust.io.atomic import check_targets
from cceclust.io.clustered import clustered_features, read_any_clusters
from cceclust.io.clusters import STDOUT, clusters_writer
from cceclust.io.features import clusters_beside, existing_files, named_after
from cceclust.io.observations import check_observations, write_observations
from cceclust.io.partial_labels import PartialLabels, read_label_file, read_partial_labels, read_soft_labels
from cceclust.io.run_folders import clusters_of
from cceclust.io.tables import STDIN, TABLE_FILES
from cceclust.scoring import LabelFreeScores, Scores, is_missing, score_clusters, score_without_labels
from cceclust.validation import thread_count
from cceclust.version import __version__

__all__ = ["FileScores", "fit_features", "fit_file", "predict_features", "predict_file", "score_file"]

# The silhouette compares all pairs of this many rows at most.
ROWS_FOR_SILHOUETTE = 3000
OF_READING = ("dataset", "labels_dataset", "names_dataset", "keep")
# What a file says about itself alone, and what is said of features here.
NOT_COPIED = {"format", "format_version", "tool_version", "complete", "labels_dataset", "names_dataset", "keep"}


def fit_features(
    features: FeatureFile,
    n_clusters: int | Sequence[int] | Literal["auto"] | None = None,
    *,
    method: Literal["cce", "kmeans"] = "cce",
    labels: PartialLabels | None = None,
    on_progress: OnProgress = silent,
    **parameters: Any,
) -> tuple[Clusters, Model]:
    """Cluster the rows of a feature file.

    Parameters
    ----------
    features : FeatureFile
        The features. Their labels, if they have any, are only copied.
    n_clusters : int, "auto", range or sequence of int, optional
        Number of clusters, or numbers to choose from, as in :class:`cceclust.CCEClusterer`. By default "auto", or one
        cluster for each class where labels are given.
    method : {"cce", "kmeans"}
        "kmeans" is scikit-learn's K-means on the features as they are, the best of 10 starts, to compare with.
    labels : PartialLabels, optional
        What is known of the classes of some rows. The clusters then carry the names of the classes; further clusters,
        if `n_clusters` leaves room for any, come after them.
    on_progress : callable, optional
        Called with a :class:`cceclust.fit.progress.Progress` from time to time.
    **parameters
        Parameters of :class:`cceclust.CCEClusterer`, or of :class:`cceclust.CCEClassifier` where labels are given. For
        "kmeans" there are `max_rows` and `random_state`.

    Returns
    -------
    clusters : Clusters
    model : Model

    Examples
    --------
    >>> from cceclust.clustering import fit_features, predict_features
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     clusters, model = fit_features(digits, 10, random_state=0)
    ...     (predict_features(model, digits).labels == clusters.labels).all()
    np.True_
    """
    started = time.perf_counter()
    if n_clusters is None:
        n_clusters = "auto" if labels is None else len(labels.classes)
    numbers = numbers_of_clusters(n_clusters)
    if method not in ("cce", "kmeans"):
        raise InputError(f"method={method!r}; expected 'cce' or 'kmeans'")
    if method == "kmeans":
        if labels is not None or not isinstance(numbers, int):
            raise InputError("method 'kmeans' needs a number of clusters and no labels; use method 'cce' for all else")
        others = {name: value for name, value in parameters.items() if name != "random_state"}
        seed = draw_seed(parameters.get("random_state"))
        fit = fit_kmeans(features, numbers, seed=seed, on_progress=on_progress, **others)
    elif labels is None:
        estimator = CCEClusterer(**parameters)
        fit = fit_source(features, settings_of(estimator, numbers), on_progress=on_progress)
        parameters = estimator.get_params()
    else:
        if not isinstance(numbers, int):
            raise InputError(f"n_clusters={n_clusters!r}; labels need a number of clusters, or none for one per class")
        classes = labels.names(numbers)
        classifier = CCEClassifier(n_extra_clusters=numbers - len(labels.classes), **parameters)
        named = read_labels(labels.values, one_class_is_enough=True)
        _, fit = fit_labelled(classifier, features, named, np.ones(features.n_samples), on_progress)
        parameters = {**classifier.get_params(), "classes": classes}
    kept = {name: value for name, value in parameters.items() if isinstance(value, STORED_TYPES)}
    kept.update(method=method, n_clusters=fit.head.n_clusters)
    # Not said of clusters: HDF5 has no room for the names of thousands of columns.
    origin = provenance(features) | ({} if features.columns is None else {"feature_names": features.columns})
    head = fit.head
    model = Model(head.coef, head.intercept, kept, origin, cluster_centers=fit.prediction.centers, curves=head.curves)
    clusters = as_clusters(fit.prediction, model, features)
    clusters.outlier_scores = None if fit.outlier_scores is None else fit.outlier_scores.astype(np.float32)
    clusters.diagnostics.update(diagnostics_of(fit), seconds=round(time.perf_counter() - started, 3))
    if fit.levels is not None and len(fit.levels.counts):
        clusters.levels = np.column_stack([fit.levels.counts, fit.levels.excess])
    if labels is not None:
        clusters.diagnostics["labelled_rows"] = int(labels.known.sum())
        clusters.true_labels = labels.unseen(features.labels)
    for problem in fit.problems:
        warnings.warn(problem, ClusteringWarning, stacklevel=2)
    return clusters, model


def diagnostics_of(fit: Fit) -> dict[str, Any]:
    """Return what a cluster file says of the fit."""
    choice, levels = fit.choice, fit.levels
    diagnostics: dict[str, Any] = {
        "modularity": None if choice is None else list(choice.scores.values())[choice.best],
        "candidates": None if choice is None else choice.scores,
        "reason": None if choice is None else choice.reason,
        "columns_scaled": fit.columns_scaled,
        "curved": fit.head.curves is not None,
        "trained_rows": fit.n_trained_rows,
        "warnings": fit.problems,
    }
    if levels is not None:
        low, high = levels.range
        diagnostics["number_of_clusters"] = {
            "chosen": levels.chosen,
            "low": low,
            "high": high,
            "further": {str(number): sizes.tolist() for number, sizes in levels.further.items()},
            "splits": {str(cluster): number for cluster, number in levels.splits.items()},
            "is_weak": levels.is_weak,
            "at_edge": levels.at_edge,
        }
    return diagnostics


def predict_features(model: Model, features: FeatureFile, *, on_progress: OnProgress = silent) -> Clusters:
    """Assign the rows of a feature file to the clusters of a model from features of the same source."""
    refuse_other_features(model, features)
    return as_clusters(predict_source(model.head, features, on_progress=on_progress), model, features)


def refuse_other_features(model: Model, features: FeatureFile) -> None:
    """Raise if features cannot be those that a model is for: by their number, or by the names of their columns."""
    expected = model.coef.shape[1]
    if features.n_features != expected:
        raise InputError(
            f"{features.path} has rows of {features.n_features} features, but the model was fitted to {expected}; "
            "use features from the same source"
        )
    names = model.provenance.get("feature_names")
    if isinstance(names, list) and features.columns is not None and names != features.columns:
        ours, theirs = next(pair for pair in zip_longest(names, features.columns) if pair[0] != pair[1])
        raise InputError(
            f"{features.path} has the column {theirs!r} where the model expects {ours!r}; give the same columns in the "
            "same order"
        )


def fit_file(
    path: str | Path | Sequence[str | Path],
    n_clusters: int | Sequence[int] | Literal["auto"] | None = None,
    *,
    out: Path | None = None,
    report: bool = False,
    force: bool = False,
    labels: str | Path | None = None,
    soft_labels: str | Path | None = None,
    **settings: Any,
) -> tuple[Clusters, list[Path]]:
    """Cluster features and write the clusters, the model and perhaps a report beside them.

    The model ``*.model.safetensors`` and the report have the name of `out` if it is given, and otherwise that of the
    only file of features or of their folder.

    Parameters
    ----------
    path : str, Path or sequence of them
        The features, as in :func:`cceclust.io.open_features`.
    n_clusters : int, "auto", range or sequence of int, optional
        As in :func:`fit_features`.
    out : Path, optional
        The file of clusters; by default ``*.clusters.h5`` beside each file of features. With ``-`` clusters go to
        standard output, and no model is written.
    report : bool
        Also write ``*.report.html``.
    force : bool
        Overwrite files that exist.
    labels, soft_labels : str or Path, optional
        Labels of some rows, as in :func:`cceclust.io.partial_labels.read_partial_labels`, or distributions over
        classes, as in :func:`cceclust.io.partial_labels.read_soft_labels`; not both.
    **settings
        `dataset`, `labels_dataset`, `names_dataset` and `keep` as in :func:`cceclust.io.open_features`; all others are
        passed on to :func:`fit_features`.

    Returns
    -------
    clusters : Clusters
    written : list of Path
        The files that were written.
    """
    if labels is not None and soft_labels is not None:
        raise InputError("labels and soft_labels were both given; expected one of them")
    files = existing_files(path)
    targets = [clusters_beside(file) for file in files] if out is None and len(files) > 1 else []
    targets = targets or [out or with_ending(base_of(path), ".clusters.h5")]
    clusters_writer(targets[0])
    model = None if out == STDOUT else with_ending(base_of(path, out), ".model.safetensors")
    page = with_ending(base_of(path, out), ".report.html") if report else None
    written = [target for target in (*targets, model, page) if target is not None and target != STDOUT]
    source = labels if soft_labels is None else soft_labels
    reading = {name: settings.pop(name) for name in OF_READING if name in settings}
    if labels is not None and files[0].suffix.lower() in TABLE_FILES and not Path(labels).exists():
        # A column of the table, which must not be one of the features.
        reading["labels_dataset"] = reading.get("labels_dataset") or str(labels)
    with open_features(path, **reading) as features:
        given = None
        if source is not None:
            read = read_partial_labels if soft_labels is None else read_soft_labels
            inside = files[0] if len(files) == 1 and files[0] != STDIN else None
            given = read(source, features.n_samples, paths=features.paths, names=features.names, features=inside)
        n_rows = min(features.n_samples, settings.get("max_rows") or features.n_samples)
        if isinstance(n_clusters, int) and n_clusters > n_rows:
            raise InputError(
                f"{n_clusters:,} clusters were asked for, but there are only {n_rows:,} rows to learn from"
            )
        # Last of all checks: that a file exists is soon said away with force.
        check_targets(written, inputs=[*files, *([] if source is None else [source])], force=force)
        clusters, head = fit_features(features, n_clusters, labels=given, **settings)
        for target, part in zip(targets, by_file(clusters, features) if len(targets) > 1 else [clusters], strict=True):
            write_clusters(target, part, force=force)
        if model is not None:
            write_model(model, head, force=force)
        if page is not None:
            # Drawing needs an optional package, which is not asked for without need.
            from cceclust.report import write_report

            write_report(clusters, page, force=force, features=features)
    return clusters, written


def predict_file(
    model: str | Path,
    path: str | Path | Sequence[str | Path],
    *,
    out: Path | None = None,
    write_obs: bool = False,
    force: bool = False,
    on_progress: OnProgress = silent,
    **reading: Any,
) -> tuple[Clusters, list[Path]]:
    """Assign features to the clusters of a model file and write the clusters; return them and the files written.

    The features and `reading` are as in :func:`cceclust.io.open_features`. By default, clusters go to
    ``*.predicted.h5`` beside the features; ``-`` stands for standard output. `write_obs` also writes them into the
    features' ``.h5ad`` file, as ``obs/cce`` and ``obs/cce_confidence``.
    """
    files = existing_files(path)
    out = out or with_ending(base_of(path), ".predicted.h5")
    clusters_writer(out)
    if write_obs and len(files) > 1:
        raise InputError(f"clusters of {len(files)} files cannot be written into one of them; predict one at a time")
    head = read_model(model)
    written = [out] if out != STDOUT else []
    with open_features(path, **reading) as features:
        refuse_other_features(head, features)
        check_targets(written, inputs=[model, *files], force=force)
        if write_obs:
            check_observations(files[0], force=force)
        clusters = predict_features(head, features, on_progress=on_progress)
        write_clusters(out, clusters, force=force)
    if write_obs:
        write_observations(files[0], clusters, force=force)
        written.append(files[0])
    return clusters, written


def base_of(path: str | Path | Sequence[str | Path], out: Path | None = None) -> Path:
    """Return what results are named after, less its ending: the file of clusters, the features or their folder."""
    if out is not None and out != STDOUT:
        return out.with_name(out.stem.removesuffix(".clusters"))
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(file) for file in path]
    base = None if STDIN in paths else named_after(paths)
    if base is None:
        raise InputError("these features share no name that results could take; say which file of clusters to write")
    return base if base.is_dir() else base.with_name(base.stem)


def with_ending(base: Path, ending: str) -> Path:
    """Return the default name of a result."""
    return base.with_name(base.name + ending)


def columns_note(columns: list[str] | None) -> list[str]:
    """Say which columns of a table are features."""
    if not columns:
        return []
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    return [f"features: {', '.join(columns[:8])}{more}"]


def as_clusters(prediction: Prediction, model: Model, features: FeatureFile) -> Clusters:
    """Put what a head says of rows together with what their file says of them."""
    return Clusters(
        prediction.labels,
        prediction.probabilities,
        true_labels=features.labels,
        paths=features.paths,
        names=features.names,
        kept=features.kept,
        parameters=model.parameters,
        diagnostics={"notes": features.notes + columns_note(features.columns)},
        provenance=provenance(features),
        model_id=model.id,
    )


def by_file(clusters: Clusters, features: FeatureFile) -> Iterator[Clusters]:
    """Split the clusters of several files into those of each."""
    of_rows = ("labels", "probabilities", "true_labels", "paths", "names", "outlier_scores")
    columns = {name: column for name in of_rows if (column := getattr(clusters, name)) is not None}
    for path, where in features.parts:
        rows = {name: column[where] for name, column in columns.items()}
        kept = {name: column[where] for name, column in clusters.kept.items()}
        yield replace(clusters, **rows, kept=kept, provenance={**clusters.provenance, "features": path.name})


def provenance(features: FeatureFile) -> dict[str, Any]:
    """Say where features came from: the name of their file, what was chosen in it, and what it says itself."""
    said = {name: value for name, value in features.attributes.items() if name not in NOT_COPIED}
    chosen = {"features": features.path.name, "dataset": features.dataset, **features.choices}
    return {**chosen, "tool": f"cceclust {__version__}", **said}


@dataclass(frozen=True)
class FileScores:
    """The figures for one file of clusters: against true labels, if there are any, and without."""

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
        The features that were clustered, for modularity and silhouette; by default looked for beside the clusters.

    Returns
    -------
    FileScores

    Examples
    --------
    >>> from cceclust.clustering import score_file
    >>> score_file("sample_data/digits.h5")
    Traceback (most recent call last):
    cceclust.errors.FileContentError: sample_data/digits.h5 holds features, not clusters; ...
    """
    path = clusters_of(path)
    clusters = read_any_clusters(path)
    if labels is not None:
        clusters.true_labels = read_label_file(labels, column=labels_dataset)
    truth = clusters.true_labels
    with_labels = None if truth is None else score_clusters(truth, clusters.named_labels)
    with clustered_features(clusters, path, features) as opened:
        return FileScores(str(path), with_labels, score_without_truth(clusters, opened))


def score_without_truth(clusters: Clusters, features: FeatureFile | None) -> LabelFreeScores:
    """Score clusters without true labels; scores that need the features use a fixed sample of very many rows."""
    if features is None:
        return score_without_labels(clusters.labels, probabilities=clusters.probabilities)
    has_cluster = ~is_missing(clusters.labels)
    codes = np.unique(clusters.labels, return_inverse=True)[1]
    modularity = modularity_of_rows(features, codes, has_cluster.astype(np.float64), n_threads=thread_count(None))
    count = min(ROWS_FOR_SILHOUETTE, features.n_samples)
    sample = np.sort(np.random.default_rng(0).choice(features.n_samples, count, replace=False))
    return score_without_labels(
        clusters.labels,
        probabilities=clusters.probabilities,
        modularity=modularity,
        sample=sample,
        sample_features=features.read(sample),
    )
