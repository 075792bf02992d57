"""``cceclust fit``: features in, clusters and a model out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cceclust.cli.console import print_json, task_progress
from cceclust.cli.options import (
    LARGEST_COUNT,
    LARGEST_SEED,
    OUTPUT_PANEL,
    DatasetOption,
    FeaturesArgument,
    ForceOption,
    FullPathsOption,
    JsonOption,
    LabelsDatasetOption,
    MemoryOption,
    QuietOption,
    check_above_zero,
    check_not_negative,
)
from cceclust.cli.summary import print_summary, summarize

METHOD_PANEL = "Method"
TRAINING_PANEL = "Training"
LABELS_PANEL = "Labels"
METHOD_NAMES = ("cce", "cce-pgd", "migd", "sela", "miadm", "kmeans")


def check_method(name: str) -> str:
    """Refuse methods that do not exist."""
    if name not in METHOD_NAMES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(METHOD_NAMES)}")
    return name


def check_schedule(name: str | None) -> str | None:
    """Refuse schedules that do not exist."""
    if name not in (None, "cosine", "constant"):
        raise typer.BadParameter(f"{name!r} is none of cosine, constant")
    return name


def check_init(name: str | None) -> str | None:
    """Refuse starts that do not exist."""
    if name not in (None, "auto", "random", "k-means"):
        raise typer.BadParameter(f"{name!r} is none of auto, random, k-means")
    return name


def check_loss(name: str | None) -> str | None:
    """Refuse losses that do not exist."""
    if name not in (None, "cce", "ce"):
        raise typer.BadParameter(f"{name!r} is none of cce, ce")
    return name


def parse_prior(text: str) -> list[float]:
    """Turn "0.5,0.3,0.2" into numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected numbers separated by commas, such as 0.5,0.3,0.2") from None


def number_or_auto(text: str) -> float | str:
    """Turn text into a number unless it is "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected a number or 'auto'") from None


def count_or_auto(text: str) -> int | str:
    """Turn text into a whole number unless it is "auto"."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}; expected a whole number or 'auto'") from None


def method_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on the method."""
    return typer.Option(*names, rich_help_panel=METHOD_PANEL, **settings)


def labels_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on labels."""
    return typer.Option(*names, rich_help_panel=LABELS_PANEL, **settings)


def training_option(*names: str, **settings: Any) -> Any:
    """Return an option of the panel on training."""
    return typer.Option(*names, rich_help_panel=TRAINING_PANEL, **settings)


# Options that are not called like the estimators' parameters.
OPTION_NAMES = {
    "n_neighbors": "--neighbors",
    "n_components": "--components",
    "n_init": "--restarts",
    "max_epochs": "--epochs",
    "learning_rate_schedule": "--schedule",
    "n_jobs": "--jobs",
}
METHODS_HELP = (
    "[cyan]cce[/] (collision cross-entropy by EM), or a baseline of the paper: "
    "[cyan]cce-pgd[/], [cyan]migd[/], [cyan]sela[/], [cyan]miadm[/], [cyan]kmeans[/]."
)
PRIOR_HELP = "Expected parts of the clusters, e.g. [cyan]0.5,0.3,0.2[/], for unbalanced data; equal by default."


