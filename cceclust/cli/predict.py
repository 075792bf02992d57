"""``cceclust predict``: a model and features, or a run and images, in; clusters out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cceclust.cli.console import task_progress
from cceclust.cli.options import (
    DatasetOption,
    ForceOption,
    IdOption,
    JsonOption,
    KeepOption,
    LabelsDatasetOption,
    OutOption,
    QuietOption,
    check_name,
    check_output,
    examples,
    output_option,
)
from cceclust.cli.summary import show
from cceclust.progress import show_phases

EPILOG = examples(
    "predict features.model.safetensors new.npy",
    "predict cells.model.safetensors cells.h5ad --write-obs",
    "predict run new_images/",
)


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
    out: OutOption = None,
    write_obs: Annotated[
        bool,
        output_option("--write-obs", help="Also write obs/cce and obs/cce_confidence into the .h5ad file itself."),
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Assign new features to the clusters of a model, or new images to those of a run.

    The rows that the model was fitted to get the same clusters again.
    """
    from cceclust.io import read_model
    from cceclust.io.reading import refuse_what_is_not_there
    from cceclust.io.run_folders import run_of

    check_output(out, as_json=as_json)
    shared: dict[str, Any] = {"out": out, "force": force, "dataset": dataset, "labels_dataset": labels_dataset}
    run = run_of(model)
    if run is not None or model.is_dir():
        only_features = {"--id": names_dataset, "--keep": keep, "--write-obs": write_obs or None}
        for option in (option for option, value in only_features.items() if value is not None):
            raise typer.BadParameter("is for features; a run predicts images", param_hint=option)
        if len(features) > 1:
            raise typer.BadParameter("a run reads one collection of images at a time", param_hint="IMAGES")
        refuse_what_is_not_there(features[0])
        from cceclust.torch.runs import predict_images_file

        clusters, written = predict_images_file(run or model, features[0], **shared)
    else:
        check_name(features, out)
        read_model(model)
        from cceclust.clustering import predict_file

        with task_progress(quiet=quiet or as_json) as bar:
            clusters, written = predict_file(
                model,
                features,
                names_dataset=names_dataset,
                keep=keep or [],
                write_obs=write_obs,
                on_progress=show_phases(bar),
                **shared,
            )
    show(clusters, written, as_json=as_json, quiet=quiet, to_stderr=out == Path("-"))
