"""From a feature file to clusters and a model, and from a model and new features to clusters."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.errors import InputError
from cceclust.estimators.cce_method import CCEMethod
from cceclust.estimators.model_files import model_of
from cceclust.estimators.softmax_method import warn_of
from cceclust.io import (
    Clusters,
    FeatureFile,
    KTable,
    Model,
    open_features,
    read_model,
    write_clusters,
    write_model,
)
from cceclust.io.atomic import claiming
from cceclust.io.clusters import STDOUT, clusters_writer
from cceclust.io.features import existing_files
from cceclust.io.models import check_model_name
from cceclust.io.neighbor_graphs import refuse_second_graph, write_neighbors
from cceclust.io.observations import check_observations, write_observations
from cceclust.io.pairs import warn_of_another_pair
from cceclust.io.partial_labels import PartialLabels, read_partial_labels, read_soft_labels
from cceclust.io.reading import refuse_what_is_no_file
from cceclust.io.scratch import scratch_array
from cceclust.io.shards import clusters_beside, named_after
from cceclust.io.tables import STDIN, TABLE_FILES
from cceclust.training.candidates import directions_of, metric_for
from cceclust.training.diagnosis import Prediction, predict_rows
from cceclust.training.head import Head
from cceclust.training.k_search import KSearch, search_rows
from cceclust.training.neighbors import neighbors_and_recall
from cceclust.training.progress import OnProgress, silent
from cceclust.training.rows import ArrayRows, FileRows, Rows, SparseRows, half_of_the_memory, in_memory
from cceclust.training.settings import as_candidates
from cceclust.training.standardization import measure
from cceclust.validation import thread_count
from cceclust.version import __version__

__all__ = ["find_neighbors", "fit_features", "fit_file", "predict_features", "predict_file"]


def fit_features(
    features: FeatureFile,
    n_clusters: int | Sequence[int] | Literal["auto"] | None = None,
    *,
    method: str = "cce",
    labels: PartialLabels | None = None,
    memory: int | None = None,
    scratch: Path | None = None,
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
    method : {"cce", "cce-pgd", "migd", "sela", "miadm", "kmeans"}
        Which estimator to use; see :data:`cceclust.estimators.methods.METHODS`.
    labels : PartialLabels, optional
        What is known of the classes of some rows. The clusters then carry the names of the classes; further clusters,
        if `n_clusters` leaves room for any, come after them. Needs method "cce".
    memory : int, optional
        Bytes that features may take. A file that is larger is read piece by piece, twice: to measure its rows and
        to keep what is trained on, and to predict them. By default half of the machine's memory.
    scratch : Path, optional
        Folder for a file without a name that holds the rows to train on, if even these are larger than `memory`; by
        default the system's folder for temporary files.
    on_progress : callable, optional
        Called with a :class:`cceclust.training.progress.Progress` from time to time.
    **parameters
        Parameters of the estimator.

    Returns
    -------
    clusters : Clusters
    model : Model

    Examples
    --------
    >>> from cceclust.clustering import fit_features
    >>> from cceclust.io import open_features
    >>> with open_features("sample_data/digits.h5") as digits:
    ...     clusters, model = fit_features(digits, 10, random_state=0)
    >>> clusters.labels.shape, model.coef.shape
    ((1797,), (10, 64))
    """
    if n_clusters is None:
        n_clusters = "auto" if labels is None else len(labels.classes)
    estimator = estimator_for(method, n_clusters, labels, parameters)
    started = time.perf_counter()
    rows = rows_of(features, memory, scratch=scratch)
    if method == "kmeans":
        search, prediction = fit_kmeans(estimator, rows)
    else:
        neighbors = neighbors_for(estimator, rows, features)
        if labels is None:
            estimator._fit_rows(rows, neighbors=neighbors, on_progress=on_progress)
            warn_of(estimator.problems_)
        else:
            estimator.fit(rows, labels.values, neighbors=neighbors, on_progress=on_progress)
        search, prediction = getattr(estimator, "k_search_", None), estimator._prediction
    seconds = time.perf_counter() - started
    model = model_of(estimator, **provenance(features))
    if labels is not None:
        assert isinstance(n_clusters, int)
        model.parameters["classes"] = labels.names(n_clusters)
    if features.columns is not None:
        # Not said of clusters: HDF5 has no room for the names of thousands of columns.
        model.provenance["feature_names"] = features.columns
    clusters = as_clusters(prediction, model, features)
    clusters.losses = getattr(estimator, "losses_", None)
    clusters.loss_curves = getattr(estimator, "loss_curves_", None)
    scores = getattr(estimator, "outlier_score_", None)
    clusters.outlier_scores = None if scores is None else scores.astype(np.float32)
    clusters.diagnostics = diagnostics_of(estimator, search, seconds)
    clusters.diagnostics["streamed"] = isinstance(rows, FileRows)
    if search is not None:
        clusters.k_search = as_table(search)
    if labels is not None:
        clusters.diagnostics["labelled_rows"] = int(labels.known.sum())
        clusters.true_labels = labels.unseen(features.labels)
    return clusters, model


