"""The summary of a clustering that ``fit``, ``predict`` and ``deep`` print."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cceclust.cli.console import messages, print_json, print_warning, results
from cceclust.errors import ClusteringWarning, InputError

if TYPE_CHECKING:
    from rich.text import Text

    from cceclust.io import Clusters

BAR_WIDTH = 30
MOST_BARS = 40
MOST_OF_A_NAME = 40


def show(clusters: Clusters, written: Sequence[Path], *, as_json: bool, quiet: bool, to_stderr: bool = False) -> None:
    """Warn of a number of clusters that says little, and print the summary; to stderr if clusters go to stdout."""
    summary = summarize(clusters, written)
    found = clusters.diagnostics.get("number_of_clusters") or {}
    if found.get("at_edge"):
        print_warning(f"{found['chosen']} clusters were taken, but numbers beyond those of --k are more reproducible")
    elif found.get("is_weak"):
        print_warning("no number of clusters stands out; use --k N to split the rows anyway")
    if as_json:
        print_json(summary)
    elif not quiet:
        print_summary(summary, to_stderr=to_stderr)


def summarize(clusters: Clusters, written: Sequence[Path]) -> dict[str, Any]:
    """Gather the figures that a person or a script needs; true labels are used for `against_labels` alone."""
    import numpy as np

    assert clusters.probabilities is not None
    n_clusters = clusters.probabilities.shape[1]
    return {
        "n_samples": len(clusters.labels),
        "n_clusters": n_clusters,
        "classes": clusters.parameters.get("classes"),
        "sizes": np.bincount(clusters.labels, minlength=n_clusters).tolist(),
        "mean_confidence": float(clusters.probabilities.max(axis=1).mean(dtype=np.float64)),
        "diagnostics": clusters.diagnostics,
        "against_labels": compare_with_labels(clusters),
        "levels": clusters.levels,
        "parameters": clusters.parameters,
        "files": [str(path) for path in written],
    }


def compare_with_labels(clusters: Clusters) -> dict[str, float] | None:
    """Score clusters against the true labels in their file."""
    from cceclust.scoring import label_accuracy, score_clusters

    if clusters.true_labels is None:
        return None
    try:
        scores = score_clusters(clusters.true_labels, clusters.labels)
    except InputError as error:
        # The clusters are valid without these scores.
        warnings.warn(f"clusters are not scored: {error}", ClusteringWarning, stacklevel=2)
        return None
    accuracy, classes = scores.accuracy, clusters.parameters.get("classes") or []
    if not set(map(str, clusters.true_labels)).isdisjoint(map(str, classes)):
        # Clusters that have the names of the classes need no matching.
        accuracy = label_accuracy(clusters.true_labels, clusters.named_labels)
    return {"accuracy": accuracy, "nmi": scores.nmi, "ari": scores.ari}


def print_summary(summary: dict[str, Any], *, to_stderr: bool = False) -> None:
    """Print a summary for people."""
    from rich.text import Text

    console = messages() if to_stderr else results()
    rows = f"{summary['n_samples']:,} rows in {summary['n_clusters']:,} cluster{'s' * (summary['n_clusters'] != 1)}"
    console.print(Text(rows, style="bold"), *size_lines(summary["sizes"], summary["classes"]), sep="\n", soft_wrap=True)
    diagnostics = summary["diagnostics"]
    found = diagnostics.get("number_of_clusters") or {}
    splits = found.get("splits", {})
    lines = {
        "Number": number_text(found),
        "Quality": quality_text(summary["mean_confidence"], diagnostics),
        "Labels": labels_text(summary["against_labels"], learned="labelled_rows" in diagnostics),
        "Doubts": "; ".join(f"cluster {cluster} looks like {parts} groups" for cluster, parts in splits.items()),
        "Data": "; ".join(notes_on_data(summary["n_samples"], diagnostics)),
        "Wrote": ", ".join(summary["files"]),
        "Next": "" if to_stderr else next_text(summary["files"]),
    }
    for name, text in lines.items():
        if text:
            console.print(f"{name:<9}{text}", markup=False, soft_wrap=True)


def number_text(found: dict[str, Any]) -> str:
    """Say how the number of clusters was chosen, as a range: a single number would claim too much."""
    if not found or found["is_weak"]:
        # Where none stands out, a warning says so.
        return ""
    low, high, chosen = found["low"], found["high"], found["chosen"]
    text = (f"{low} to {high} clusters are about as reproducible; " if low < high else "") + f"{chosen} taken"
    others = [f"{number} ({'coarser' if int(number) < chosen else 'finer'})" for number in found.get("further", {})]
    return text + ("; alternatives: " + ", ".join(others) if others else "")


def quality_text(mean_confidence: float, diagnostics: dict[str, Any]) -> str:
    """Say how good the clusters are as far as is known without labels."""
    text = f"mean confidence {mean_confidence:.2f}"
    modularity, scores = diagnostics.get("modularity"), list((diagnostics.get("candidates") or {}).values())
    if modularity is None:
        return text
    among = ""
    if len(scores) > 1:
        is_best = modularity >= max(scores)
        among = f", the best of {len(scores)} clusterings" if is_best else f" (the highest was {max(scores):.3f})"
    return f"modularity {modularity:.3f}{among}; {text}"


def labels_text(figures: dict[str, float] | None, *, learned: bool) -> str:
    """Compare the clusters with true labels."""
    if figures is None:
        return ""
    where = "on rows that no label was given for" if learned else "not used in the fit"
    return f"ACC {figures['accuracy']:.3f}  NMI {figures['nmi']:.3f}  ARI {figures['ari']:.3f}  ({where})"


def notes_on_data(n_samples: int, diagnostics: dict[str, Any]) -> list[str]:
    """Say what was done to the data."""
    notes = [str(note) for note in diagnostics.get("notes", [])]
    if diagnostics.get("columns_scaled"):
        notes.append("columns were standardised; --scale overall turns it off")
    trained = diagnostics.get("trained_rows")
    if trained is not None and trained < n_samples:
        notes.append(f"learned from {trained:,} rows")
    return notes


def next_text(files: list[str]) -> str:
    """Name the command that a person probably wants next."""
    clusters = next((name for name in files if name.endswith((".h5", ".hdf5"))), None)
    if clusters is not None and not any(name.endswith(".html") for name in files):
        return f"cceclust report {shlex.quote(clusters)}"
    model = next((name for name in files if name.endswith(".safetensors")), None)
    return "" if model is None else f"cceclust predict {shlex.quote(model)} NEW_FEATURES"


def size_lines(sizes: list[int], names: list[Any] | None = None) -> Iterator[Text]:
    """Draw the cluster sizes as bars; if there are too many for a screen, only the largest."""
    from rich.cells import cell_len
    from rich.text import Text

    order = sorted(range(len(sizes)), key=lambda cluster: -sizes[cluster])
    shown = range(len(sizes)) if len(sizes) <= MOST_BARS else order[:MOST_BARS]
    labels = [Text(str(cluster if names is None else names[cluster])) for cluster in shown]
    width = min(max(cell_len(label.plain) for label in labels), MOST_OF_A_NAME)
    digits = len(f"{max(sizes):,}")
    for label, cluster in zip(labels, shown, strict=True):
        label.truncate(width, overflow="ellipsis")
        label.pad_left(2 + width - cell_len(label.plain))
        # Even the smallest cluster that has rows has a bar.
        length = -(-BAR_WIDTH * sizes[cluster] // max(sizes))
        yield label.append(f"  {'█' * length:<{BAR_WIDTH}}", style="cyan").append(f"  {sizes[cluster]:>{digits},}")
    if len(sizes) > MOST_BARS:
        yield Text(f"  … and {len(sizes) - MOST_BARS:,} smaller ones")
