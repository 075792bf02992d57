"""The summary of a clustering that ``fit`` and ``predict`` print."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cceclust.cli.console import messages, results
from cceclust.errors import ClusteringWarning, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from cceclust.io import Clusters

__all__ = ["Summary", "print_summary", "summarize"]

BAR_WIDTH = 30
MOST_BARS = 40
CHART_WIDTH = 50
BLOCKS = "▁▂▃▄▅▆▇█"


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
    loss: float | None
    restart_losses: list[float] | None
    diagnostics: dict[str, Any]
    against_labels: dict[str, float] | None
    k_scores: dict[int, float] | None
    parameters: dict[str, Any]
    files: list[str]


def summarize(clusters: Clusters, written: Sequence[Path]) -> Summary:
    """Gather the figures."""
    import numpy as np

    from cceclust.scoring import label_accuracy, score_clusters

    against_labels = None
    if clusters.true_labels is not None:
        try:
            scores = score_clusters(clusters.true_labels, clusters.labels)
            against_labels = {"accuracy": scores.accuracy, "nmi": scores.nmi, "ari": scores.ari}
            if share_names(clusters.true_labels, clusters.parameters.get("classes")):
                # Clusters that have the names of the classes need no matching.
                against_labels["accuracy"] = label_accuracy(clusters.true_labels, clusters.named_labels)
        except InputError as error:
            # The clusters are valid without these scores.
            warnings.warn(f"clusters are not scored: {error}", ClusteringWarning, stacklevel=2)
    table = clusters.k_search
    if clusters.probabilities is None:
        # They are where workers wrote them.
        n_clusters, confidence = clusters.parameters["n_clusters"], clusters.diagnostics["mean_confidence"]
    else:
        n_clusters = clusters.probabilities.shape[1]
        confidence = float(clusters.probabilities.max(axis=1).mean(dtype=np.float64))
    return Summary(
        n_samples=len(clusters.labels),
        n_clusters=n_clusters,
        classes=clusters.parameters.get("classes"),
        sizes=np.bincount(clusters.labels, minlength=n_clusters).tolist(),
        mean_confidence=confidence,
        loss=clusters.diagnostics.get("loss"),
        restart_losses=None if clusters.losses is None else clusters.losses.tolist(),
        diagnostics=clusters.diagnostics,
        against_labels=against_labels,
        k_scores=None if table is None else dict(zip(table.ks.tolist(), table.scores.tolist(), strict=True)),
        parameters=clusters.parameters,
        files=[str(path) for path in written],
    )


def print_summary(summary: Summary, *, to_stderr: bool = False) -> None:
    """Print a summary for people; to stderr if the clusters themselves go to stdout."""
    console = messages() if to_stderr else results()
    plural = "" if summary.n_clusters == 1 else "s"
    console.print(f"[bold]{summary.n_samples:,} rows in {summary.n_clusters} cluster{plural}[/]")
    if summary.k_scores:
        console.print(k_chart(summary.k_scores, summary.n_clusters), markup=False, soft_wrap=True)
    how_many = summary.diagnostics.get("number_of_clusters")
    # If no clusters were found, a warning has said so.
    if how_many is not None and how_many not in summary.diagnostics.get("warnings", []):
        console.print(f"Chosen: {how_many}", markup=False, soft_wrap=True)
    console.print(size_table(summary.sizes, summary.classes))
    console.print(f"Mean confidence  {summary.mean_confidence:.3f}")
    if summary.diagnostics.get("candidates"):
        console.print(f"Modularity       {judged_text(summary.diagnostics)}", soft_wrap=True, markup=False)
    elif summary.restart_losses and summary.loss is not None:
        console.print(f"Restarts         {restarts_text(summary.loss, summary)}", soft_wrap=True)
    if summary.diagnostics.get("columns_scaled"):
        console.print(
            "Columns          scaled one by one, so that none outweighs the others; --scale overall keeps them",
            soft_wrap=True,
        )
    if summary.diagnostics.get("directions_evened"):
        console.print(
            "Directions       evened out, so that short ones count as well; --scale overall or columns keeps them",
            soft_wrap=True,
        )
    if summary.diagnostics.get("curved"):
        console.print(
            "Borders          curved, as linear ones predict fewer unseen rows; --set curved=false keeps them straight",
            soft_wrap=True,
        )
    trained = summary.diagnostics.get("trained_rows")
    if trained is not None and trained < summary.n_samples:
        console.print(f"Trained on       a random sample of {trained:,} rows")
    if "seconds" in summary.diagnostics:
        count = summary.diagnostics["n_iter"]
        epochs = f"{count} epoch{'' if count == 1 else 's'}"
        console.print(f"Time             {summary.diagnostics['seconds']:.1f} s, {epochs}")
    if summary.against_labels is not None:
        figures = summary.against_labels
        console.print(
            f"[green]ACC {figures['accuracy']:.3f}   NMI {figures['nmi']:.3f}   ARI {figures['ari']:.3f}[/]   "
            f"[dim]({labels_text(summary)})[/]",
            soft_wrap=True,
        )
    for path in summary.files:
        console.print(f"Wrote {path}", markup=False, soft_wrap=True)


def k_chart(scores: dict[int, float], chosen: int) -> str:
    """Draw the score of each number of clusters and mark the chosen one; many numbers share columns.

    Examples
    --------
    >>> print(k_chart({2: 0.1, 3: 0.4, 4: 0.3, 5: 0.2}, 3))
    <BLANKLINE>
      ▃█▆▅  2 to 5 clusters
       ^ 3
    """
    ks = sorted(scores)
    width = min(len(ks), CHART_WIDTH)
    # A column of several numbers shows the highest score, and so that of the chosen number.
    columns = [ks[i * len(ks) // width : (i + 1) * len(ks) // width] for i in range(width)]
    heights = [max(scores[k] for k in column) for column in columns]
    top = max(max(heights), 1e-12)
    bars = "".join(BLOCKS[round(max(height, 0.0) / top * (len(BLOCKS) - 1))] for height in heights)
    chart = f"\n  {bars}  {ks[0]} to {ks[-1]} clusters"
    place = next((i for i, column in enumerate(columns) if chosen in column), None)
    return chart if place is None else f"{chart}\n  {' ' * place}^ {chosen}"


def share_names(true_labels: Any, classes: list[Any] | None) -> bool:
    """Tell whether clusters have the names of true classes."""
    return classes is not None and not {str(label) for label in true_labels}.isdisjoint(map(str, classes))


def labels_text(summary: Summary) -> str:
    """Explain the figures that use labels."""
    if summary.classes is None:
        return "labels were used for this line only"
    return "on rows that no label was given for" if "labelled_rows" in summary.diagnostics else "true labels"


def judged_text(diagnostics: dict[str, Any]) -> str:
    """Describe which candidate was kept and its modularity on the graph of neighbours.

    The modularity is how much more often neighbours share a cluster than random pairs of rows do.
    """
    scores, chosen = diagnostics["candidates"], diagnostics["chosen"]
    text = f"{diagnostics['modularity']:.3f} on the neighbour graph; {chosen}"
    if len(scores) == 1:
        return text
    others = len(scores) - 1
    agreeing = diagnostics["agreeing_restarts"] - 1
    text += f", of {len(scores)} candidates from {min(scores.values()):.3f} to {max(scores.values()):.3f}"
    return f"{text}; {agreeing} of the other {others} found the same clusters"


def restarts_text(loss: float, summary: Summary) -> str:
    """Describe how the restarts compare, and that their loss is no measure of quality."""
    assert summary.restart_losses is not None
    count = len(summary.restart_losses)
    if count == 1:
        return f"one; its training loss of {loss:.4f} says nothing about quality"
    text = f"the one of {count} with the lowest training loss ({loss:.4f}, up to {max(summary.restart_losses):.4f})"
    agreeing = summary.diagnostics.get("agreeing_restarts")
    return text if agreeing is None else f"{text}; {agreeing - 1} of the other {count - 1} found the same clusters"


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