def diagnostics_of(estimator: Any, search: KSearch | None, seconds: float) -> dict[str, Any]:
    """Return what a cluster file says of the fit."""
    diagnostics = {
        "seconds": round(seconds, 3),
        "n_iter": int(estimator.n_iter_),
        "converged": getattr(estimator, "converged_", None),
        "modularity": getattr(estimator, "modularity_", None),
        "chosen": getattr(estimator, "chosen_", None),
        "candidates": getattr(estimator, "candidates_", None),
        "best_restart": getattr(estimator, "best_restart_", None),
        "loss": getattr(estimator, "loss_", None),
        "columns_scaled": getattr(estimator, "columns_scaled_", None),
        "directions_evened": getattr(estimator, "directions_evened_", None),
        "curved": getattr(estimator, "curves_", None) is not None,
        "restart_agreement": getattr(estimator, "restart_agreement_", None),
        "agreeing_restarts": getattr(estimator, "n_agreeing_", None),
        "weight_decay": getattr(estimator, "weight_decay_", None),
        "n_components": getattr(estimator, "n_components_", None),
        "warnings": getattr(estimator, "problems_", []),
        "trained_rows": getattr(estimator, "n_trained_rows_", None),
    }
    if search is not None:
        diagnostics["number_of_clusters"] = search.in_words()
    return diagnostics


def as_table(search: KSearch) -> KTable:
    """Return what a cluster file keeps of the search for the number of clusters."""
    return KTable(search.ks, search.scores, search.saved, search.levels, search.labels, search.rows)


def estimator_for(method: str, n_clusters: Any, labels: PartialLabels | None, parameters: dict[str, Any]) -> Any:
    """Return the estimator of a method, or a classifier where labels are given.

    The classifier is for the classes that labels name, and for further clusters up to `n_clusters`.
    """
    if labels is None and method == "cce":
        return CCEMethod(n_clusters, **parameters)
    # Only here, as these need scikit-learn, which takes a second to load.
    from cceclust.estimators.cce_classifier import CCEClassifier
    from cceclust.estimators.methods import METHODS

    if labels is None:
        return METHODS[method](n_clusters, **parameters)
    if method != "cce":
        raise InputError(f"method {method!r} cannot learn from labels; use method 'cce'")
    if not isinstance(n_clusters, int | np.integer):
        raise InputError(f"n_clusters={n_clusters!r}; labels need a number of clusters, or none for one per class")
    n_extra = len(labels.names(int(n_clusters))) - len(labels.classes)
    return CCEClassifier(n_extra_clusters=n_extra, **parameters)


def fit_kmeans(estimator: Any, rows: Rows) -> tuple[KSearch | None, Prediction]:
    """Fit scikit-learn's estimator; its complaints about parameters and data become ours."""
    if not isinstance(rows, ArrayRows | SparseRows):
        raise InputError("method 'kmeans' needs all features in memory; allow more memory or use method 'cce'")
    measure(rows, np.ones(rows.shape[0], rows.dtype), standardize=False)
    _, candidates = as_candidates(estimator.n_clusters)
    search = None
    if candidates is not None:
        search = search_rows(rows, None if candidates == "auto" else candidates, seed=estimator.random_state or 0)
        estimator.set_params(n_clusters=search.chosen)
    try:
        estimator.fit(rows.matrix)
    except ValueError as error:
        raise InputError(str(error)) from error
    return search, predict_rows(Head(estimator.coef_, estimator.intercept_), rows)


def neighbors_for(estimator: Any, rows: Rows, features: FeatureFile) -> NDArray[Any] | None:
    """Return the neighbours that come with the features, if the estimator has a use for them."""
    wanted = getattr(estimator, "n_neighbors", 0)
    is_sampled = isinstance(rows, FileRows) and features.n_samples > choices.rows_to_keep(rows.shape[1], rows.memory)
    if wanted == 0 or is_sampled or features.neighbors is None:
        return None
    if wanted == "auto":
        return features.neighbors
    # Where there are fewer than are asked for, a search finds enough.
    return features.neighbors if wanted <= features.neighbors.shape[1] else None