def fit(
    features: FeaturesArgument,
    k: Annotated[int, method_option("--k", "-k", min=1, max=LARGEST_COUNT, help="Number of clusters.")],
    method: Annotated[str, method_option(callback=check_method, help=METHODS_HELP)] = "cce",
    fairness: Annotated[
        float | None, method_option(min=0, help="How much the clusters' sizes are held to the prior.")
    ] = None,
    prior: Annotated[Any, method_option(parser=parse_prior, metavar="P,P,…", help=PRIOR_HELP)] = None,
    weight_decay: Annotated[
        Any,
        method_option(
            parser=number_or_auto, callback=check_not_negative, metavar="X|auto", help="Weight decay of the head."
        ),
    ] = None,
    solver_iterations: Annotated[
        int | None, method_option(min=1, max=LARGEST_COUNT, help="Iterations of the pseudo-label solver a batch.")
    ] = None,
    sharpness: Annotated[
        float | None,
        method_option(callback=check_above_zero, help="Of [cyan]sela[/]: power of the probabilities in its transport."),
    ] = None,
    step_size: Annotated[
        Any,
        method_option(
            parser=number_or_auto,
            callback=check_above_zero,
            metavar="X|auto",
            help="Of [cyan]cce-pgd[/]: its solver's step.",
        ),
    ] = None,
    n_neighbors: Annotated[
        Any,
        method_option(
            "--neighbors",
            parser=count_or_auto,
            callback=check_not_negative,
            metavar="N|auto",
            help="Neighbours that share a row's pseudo-label.",
        ),
    ] = None,
    neighbor_weight: Annotated[
        float | None, method_option(min=0, help="Weight of the neighbour beside the row.")
    ] = None,
    standardize: Annotated[
        bool | None, method_option("--standardize/--no-standardize", help="Centre and scale the features first.")
    ] = None,
    init: Annotated[
        str | None,
        method_option(
            callback=check_init,
            help="Start heads at [cyan]random[/] or from a run of [cyan]k-means[/]; [cyan]auto[/] decides by the data.",
        ),
    ] = None,
    n_components: Annotated[
        Any,
        method_option(
            "--components",
            parser=count_or_auto,
            callback=check_not_negative,
            metavar="N|auto",
            help="Principal components to train on; 0 for the features themselves.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        labels_option(
            help="Labels of some rows: a .csv of [cyan]row[/] or [cyan]path[/] and [cyan]label[/], a file of one "
            "label a row with -1 for unknown, or the name of such a dataset in FEATURES.",
            metavar="FILE|NAME",
        ),
    ] = None,
    soft_labels: Annotated[
        str | None,
        labels_option(
            help="Distributions over classes instead: a .csv with a column a class (and [cyan]row[/] or "
            "[cyan]path[/]), .npy, .h5, or the name of a dataset in FEATURES.",
            metavar="FILE|NAME",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        labels_option(
            callback=check_loss, help="What labels teach by: [cyan]cce[/] or [cyan]ce[/], Shannon's. By default: cce."
        ),
    ] = None,
    label_noise: Annotated[
        float | None, labels_option(min=0, max=0.99, help="Part of the labels that is random. By default: 0.")
    ] = None,
    label_weight: Annotated[
        float | None,
        labels_option(
            callback=check_above_zero, help="Weight of the labels beside the clustering loss. By default: 1."
        ),
    ] = None,
    n_init: Annotated[
        int | None,
        training_option("--restarts", min=1, max=LARGEST_COUNT, help="Starts; the one with the lowest loss is kept."),
    ] = None,
    max_epochs: Annotated[
        Any,
        training_option(
            "--epochs",
            parser=count_or_auto,
            callback=check_above_zero,
            metavar="N|auto",
            help="How often a row is seen at most.",
        ),
    ] = None,
    batch_size: Annotated[int | None, training_option(min=1, max=LARGEST_COUNT, help="Rows a step.")] = None,
    learning_rate: Annotated[
        float | None, training_option(callback=check_above_zero, help="Step size at the start.")
    ] = None,
    learning_rate_schedule: Annotated[
        str | None,
        training_option("--schedule", callback=check_schedule, help="[cyan]cosine[/] or [cyan]constant[/]."),
    ] = None,
    tol: Annotated[float | None, training_option(min=0, help="Stop early below this relative improvement.")] = None,
    seed: Annotated[int, training_option(min=0, max=LARGEST_SEED, help="Same seed, same clusters, to the bit.")] = 0,
    n_jobs: Annotated[
        int | None, training_option("--jobs", help="Threads; all cores by default. No effect on the result.")
    ] = None,
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
    model: Annotated[
        Path | None,
        typer.Option(help="Model to write. By default: FEATURES.model.safetensors.", rich_help_panel=OUTPUT_PANEL),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report", help="Also write FEATURES.report.html, to look at.", rich_help_panel=OUTPUT_PANEL),
    ] = False,
    full_paths: FullPathsOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cluster features: no labels needed, but some can help.

    Writes the clusters and a model beside the features, and prints a summary. True labels inside the file are not
    used for clustering; if there are any, the summary says how well the clusters match them.

    With --labels or --soft-labels, clusters take the names of the classes; clusters beyond the classes stay unnamed.
    """
    from cceclust.clustering import fit_file

    if labels is not None and soft_labels is not None:
        raise typer.BadParameter("give labels or soft labels, not both", param_hint="--soft-labels")
    has_labels = labels is not None or soft_labels is not None
    if has_labels and method != "cce":
        raise typer.BadParameter(f"method {method} cannot learn from labels", param_hint="--method")
    chosen = {
        "fairness": fairness,
        "prior": prior,
        "weight_decay": weight_decay,
        "solver_iterations": solver_iterations,
        "sharpness": sharpness,
        "step_size": step_size,
        "n_neighbors": n_neighbors,
        "neighbor_weight": neighbor_weight,
        "standardize": standardize,
        "init": init,
        "n_components": n_components,
        "n_init": n_init,
        "max_epochs": max_epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "learning_rate_schedule": learning_rate_schedule,
        "tol": tol,
        "n_jobs": n_jobs,
        "loss": loss,
        "label_noise": label_noise,
        "label_weight": label_weight,
    }
    parameters = {name: value for name, value in chosen.items() if value is not None}
    refuse_foreign_parameters(method, parameters, has_labels=has_labels)
    with task_progress(quiet=quiet or as_json) as bar:
        task = bar.add_task("Clustering", total=None, detail="")

        def on_epoch(done: Any) -> None:
            bar.update(task, completed=done.epoch, total=done.max_epochs, detail=f"loss {done.losses.min():.4f}")

        clusters, written = fit_file(
            features,
            k,
            method=method,
            out=out,
            model=model,
            report=report,
            force=force,
            full_paths=full_paths,
            dataset=dataset,
            labels_dataset=labels_dataset,
            labels=labels,
            soft_labels=soft_labels,
            memory=memory,
            on_epoch=on_epoch,
            random_state=seed,
            **parameters,
        )
    summary = summarize(clusters, written)
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary)


def refuse_foreign_parameters(method: str, parameters: dict[str, Any], *, has_labels: bool) -> None:
    """Refuse options that the chosen method has no use for."""
    from cceclust.clustering import METHODS
    from cceclust.estimators import CCEClassifier

    known = (CCEClassifier() if has_labels else METHODS[method]()).get_params()
    for name in parameters:
        if name not in known:
            option = OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
            problem = f"method {method} has no such parameter"
            if name in ("loss", "label_noise", "label_weight"):
                problem = "needs --labels or --soft-labels"
            elif has_labels and name in METHODS[method]().get_params():
                problem = "cannot be used together with --labels or --soft-labels; leave it out"
            raise typer.BadParameter(problem, param_hint=option)
