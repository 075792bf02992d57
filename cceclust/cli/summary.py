"""The summary of a clustering that ``fit``, ``predict`` and ``deep`` print."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cceclust.cli.console import messages, print_json, print_warning, results
from cceclust.errors import ClusteringWarning, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from cceclust.io import Clusters

BAR_WIDTH = 30
MOST_BARS = 40


@dataclass(frozen=True)
class Summary:
    """The figures about a clustering that a person or a script needs.

    The figures in `against_labels` are the only ones for which true labels were used.
    """

    n_samples: int
    n_clusters: int
    classes: list[Any] | None
    sizes: list[int]
    mean_confidence: float
    diagnostics: dict[str, Any]
    against_labels: dict[str, float] | None
    levels: list[list[float]] | None
    parameters: dict[str, Any]
    files: list[str]


def summarize(clusters: Clusters, written: Sequence[Path]) -> Summary:
    """Gather the figures."""
    import numpy as np

    from cceclust.scoring import label_accuracy, score_clusters

    assert clusters.probabilities is not None
    n_clusters, classes = clusters.probabilities.shape[1], clusters.parameters.get("classes")
    against_labels = None
    if clusters.true_labels is not None:
        try:
            scores = score_clusters(clusters.true_labels, clusters.labels)
            against_labels = {"accuracy": scores.accuracy, "nmi": scores.nmi, "ari": scores.ari}
            if classes is not None and not set(map(str, clusters.true_labels)).isdisjoint(map(str, classes)):
                # Clusters that have the names of the classes need no matching.
                against_labels["accuracy"] = label_accuracy(clusters.true_labels, clusters.named_labels)
        except InputError as error:
            # The clusters are valid without these scores.
            warnings.warn(f"clusters are not scored: {error}", ClusteringWarning, stacklevel=2)
    return Summary(
        n_samples=len(clusters.labels),
        n_clusters=n_clusters,
        classes=classes,
        sizes=np.bincount(clusters.labels, minlength=n_clusters).tolist(),
        mean_confidence=float(clusters.probabilities.max(axis=1).mean(dtype=np.float64)),
        diagnostics=clusters.diagnostics,
        against_labels=against_labels,
        levels=None if clusters.levels is None else clusters.levels.tolist(),
        parameters=clusters.parameters,
        files=[str(path) for path in written],
    )


def show(clusters: Clusters, written: Sequence[Path], *, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Warn of a number of clusters that says little, and print the summary for a person or a script."""
    summary = summarize(clusters, written)
    found = summary.diagnostics.get("number_of_clusters") or {}
    if found.get("is_weak"):
        print_warning("no number of clusters stands out; use --k N to set it yourself")
    elif found.get("at_edge"):
        edge = f"{found['chosen']} is at the edge of the numbers in --k"
        print_warning(f"{edge}, and numbers beyond it are more reproducible")
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary, to_stderr=out == Path("-"))


def print_summary(summary: Summary, *, to_stderr: bool = False) -> None:
    """Print a summary for people; to stderr if the clusters themselves go to stdout."""
    console = messages() if to_stderr else results()
    plural = "" if summary.n_clusters == 1 else "s"
    console.print(f"[bold]{summary.n_samples:,} rows in {summary.n_clusters} cluster{plural}[/]")
    console.print(size_table(summary.sizes, summary.classes))
    lines = {
        "Number": number_text(summary),
        "Quality": quality_text(summary),
        "Labels": labels_text(summary),
        "Data": "; ".join(notes_on_data(summary)),
        "Wrote": ", ".join(summary.files),
        "Next": "" if to_stderr else next_text(summary),
    }
    for name, text in lines.items():
        if text:
            console.print(f"{name:<9}{text}", markup=False, soft_wrap=True)


def number_text(summary: Summary) -> str:
    """Say how the number of clusters was chosen, as a range: a single number would claim too much."""
    found = summary.diagnostics.get("number_of_clusters")
    if found is None or found["is_weak"]:
        # Where none stands out, a warning says so.
        return ""
    low, high, chosen = found["low"], found["high"], found["chosen"]
    several = f"{low} to {high} clusters" if low < high else f"{low} clusters"
    if not low <= chosen <= high:
        return f"{several} are more reproducible than the {chosen} taken"
    if low == high:
        return f"{several} are the most reproducible"
    return f"{several} are about as reproducible; {chosen} taken"


def quality_text(summary: Summary) -> str:
    """Say how good the clusters are as far as is known without labels."""
    text = f"mean confidence {summary.mean_confidence:.2f}"
    reason = summary.diagnostics.get("reason")
    return f"{text}; {reason}" if reason else text


def labels_text(summary: Summary) -> str:
    """Compare the clusters with true labels."""
    figures = summary.against_labels
    if figures is None:
        return ""
    where = "on rows that no label was given for" if "labelled_rows" in summary.diagnostics else "not used in the fit"
    return f"ACC {figures['accuracy']:.3f}  NMI {figures['nmi']:.3f}  ARI {figures['ari']:.3f}  ({where})"


def notes_on_data(summary: Summary) -> list[str]:
    """Say what was done to the data."""
    notes = [str(note) for note in summary.diagnostics.get("notes", [])]
    if summary.diagnostics.get("columns_scaled"):
        notes.append("columns were standardised; --scale overall turns it off")
    trained = summary.diagnostics.get("trained_rows")
    if trained is not None and trained < summary.n_samples:
        notes.append(f"learned from {trained:,} rows")
    return notes


def next_text(summary: Summary) -> str:
    """Name the command that a person probably wants next."""
    clusters = next((name for name in summary.files if name.endswith((".h5", ".hdf5"))), None)
    if clusters is not None and not any(name.endswith(".html") for name in summary.files):
        return f"cceclust report {shlex.quote(clusters)}"
    model = next((name for name in summary.files if name.endswith(".safetensors")), None)
    return "" if model is None else f"cceclust predict {shlex.quote(model)} NEW_FEATURES"


def size_table(sizes: list[int], names: list[Any] | None = None) -> Table:
    """Draw the cluster sizes as bars; if there are too many for a screen, only the largest."""
    from rich import box
    from rich.bar import Bar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False, padding=(0, 1))
    table.add_column(justify="right", style="dim")
    table.add_column()
    table.add_column(justify="right")
    order = sorted(range(len(sizes)), key=lambda cluster: -sizes[cluster])
    shown = range(len(sizes)) if len(sizes) <= MOST_BARS else order[:MOST_BARS]
    for cluster in shown:
        bar = Bar(max(sizes), 0, sizes[cluster], width=BAR_WIDTH, color="cyan")
        table.add_row(Text(str(cluster if names is None else names[cluster])), bar, f"{sizes[cluster]:,}")
    if len(sizes) > MOST_BARS:
        table.add_row("…", "", f"{len(sizes) - MOST_BARS} more")
    return table