def find_neighbors(
    path: str | Path,
    n_neighbors: int = 10,
    *,
    dataset: str | None = None,
    n_components: int = choices.COMPONENTS,
    seed: int = 0,
    force: bool = False,
    on_block: Callable[[int, int], None] | None = None,
) -> tuple[NDArray[np.int32], float]:
    """Find the nearest neighbours of the rows of a feature file and write them into it.

    Parameters
    ----------
    path : str or Path
        An HDF5 file of features.
    n_neighbors, n_components, on_block
        As in :func:`cceclust.nearest_neighbors`.
    dataset : str, optional
        As in :func:`cceclust.io.open_features`.
    seed : int
        Decides the samples that components and cells are found on.
    force : bool
        Replace neighbours that are there already.

    Returns
    -------
    neighbors : ndarray of shape (n_samples, n_neighbors)
    recall : float
        Part of the nearest rows that was found: 1 if all pairs were compared, and else measured on 200 rows.
    """
    refuse_what_is_no_file(Path(path))
    with claiming([Path(path).resolve()], force=True):
        with open_features(path, dataset=dataset) as features:
            refuse_second_graph(features.path, force=force)
            rows = in_memory(features.array())
            measure(rows, np.ones(rows.shape[0], rows.dtype), standardize=False)
            metric = metric_for(directions_of(rows, np.ones(rows.shape[0], rows.dtype)))
        graph, recall = neighbors_and_recall(
            rows.matrix, n_neighbors, metric=metric, n_components=n_components, random_state=seed, on_block=on_block
        )
        write_neighbors(path, graph, dataset=features.dataset, force=force)
    return graph, recall


def predict_features(
    model: Model, features: FeatureFile, *, memory: int | None = None, on_progress: OnProgress = silent
) -> Clusters:
    """Assign the rows of a feature file to the clusters of a model.

    Parameters
    ----------
    model : Model
        From :func:`fit_features` or :func:`cceclust.io.read_model`.
    features : FeatureFile
        Features from the same source as those the model was fitted to.
    memory : int, optional
        Bytes that features may take; a file that is larger is streamed.
    on_progress : callable, optional
        Called with a :class:`cceclust.training.progress.Progress` from time to time.

    Returns
    -------
    Clusters
    """
    refuse_other_features(model, features)
    try:
        rows = rows_of(features, memory)
        prediction = predict_rows(model.head, rows, n_threads=thread_count(None), on_progress=on_progress)
    except InputError as error:
        raise InputError(f"{features.path}: {error}") from error
    return as_clusters(prediction, model, features)


def refuse_other_features(model: Model, features: FeatureFile) -> None:
    """Raise if features cannot be those that a model is for."""
    expected = model.coef.shape[1]
    if features.n_features != expected:
        raise InputError(
            f"{features.path} has rows of {features.n_features} features, but the model was fitted to {expected}; "
            "use features from the same source"
        )
    refuse_other_columns(model, features)


def refuse_other_columns(model: Model, features: FeatureFile) -> None:
    """Raise if both have names of columns, and they differ."""
    expected = model.provenance.get("feature_names")
    if not isinstance(expected, list) or features.columns is None:
        return
    for ours, theirs in zip_longest(expected, features.columns):
        if ours != theirs:
            raise InputError(
                f"{features.path} has the column {theirs!r} where the model expects {ours!r}; give the same columns in "
                "the same order"
            )


