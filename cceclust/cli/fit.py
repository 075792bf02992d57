"""``cceclust fit``: features in, clusters and a model out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cceclust.cli.console import print_json, task_progress
from cceclust.cli.options import (
    INPUT_PANEL,
    LARGEST_COUNT,
    LARGEST_SEED,
    OUTPUT_PANEL,
    DatasetOption,
    FeaturesArguments,
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
from cceclust.cli.settings import Setting, parse_settings, print_settings, settings_of
from cceclust.cli.summary import print_summary, summarize
from cceclust.errors import InputError
from cceclust.presets import PAPER_FEATURES
from cceclust.progress import show_phases

METHOD_PANEL = "Method"
METHOD_NAMES = ("cce", "cce-pgd", "migd", "sela", "miadm", "kmeans")
# Parameters of the estimators that have an option of their own, or that the command sets itself.
OPTIONS = {
    "n_clusters": "--k",
    "prior": "--prior",
    "n_init": "--restarts",
    "scale": "--scale",
    "random_state": "--seed",
    "verbose": "--quiet",
    "n_extra_clusters": "--k",
}


def check_method(name: str) -> str:
    """Refuse methods that do not exist."""
    if name not in METHOD_NAMES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(METHOD_NAMES)}")
    return name


def check_preset(name: str | None) -> str | None:
    """Refuse presets that do not exist."""
    if name not in (None, "paper"):
        raise typer.BadParameter(f"{name!r} is not a preset; there is: paper")
    return name


def check_scale(name: str | None) -> str | None:
    """Refuse ways to scale that do not exist."""
    if name not in (None, "auto", "overall", "columns", "directions"):
        raise typer.BadParameter(f"{name!r} is none of auto, overall, columns, directions")
    return name


def whole_number(name: str, least: int, most: int) -> Any:
    """Return a parser of whole numbers in a range, which the help then need not show."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise typer.BadParameter(f"{text!r}; expected {name} from {least} to {most:,}")
        return number

    return parse


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


