"""``cceclust fit``: features in, clusters and a model out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cceclust.cli.console import task_progress
from cceclust.cli.options import (
    LARGEST_COUNT,
    DatasetOption,
    FeaturesArguments,
    ForceOption,
    IdOption,
    JsonOption,
    KeepOption,
    LabelsDatasetOption,
    OutOption,
    QuietOption,
    SeedOption,
    check_name,
    check_output,
    examples,
    method_option,
    output_option,
    whole_number,
)
from cceclust.cli.summary import show
from cceclust.errors import InputError
from cceclust.progress import show_phases

EPILOG = examples(
    "fit embeddings.npy --k 10",
    "fit cells.h5ad --dataset obsm/X_pca --report",
    "fit customers.csv --id customer_id --keep city --k 2..30",
    "fit features.h5 --labels some_labels.csv",
)


def parse_k(text: str) -> int | str | Sequence[int]:
    """Turn "10", "auto", "2..30" or "5,10,20" into a number, "auto" or numbers to choose from."""
    if text == "auto":
        return text
    first, dots, last = text.partition("..")
    numbers: Sequence[int]
    try:
        numbers = range(int(first), int(last) + 1) if dots else sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1 or numbers[-1] > LARGEST_COUNT:
        raise typer.BadParameter(
            f"{text!r}; expected a number of at least 1, auto, a range such as 2..30, or numbers such as 5,10,20"
        )
    return numbers if len(numbers) > 1 else numbers[0]


def parse_prior(text: str) -> str | list[float]:
    """Turn "0.5,0.3,0.2" into numbers; "equal" stays."""
    try:
        return text if text == "equal" else [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected equal, or numbers such as 0.5,0.3,0.2") from None


def fit(
    features: FeaturesArguments,
    k: Annotated[
        Any,
        method_option(
            "--k",
            "-k",
            parser=parse_k,
            metavar="N",
            help="Number of clusters; or [cyan]auto[/], [cyan]2..30[/] or [cyan]5,10,20[/] to choose from. "
            "[dim]\\[default: auto; with labels one for each class][/]",
        ),
    ] = None,
    method: Annotated[
        Literal["cce", "kmeans"], method_option(help="Collision cross-entropy, or K-means to compare with.")
    ] = "cce",
    prior: Annotated[
        Any,
        method_option(
            parser=parse_prior,
            metavar="P,P,…",
            help="Expected shares of the clusters, such as [cyan]0.5,0.3,0.2[/], or [cyan]equal[/]. "
            "[dim]\\[default: left to the data][/]",
        ),
    ] = None,
    scale: Annotated[
        Literal["auto", "overall", "columns"] | None,
        method_option(help="Standardise columns, scale all alike, or decide by the data. [dim]\\[default: auto][/]"),
    ] = None,
    max_rows: Annotated[
        int | None,
        method_option(
            parser=whole_number(),
            metavar="N",
            help="Learn from at most so many rows, drawn at random; all get a cluster. [dim]\\[default: 100000][/]",
        ),
    ] = None,
    seed: SeedOption = 0,
    labels: Annotated[
        str | None,
        method_option(
            metavar="FILE|NAME",
            help="Known labels of some rows, to learn from: a .csv with the columns row (or name, or path) and label, "
            "a file with a label for each row (-1 is unknown), or an array in FEATURES.",
        ),
    ] = None,
    soft_labels: Annotated[
        str | None,
        method_option(
            metavar="FILE|NAME",
            help="Uncertain labels instead: a probability for each class, as a .csv, .npy or .h5 or an array.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    names_dataset: IdOption = None,
    keep: KeepOption = None,
    out: OutOption = None,
    report: Annotated[bool, output_option("--report", help="Also write a page to look at.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Group the rows of a matrix of features into clusters.

    It needs neither labels nor the number of clusters. It writes the clusters
    and a model, which assigns new rows to them, beside the features or --out.

    True labels inside the file are only compared with. Labels that are given
    with --labels are learned from, and the clusters take their names.
    """
    check_output(out, as_json=as_json)
    has_labels = labels is not None or soft_labels is not None
    refuse_what_does_not_go_together(k, method, prior, scale, has_labels=has_labels)
    if labels is not None and soft_labels is not None:
        raise typer.BadParameter("give --labels or --soft-labels, not both", param_hint="--soft-labels")
    check_name(features, out)
    from cceclust.clustering import fit_file

    settings = {"prior": prior, "scale": scale, "max_rows": max_rows}
    with task_progress(quiet=quiet or as_json) as bar:
        clusters, written = fit_file(
            features,
            k,
            out=out,
            report=report,
            force=force,
            labels=labels,
            soft_labels=soft_labels,
            dataset=dataset,
            labels_dataset=labels_dataset,
            names_dataset=names_dataset,
            keep=keep or [],
            method=method,
            random_state=seed,
            on_progress=show_phases(bar),
            **{name: value for name, value in settings.items() if value is not None},
        )
    show(clusters, written, as_json=as_json, quiet=quiet, to_stderr=out == Path("-"))


def refuse_what_does_not_go_together(k: Any, method: str, prior: Any, scale: Any, *, has_labels: bool) -> None:
    """Refuse options that exclude each other."""
    if method == "kmeans":
        unfit = {"--labels": has_labels or None, "--prior": prior, "--scale": scale}
        for option in (option for option, value in unfit.items() if value is not None):
            raise typer.BadParameter("cannot be used with --method kmeans", param_hint=option)
        if not isinstance(k, int):
            raise typer.BadParameter("--method kmeans needs a number of clusters", param_hint="--k")
    if has_labels and k is not None and not isinstance(k, int):
        raise typer.BadParameter("labels need one number of clusters, or none for one per class", param_hint="--k")
    if prior is not None and not isinstance(k, int) and not has_labels:
        raise typer.BadParameter("needs a number of clusters; give it with --k N", param_hint="--prior")
    if isinstance(prior, list):
        from cceclust.validation import as_prior

        try:
            as_prior(prior, k)
        except InputError as error:
            raise typer.BadParameter(str(error), param_hint="--prior") from None
