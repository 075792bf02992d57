"""``cceclust predict``: a model and features, or a run and images, in; clusters out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cceclust.cli.console import print_json
from cceclust.cli.options import (
    OUTPUT_PANEL,
    DatasetOption,
    ForceOption,
    FullPathsOption,
    JsonOption,
    LabelsDatasetOption,
    MemoryOption,
    QuietOption,
)
from cceclust.cli.summary import print_summary, summarize


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model that cceclust fit wrote, or the folder of a run of cceclust deep.", metavar="MODEL"
        ),
    ],
    features: Annotated[
        Path, typer.Argument(help="Features, as for cceclust fit; for a run, images.", metavar="FEATURES|IMAGES")
    ],
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    memory: MemoryOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Clusters to write: .h5, .csv or .npy. By default: FEATURES.clusters.h5.",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    full_paths: FullPathsOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Assign new features to the clusters of a model, or new images to those of a run.

    The rows that the model was fitted to get the same labels again.
    """
    from cceclust.files import read_model
    from cceclust.files.reading import refuse_what_is_no_file, refuse_what_is_not_there
    from cceclust.files.run_folders import run_of

    output: dict[str, Any] = {"out": out, "force": force, "full_paths": full_paths}
    run = run_of(model)
    if run is not None or model.is_dir():
        if memory is not None:
            raise typer.BadParameter("a run reads its images into memory", param_hint="--memory")
        refuse_what_is_not_there(features)
        from cceclust.torch.runs import predict_images_file

        clusters, written = predict_images_file(
            run or model, features, dataset=dataset, labels_dataset=labels_dataset, **output
        )
    else:
        read_model(model)
        refuse_what_is_no_file(features)
        from cceclust.clustering import predict_file

        clusters, written = predict_file(
            model, features, dataset=dataset, labels_dataset=labels_dataset, memory=memory, **output
        )
    summary = summarize(clusters, [written])
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary)