def fit_file(
    path: str | Path | Sequence[str | Path],
    n_clusters: int | Sequence[int] | Literal["auto"] | None = None,
    *,
    out: Path | None = None,
    model: Path | None = None,
    report: bool = False,
    write_obs: bool = False,
    force: bool = False,
    full_paths: bool = False,
    dataset: str | None = None,
    labels_dataset: str | None = None,
    names_dataset: str | None = None,
    keep: Sequence[str] = (),
    labels: str | Path | None = None,
    soft_labels: str | Path | None = None,
    **settings: Any,
) -> tuple[Clusters, list[Path]]:
    """Cluster features and write the clusters, the model and perhaps a report beside them.

    Parameters
    ----------
    path : str, Path or sequence of them
        The features, as in :func:`cceclust.io.open_features`.
    n_clusters : int, "auto", range or sequence of int, optional
        As in :func:`fit_features`.
    out, model : Path, optional
        Where to write; by default ``*.clusters.h5`` beside each file of features, and ``*.model.safetensors`` with the
        name of the only file or of their folder. With ``-`` clusters go to standard output. No model is written by
        default for features without a name, as those from standard input, or if the clusters go to standard output.
    report : bool
        Also write ``*.report.html``.
    write_obs : bool
        Also write the clusters into the features' ``.h5ad`` file, as ``obs/cce`` and ``obs/cce_confidence``.
    force : bool
        Overwrite files that exist.
    full_paths : bool
        Keep absolute paths of this machine in the files, not only names.
    dataset, labels_dataset, names_dataset, keep
        As in :func:`cceclust.io.open_features`.
    labels, soft_labels : str or Path, optional
        Labels of some rows, as in :func:`cceclust.io.partial_labels.read_partial_labels`, or distributions over
        classes, as in :func:`cceclust.io.partial_labels.read_soft_labels`; not both.
    **settings
        Passed on to :func:`fit_features`.

    Returns
    -------
    clusters : Clusters
    written : list of Path
        The files that were written.
    """
    files = existing_files(path)
    base = base_of(path)
    is_piped = base is None or out == STDOUT
    is_sharded = out is None and base is not None and len(files) > 1
    out = out or named(base, ".clusters.h5")
    clusters_writer(out)
    targets = [clusters_beside(file) for file in files] if is_sharded else [out]
    if model is not None or not is_piped:
        model = model or named(base, ".model.safetensors")
        check_model_name(model)
    page = named(out if base is None and out != STDOUT else base, ".report.html") if report else None
    written = [target for target in (*targets, model, page) if target is not None and target != STDOUT]
    if labels is not None and soft_labels is not None:
        raise InputError("labels and soft_labels were both given; expected one of them")
    sources = [Path(source) for source in (labels, soft_labels) if source is not None]
    if labels is not None and files[0].suffix.lower() in TABLE_FILES and not Path(labels).exists():
        # A column of the table, which must not be one of the features.
        labels_dataset = labels_dataset or str(labels)
    roles: dict[str, Any] = {"labels_dataset": labels_dataset, "names_dataset": names_dataset, "keep": keep}
    with open_features(path, dataset=dataset, **roles) as features:
        given = None
        if sources:
            read = read_partial_labels if soft_labels is None else read_soft_labels
            inside = files[0] if len(files) == 1 and files[0] != STDIN else None
            given = read(sources[0], features.n_samples, paths=features.paths, names=features.names, features=inside)
        if isinstance(n_clusters, int) and n_clusters > features.n_samples:
            raise InputError(f"n_samples={features.n_samples} should be >= n_clusters={n_clusters}")
        # Last of all checks: that a file exists is soon said away with --force.
        with (
            claiming(written, inputs=[*files, *sources], force=force),
            changing_observations(files, wanted=write_obs, force=force),
        ):
            scratch = None if out == STDOUT else out.parent
            clusters, head = fit_features(features, n_clusters, labels=given, scratch=scratch, **settings)
            for target, part in zip(targets, by_file(clusters, features) if is_sharded else [clusters], strict=True):
                write_clusters(target, part, force=force, full_paths=full_paths)
            if model is not None:
                write_model(model, head, force=force, full_paths=full_paths)
            if page is not None:
                # Drawing needs an optional package, which is not asked for without need.
                from cceclust.report import write_report

                write_report(clusters, page, force=force, features=features, full_paths=full_paths)
            if write_obs:
                write_observations(files[0], clusters, force=force)
                written.append(files[0])
    return clusters, written