def parse_prior(text: str) -> list[float]:
    """Turn "0.5,0.3,0.2" into numbers that sum to 1."""
    from cceclust.validation import as_prior

    try:
        prior = [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected numbers separated by commas, such as 0.5,0.3,0.2") from None
    try:
        as_prior(prior)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return prior


def method_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on the method."""
    return typer.Option(*names, rich_help_panel=METHOD_PANEL, **settings)


def settings_for(method: str, *, has_labels: bool = False) -> dict[str, Setting]:
    """Return what ``--set`` can change of a method, or of the classifier that learns from labels."""
    return settings_of(parameters_of(method, has_labels=has_labels), skip=OPTIONS)


def parameters_of(method: str, *, has_labels: bool = False) -> type[Any]:
    """Return a class with the parameters of a method: the estimator, or less where it takes less long to load."""
    if has_labels:
        from cceclust.estimators import CCEClassifier

        return CCEClassifier
    if method == "cce":
        from cceclust.estimators.cce_method import CCEMethod

        return CCEMethod
    from cceclust.estimators.methods import METHODS

    return METHODS[method]


def list_settings(texts: list[str] | None) -> list[str] | None:
    """Print all that ``--set`` knows, and stop, if it is asked for help."""
    if texts is not None and "help" in texts:
        from cceclust.estimators import CCEClusterer

        # The estimator's own, as it has the descriptions.
        common = settings_of(CCEClusterer, skip=OPTIONS)
        groups = {"All methods but kmeans": common}
        for method in METHOD_NAMES:
            own = {name: setting for name, setting in settings_for(method).items() if name not in common}
            if own:
                groups[f"Method {method}"] = own
        with_labels = settings_for("cce", has_labels=True)
        groups["With --labels or --soft-labels"] = {
            name: setting for name, setting in with_labels.items() if name not in common
        }
        print_settings(groups)
        raise typer.Exit
    return texts


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
        str,
        method_option(
            callback=check_method,
            metavar="NAME",
            help="[cyan]cce[/] (collision cross-entropy by EM), or to compare: cce-pgd, migd, sela, miadm, kmeans.",
        ),
    ] = "cce",
    preset: Annotated[
        str | None,
        method_option(
            callback=check_preset,
            metavar="NAME",
            help="[cyan]paper[/]: the paper's own method, on raw features. [dim]\\[default: none][/]",
        ),
    ] = None,
    prior: Annotated[
        Any,
        method_option(
            parser=parse_prior,
            metavar="P,P,…",
            help="Expected parts of the clusters, e.g. [cyan]0.5,0.3,0.2[/]. [dim]\\[default: the data decide][/]",
        ),
    ] = None,
    restarts: Annotated[
        int | None,
        method_option(
            parser=whole_number("a number", 1, LARGEST_COUNT),
            metavar="N",
            help="Heads to train, from different starts. [dim]\\[default: 6; with labels 2, other methods 10][/]",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        method_option(
            callback=check_scale,
            metavar="HOW",
            help="Divide all [cyan]columns[/] by their deviations, [cyan]overall[/] by one number, or long "
            "[cyan]directions[/] more than short ones; [cyan]auto[/] decides by the data. [dim]\\[default: auto][/]",
        ),
    ] = None,
    seed: Annotated[
        int,
        method_option(
            parser=whole_number("a number", 0, LARGEST_SEED), metavar="N", help="Same seed, same clusters, to the bit."
        ),
    ] = 0,
    labels: Annotated[
        str | None,
        method_option(
            metavar="FILE|NAME",
            help="Labels of some rows: a .csv with [cyan]row[/], [cyan]name[/] or [cyan]path[/] and [cyan]label[/], a "
            "file with one label per row (-1: unknown), or a dataset in FEATURES. [dim]\\[default: none][/]",
        ),
    ] = None,
    soft_labels: Annotated[
        str | None,
        method_option(
            metavar="FILE|NAME",
            help="Distributions over classes instead: .csv with one column per class, .npy, .h5, or the name of a "
            "dataset. [dim]\\[default: none][/]",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        method_option(
            "--set",
            metavar="NAME=VALUE",
            callback=list_settings,
            is_eager=True,
            help="Any other parameter of the method; may be repeated. [cyan]--set help[/] lists them.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    names_dataset: IdOption = None,
    keep: KeepOption = None,
    memory: MemoryOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Have the workers of a Dask scheduler, e.g. [cyan]tcp://10.0.0.1:8786[/], read the files and write "
            "the clusters. [dim]\\[default: this machine][/]",
            rich_help_panel=INPUT_PANEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Clusters to write: .h5, .csv, .parquet or .npy; - for a .csv on stdout. "
            "[dim]\\[default: FEATURES.clusters.h5, beside each file][/]",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Model to write. [dim]\\[default: FEATURES.model.safetensors][/]",
            rich_help_panel=OUTPUT_PANEL,
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report", help="Also write FEATURES.report.html, to look at.", rich_help_panel=OUTPUT_PANEL),
    ] = False,
    write_obs: WriteObsOption = False,
    full_paths: FullPathsOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cluster features: no labels needed, nor the number of clusters.

    Writes the clusters and a model beside the features and prints a summary.
    True labels inside the file are not used for clustering; if there are any,
    the summary says how well the clusters match them.

    With --labels or --soft-labels, clusters take the names of the classes;
    clusters beyond the classes stay unnamed.
    """
    from cceclust.io.features import existing_files

    check_output(features, out, as_json=as_json)
    if labels is not None and soft_labels is not None:
        raise typer.BadParameter("give labels or soft labels, not both", param_hint="--soft-labels")
    has_labels = labels is not None or soft_labels is not None
    if has_labels and k is not None and not isinstance(k, int):
        raise typer.BadParameter("labels need a number of clusters, or none for one per class", param_hint="--k")
    if cluster is not None:
        unfit = {
            "--labels": labels,
            "--soft-labels": soft_labels,
            "--out": out,
            "--report": report,
            "--write-obs": write_obs,
        }
        for option, value in unfit.items():
            if value:
                raise typer.BadParameter("cannot be used with --cluster", param_hint=option)
    existing_files(features)
    n_clusters: Any = "auto" if k is None and not has_labels else k
    parameters = chosen_parameters(
        method,
        {"prior": prior, "n_init": restarts, "scale": scale},
        changes or [],
        preset=preset,
        has_labels=has_labels,
        n_clusters=n_clusters,
    )
    # Checked above is what needs nothing that takes long to load.
    from cceclust.clustering import fit_file

    common: dict[str, Any] = {
        "method": method,
        "model": model,
        "force": force,
        "full_paths": full_paths,
        "dataset": dataset,
        "labels_dataset": labels_dataset,
        "names_dataset": names_dataset,
        "keep": keep or [],
        "memory": memory,
        "random_state": seed,
        **parameters,
    }
    with task_progress(quiet=quiet or as_json) as bar:
        common["on_progress"] = show_phases(bar)
        if cluster is not None:
            from cceclust.sharding import fit_shards

            clusters, written = fit_shards(features, n_clusters, cluster=cluster, **common)
        else:
            clusters, written = fit_file(
                features,
                n_clusters,
                out=out,
                report=report,
                write_obs=write_obs,
                labels=labels,
                soft_labels=soft_labels,
                **common,
            )
    summary = summarize(clusters, written)
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary, to_stderr=out == Path("-"))


def chosen_parameters(
    method: str,
    options: dict[str, Any],
    changes: list[str],
    *,
    preset: str | None,
    has_labels: bool,
    n_clusters: Any,
) -> dict[str, Any]:
    """Return the parameters of the estimator that were given, after a check of each."""
    if has_labels and method != "cce":
        raise typer.BadParameter(f"method {method} cannot learn from labels", param_hint="--method")
    if preset is not None and (has_labels or method != "cce"):
        raise typer.BadParameter("is for method cce without labels", param_hint="--preset")
    chosen = {name: value for name, value in options.items() if value is not None}
    kind = parameters_of(method, has_labels=has_labels)
    known = kind().get_params()
    for name in chosen:
        if name not in known:
            raise typer.BadParameter(f"method {method} has no such parameter", param_hint=OPTIONS[name])
    for text in changes:
        name = text.partition("=")[0]
        if name in OPTIONS:
            raise typer.BadParameter(f"{name} has an option of its own: {OPTIONS[name]}", param_hint="--set")
    rare = parse_settings(changes, settings_for(method, has_labels=has_labels))
    parameters = {**(PAPER_FEATURES if preset == "paper" else {}), **chosen, **rare}
    if not has_labels and method != "kmeans":
        try:
            kind(n_clusters, **parameters)._check_parameters()
        except InputError as error:
            raise typer.BadParameter(str(error)) from error
    return parameters
