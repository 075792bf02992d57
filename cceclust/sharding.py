"""Features in many files, clustered on the workers of a Dask cluster, which write the clusters beside them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cceclust import choices
from cceclust.clustering import (
    as_table,
    base_of,
    diagnostics_of,
    estimator_for,
    named,
    predict_features,
    provenance_of,
)
from cceclust.errors import InputError
from cceclust.estimators.model_files import model_of
from cceclust.estimators.softmax_method import warn_of
from cceclust.files import Clusters, Model, open_features, write_clusters, write_model
from cceclust.files.atomic import claiming
from cceclust.files.features import existing_files
from cceclust.files.models import check_model_name
from cceclust.files.shards import clusters_beside, common_attributes, stacked_columns
from cceclust.training.progress import OnProgress, Progress, silent

if TYPE_CHECKING:
    from cceclust.dask.rows import DaskRows
    from cceclust.dask.shards import Shard

__all__ = ["fit_shards"]


def fit_shards(
    path: str | Path | Sequence[str | Path],
    n_clusters: int | Sequence[int] | Literal["auto"] = "auto",
    *,
    cluster: str,
    method: str = "cce",
    model: Path | None = None,
    force: bool = False,
    full_paths: bool = False,
    dataset: str | None = None,
    labels_dataset: str | None = None,
    names_dataset: str | None = None,
    keep: Sequence[str] = (),
    memory: int | None = None,
    on_progress: OnProgress = silent,
    **parameters: Any,
) -> tuple[Clusters, list[Path]]:
    """Cluster feature files on the workers of a cluster, which write ``*.clusters.h5`` beside each of them.

    Parameters
    ----------
    path : str, Path or sequence of them
        The files, a folder or a pattern, under paths that all workers see.
    n_clusters, method, on_progress, **parameters
        As in :func:`cceclust.clustering.fit_features`.
    cluster : str
        The address of the scheduler.
    model : Path, optional
        Where to write the model; by default beside the features' folder, with its name.
    force : bool
        Overwrite files that exist.
    full_paths : bool
        Keep absolute paths of this machine in the files, not only names.
    dataset, labels_dataset, names_dataset, keep
        As in :func:`cceclust.files.open_features`.
    memory : int, optional
        Bytes that rows to train on may take on this machine. By default half of its memory.

    Returns
    -------
    clusters : Clusters
        The labels of all rows, in the order of the files, without their probabilities.
    written : list of Path
        The files that were written.
    """
    from cceclust.dask.cluster import connected
    from cceclust.dask.shards import look_at_shards, rows_of_shards

    files = existing_files(path)
    targets = [clusters_beside(file) for file in files]
    if model is None:
        base = base_of(path)
        if base is None:
            raise InputError("these features have no folder to call the model after; name it with --model FILE")
        model = named(base, ".model.safetensors")
    check_model_name(model)
    estimator = estimator_for(method, n_clusters, None, parameters)
    if method == "kmeans":
        raise InputError("method 'kmeans' needs all features in memory; use method 'cce' on a cluster")
    roles: dict[str, Any] = {"dataset": dataset, "labels_dataset": labels_dataset}
    roles.update(names_dataset=names_dataset, keep=list(keep))
    with connected(cluster):
        # Workers have another working directory.
        shards = look_at_shards([file.absolute() for file in files], roles)
        rows = rows_of_shards(shards, roles, memory)
        if isinstance(n_clusters, int) and n_clusters > rows.shape[0]:
            raise InputError(f"n_samples={rows.shape[0]} should be >= n_clusters={n_clusters}")
        with claiming(targets, inputs=files, force=force):
            # Workers take the locks of the shards again when they write them; that of the model is held meanwhile.
            pass
        with claiming([model], inputs=files, force=force):
            clusters, head = fit_rows(estimator, rows, shards, files[0].parent, on_progress)
            write_beside(shards, roles, head, clusters, full_paths=full_paths, on_progress=on_progress)
            write_model(model, head, force=force, full_paths=full_paths)
    return clusters, [*targets, model]


def fit_rows(
    estimator: Any, rows: DaskRows, shards: Sequence[Shard], folder: Path, on_progress: OnProgress
) -> tuple[Clusters, Model]:
    """Fit the rows of several files; return the labels of all rows, without their probabilities, and the model."""
    started = time.perf_counter()
    estimator._fit_rows(rows, on_progress=on_progress)
    warn_of(estimator.problems_)
    seconds = time.perf_counter() - started
    attributes = common_attributes([shard.attributes for shard in shards])
    head = model_of(estimator, **provenance_of(folder, shards[0].dataset, {}, attributes))
    if shards[0].columns is not None:
        head.provenance["feature_names"] = shards[0].columns
    prediction, search = estimator._prediction, estimator.k_search_
    clusters = Clusters(
        prediction.codes.astype(np.int64),
        true_labels=stacked_columns([shard.labels for shard in shards]),
        losses=estimator.losses_,
        loss_curves=estimator.loss_curves_,
        k_search=None if search is None else as_table(search),
        parameters=head.parameters,
        diagnostics=diagnostics_of(estimator, search, seconds),
        model_id=head.id,
    )
    clusters.diagnostics["mean_confidence"] = prediction.mean_confidence()
    return clusters, head


def write_beside(
    shards: Sequence[Shard],
    roles: dict[str, Any],
    head: Model,
    clusters: Clusters,
    *,
    full_paths: bool,
    on_progress: OnProgress,
) -> None:
    """Have workers predict all files once more and write the clusters beside them."""
    from cceclust.dask.cluster import run_on_workers

    about_fit = {name: getattr(clusters, name) for name in ("losses", "loss_curves", "diagnostics")}
    tasks = [(shard.path, roles, head, about_fit, full_paths) for shard in shards]
    on_progress(Progress("Writing shards", 0, len(tasks)))
    for done, _ in enumerate(run_on_workers(write_shard, tasks), 1):
        on_progress(Progress("Writing shards", done, len(tasks)))


def write_shard(path: Path, roles: dict[str, Any], head: Model, about_fit: dict[str, Any], full_paths: bool) -> None:
    """Predict the rows of a file and write their clusters; this runs on a worker."""
    from cceclust.dask.shards import refuse_unseen

    refuse_unseen(path)
    with open_features(path, **roles) as features:
        row_bytes = features.n_features * np.dtype(np.float64).itemsize
        memory = max(choices.SHARD_CHUNK_BYTES, choices.LEAST_ROWS_IN_MEMORY * row_bytes)
        clusters = replace(predict_features(head, features, memory=memory), **about_fit)
    # A worker that was lost after it had written the file must not keep another from writing it again; whether there
    # was one before was asked at the start.
    write_clusters(clusters_beside(path), clusters, force=True, full_paths=full_paths)