def predict_file(
    model: str | Path,
    path: str | Path | Sequence[str | Path],
    *,
    out: Path | None = None,
    write_obs: bool = False,
    force: bool = False,
    full_paths: bool = False,
    dataset: str | None = None,
    labels_dataset: str | None = None,
    names_dataset: str | None = None,
    keep: Sequence[str] = (),
    memory: int | None = None,
    on_progress: OnProgress = silent,
) -> tuple[Clusters, list[Path]]:
    """Assign features to the clusters of a model file and write the clusters beside them.

    Parameters
    ----------
    model : str or Path
        The model.
    path : str, Path or sequence of them
        The features, as in :func:`cceclust.io.open_features`.
    out : Path, optional
        Where to write; by default ``*.predicted.h5`` beside the features. With ``-`` clusters go to standard output.
    write_obs : bool
        Also write the clusters into the features' ``.h5ad`` file, as ``obs/cce`` and ``obs/cce_confidence``.
    force : bool
        Overwrite a file that exists.
    full_paths : bool
        Keep absolute paths of this machine in the file, not only names.
    dataset, labels_dataset, names_dataset, keep
        As in :func:`cceclust.io.open_features`.
    memory, on_progress : optional
        As in :func:`predict_features`.

    Returns
    -------
    clusters : Clusters
    written : list of Path
        The files that were written.
    """
    files = existing_files(path)
    out = out or named(base_of(path), ".predicted.h5")
    clusters_writer(out)
    written = [out] if out != STDOUT else []
    roles: dict[str, Any] = {"labels_dataset": labels_dataset, "names_dataset": names_dataset, "keep": keep}
    head = read_model(model)
    warn_of_another_pair(Path(model), head.id)
    with open_features(path, dataset=dataset, **roles) as features:
        refuse_other_features(head, features)
        with (
            claiming(written, inputs=[model, *files], force=force),
            changing_observations(files, wanted=write_obs, force=force),
        ):
            clusters = predict_features(head, features, memory=memory, on_progress=on_progress)
            write_clusters(out, clusters, force=force, full_paths=full_paths)
            if write_obs:
                write_observations(files[0], clusters, force=force)
                written.append(files[0])
    return clusters, written


def base_of(path: str | Path | Sequence[str | Path]) -> Path | None:
    """Return what results are named after: the features' file or folder; None if there is none."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(file) for file in path]
    return None if STDIN in paths else named_after(paths)


def named(base: Path | None, ending: str) -> Path:
    """Return the default name of a result."""
    if base is None:
        raise InputError("these features have no name to call the results after; name them with --out FILE, or --out -")
    return base.with_name((base.name if base.is_dir() else base.stem) + ending)


@contextmanager
def changing_observations(files: Sequence[Path], *, wanted: bool, force: bool) -> Iterator[None]:
    """Guard the AnnData file that clusters are to be written into, if they are."""
    if not wanted:
        yield
        return
    if len(files) > 1:
        raise InputError(f"clusters of {len(files)} files cannot be written into one of them; leave out --write-obs")
    check_observations(files[0], force=force)
    with claiming([files[0].resolve()], force=True):
        yield


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
        provenance=provenance(features),
        model_id=model.id,
    )


def by_file(clusters: Clusters, features: FeatureFile) -> list[Clusters]:
    """Split the clusters of several files into those of each."""

    def rows_of_part(where: slice) -> dict[str, Any]:
        names = ("labels", "probabilities", "true_labels", "paths", "names", "outlier_scores")
        columns = {name: getattr(clusters, name) for name in names}
        kept = {name: column[where] for name, column in clusters.kept.items()}
        return {"kept": kept, **{name: column[where] for name, column in columns.items() if column is not None}}

    # How numbers of clusters compare names rows of all files.
    alone = replace(clusters, k_search=None)
    return [
        replace(alone, **rows_of_part(where), provenance={**clusters.provenance, "features": str(path.resolve())})
        for path, where in features.parts
    ]


def rows_of(features: FeatureFile, memory: int | None, *, scratch: Path | None = None) -> Rows:
    """Load the features if they fit, and stream them otherwise."""
    budget = half_of_the_memory() if memory is None else memory
    n_samples, n_features = features.shape
    loaded_bytes = n_samples * n_features * (8 if features.dtype == np.float64 else 4)
    # Sparse features are in memory already, and smaller than this.
    if features.is_sparse or loaded_bytes <= budget:
        return in_memory(features.array())
    return FileRows(features, budget, partial(scratch_array, folder=scratch or Path(tempfile.gettempdir())))


def provenance(features: FeatureFile) -> dict[str, Any]:
    """Say where features came from."""
    return provenance_of(features.path, features.dataset, features.choices, features.attributes)


def provenance_of(
    path: Path, dataset: str, choices_made: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Say where features came from: their path, what was chosen in it, and what it says itself."""
    return {
        "features": str(Path(path).resolve()),
        "dataset": dataset,
        **choices_made,
        "tool": f"cceclust {__version__}",
        **{name: value for name, value in attributes.items() if name not in NOT_COPIED},
    }


# What a file says about itself alone, and what is said of features here.
NOT_COPIED = {"format", "format_version", "tool_version", "complete", "labels_dataset", "names_dataset", "keep"}
