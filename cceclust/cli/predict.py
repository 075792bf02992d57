"""``cceclust predict``: a model and features, or a run and images, in; clusters out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cceclust.cli.console import print_json, task_progress
from cceclust.cli.options import (
    OUTPUT_PANEL,
    DatasetOption,
    ForceOption,
    FullPathsOption,
    IdOption,
    JsonOption,
    KeepOption,
    LabelsDatasetOption,
    MemoryOption,
    QuietOption,
    WriteObsOption,
    check_output,
)
from cceclust.cli.summary import print_summary, summarize
from cceclust.progress import show_phases


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model that cceclust fit wrote, or the folder of a run of cceclust deep.", metavar="MODEL"
        ),
    ],
    features: Annotated[
        list[Path], typer.Argument(help="Features, as for cceclust fit; for a run, images.", metavar="FEATURES|IMAGES")
    ],
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    names_dataset: IdOption = None,
    keep: KeepOption = None,
    memory: MemoryOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Clusters to write: .h5, .csv, .parquet or .npy; - for a .csv on stdout. By default: "
            "FEATURES.predicted.h5.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    write_obs: WriteObsOption = False,
    full_paths: FullPathsOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Assign new features to the clusters of a model, or new images to those of a run.

    The rows that the model was fitted to get the same labels again.
    """
    from cceclust.io import read_model
    from cceclust.io.features import existing_files
    from cceclust.io.reading import refuse_what_is_not_there
    from cceclust.io.run_folders import run_of

    check_output(features, out, as_json=as_json)
    output: dict[str, Any] = {"out": out, "force": force, "full_paths": full_paths}
    run = run_of(model)
    if run is not None or model.is_dir():
        only_features = {"--memory": memory, "--id": names_dataset, "--keep": keep, "--write-obs": write_obs or None}
        for option, value in only_features.items():
            if value is not None:
                raise typer.BadParameter("is for features; a run predicts images", param_hint=option)
        if len(features) > 1:
            raise typer.BadParameter("a run reads one collection of images at a time", param_hint="IMAGES")
        refuse_what_is_not_there(features[0])
        from cceclust.torch.runs import predict_images_file

        clusters, written = predict_images_file(
            run or model, features[0], dataset=dataset, labels_dataset=labels_dataset, **output
        )
    else:
        read_model(model)
        existing_files(features)
        from cceclust.clustering import predict_file

        with task_progress(quiet=quiet or as_json) as bar:
            clusters, written = predict_file(
                model,
                features,
                dataset=dataset,
                labels_dataset=labels_dataset,
                names_dataset=names_dataset,
                keep=keep or [],
                memory=memory,
                write_obs=write_obs,
                on_progress=show_phases(bar),
                **output,
            )
    summary = summarize(clusters, written)
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary, to_stderr=out == Path("-"))
