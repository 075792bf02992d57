"""``cceclust score``: how good clusters are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.console import print_json, results
from cceclust.cli.options import INPUT_PANEL, JsonOption, LabelsDatasetOption

if TYPE_CHECKING:
    from rich.table import Table

    from cceclust.io.scores import FileScores
    from cceclust.scoring import LabelFreeScores, Scores

MOST_COLUMNS_OF_A_MATRIX = 16
CELL_WIDTH = 6
WORST_CONFUSIONS = 15
MOST_CLASSES_LISTED = 40
HIT_COLOUR = (0, 114, 178)
MISS_COLOUR = (213, 94, 0)


def score(
    file: Annotated[
        Path,
        typer.Argument(
            help="Clusters (.h5), a run of cceclust deep, or labels as .h5, .npy, .csv or .txt.", metavar="CLUSTERS"
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="True labels: .h5, .npy, .csv or .txt; by default those inside CLUSTERS.",
            metavar="FILE",
            rich_help_panel=INPUT_PANEL,
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="The features, for the silhouette; by default looked for beside CLUSTERS.", rich_help_panel=INPUT_PANEL
        ),
    ] = None,
    labels_dataset: LabelsDatasetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how good clusters are, with true labels or without.

    With labels: accuracy under the best matching of clusters to classes, NMI,
    ARI, purity, recall and precision of every class, the confusion matrix.
    Rows labelled -1 or empty are left out and counted.

    Without: modularity on the graph of neighbours (how much more often
    neighbours share a cluster than by chance), loss, confidence, balance of
    the sizes, silhouette, stability.
    """
    from cceclust.io.scores import score_file

    if labels_dataset is not None and labels is None:
        raise typer.BadParameter(
            "names labels inside a file: give the file with --labels", param_hint="--labels-dataset"
        )
    scores = score_file(file, labels=labels, labels_dataset=labels_dataset, features=features)
    if as_json:
        print_json(scores)
    else:
        print_scores(scores)


def print_scores(scores: FileScores) -> None:
    """Print tables, the most important first."""
    console = results()
    tables: dict[str, Table] = {}
    judged = scores.with_labels
    if judged is not None:
        tables["Against the true labels"] = key_figures(judged)
        if judged.n_classes <= MOST_CLASSES_LISTED:
            tables["Classes and the clusters that stand for them"] = class_table(judged)
        fits = judged.n_clusters * CELL_WIDTH + label_width(judged) <= console.width
        if judged.n_clusters <= MOST_COLUMNS_OF_A_MATRIX and fits:
            tables["Rows of each class (down) in each cluster (across)"] = confusion_table(judged)
        else:
            tables["Most frequent confusions"] = worst_confusions_table(judged)
    tables["Without labels"] = label_free_table(scores.without_labels)
    console.print(scores.path, markup=False)
    for title, table in tables.items():
        console.print(f"\n[bold]{title}[/]")
        console.print(table)


def plain_table(*headers: str) -> Table:
    """Return an empty table with names aligned left and numbers aligned right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, show_header=bool(headers))
    for position, header in enumerate(headers or ("", "")):
        table.add_column(header, justify="right" if position else "left")
    return table


def key_figures(scores: Scores) -> Table:
    """Tabulate the overall figures."""
    table = plain_table()
    table.add_row("accuracy", f"[bold green]{scores.accuracy:.4f}[/]")
    table.add_row("NMI", f"{scores.nmi:.4f}")
    table.add_row("ARI", f"{scores.ari:.4f}")
    table.add_row("purity", f"{scores.purity:.4f}")
    table.add_row("rows", f"{scores.n_samples:,}")
    table.add_row("classes, clusters", f"{scores.n_classes:,}, {scores.n_clusters:,}")
    for what, count in (("true label", scores.n_without_label), ("cluster", scores.n_without_cluster)):
        if count:
            table.add_row(f"[yellow]left out, no {what}[/]", f"[yellow]{count:,}[/]")
    return table


def class_table(scores: Scores) -> Table:
    """Tabulate recall and precision of every class."""
    from rich.text import Text

    table = plain_table("class", "cluster", "rows", "recall", "precision")
    for entry in scores.classes:
        table.add_row(
            Text(str(entry.label)),
            Text("–" if entry.cluster is None else str(entry.cluster)),
            f"{entry.size:,}",
            f"{entry.recall:.3f}",
            "–" if entry.precision is None else f"{entry.precision:.3f}",
        )
    return table


def label_width(scores: Scores) -> int:
    """Return the width of the names at the left of a matrix."""
    return 4 + max(len(str(entry.label)) for entry in scores.classes)


def confusion_table(scores: Scores) -> Table:
    """Tabulate the matched confusion matrix, each cell coloured by its share of the class."""
    from rich.markup import escape
    from rich.text import Text

    table = plain_table("", *map(escape, map(str, scores.clusters)))
    for row, entry in enumerate(scores.classes):
        cells = [
            Text(f"{count:,}" if count else "·", style=cell_style(count / entry.size, is_hit=row == column))
            for column, count in enumerate(scores.confusion[row])
        ]
        table.add_row(Text(str(entry.label), style="bold"), *cells)
    return table


def cell_style(share: float, *, is_hit: bool) -> str:
    """Return the colour of a cell: blue on the diagonal, orange elsewhere; a larger share gives a stronger colour."""
    if share < 0.005:
        return "dim"
    strength = 0.15 + 0.85 * share**0.5
    colour = HIT_COLOUR if is_hit else MISS_COLOUR
    red, green, blue = (round(255 - strength * (255 - channel)) for channel in colour)
    ink = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 140 else "black"
    return f"{ink} on rgb({red},{green},{blue})"


def worst_confusions_table(scores: Scores) -> Table:
    """Tabulate the largest mistakes, where a whole matrix would not fit."""
    from rich.text import Text

    from cceclust.scoring import worst_confusions

    stands_for = {entry.cluster: str(entry.label) for entry in scores.classes}
    table = plain_table("class", "in cluster", "which stands for", "rows")
    for label, cluster, count in worst_confusions(scores, WORST_CONFUSIONS):
        table.add_row(Text(str(label)), Text(str(cluster)), Text(stands_for.get(cluster, "no class")), f"{count:,}")
    return table


def label_free_table(scores: LabelFreeScores) -> Table:
    """Tabulate the scores that need no true labels."""
    table = plain_table()
    figures = {
        "modularity on the neighbour graph": scores.modularity,
        "training loss (no measure of quality)": scores.loss,
        "mean confidence": scores.mean_confidence,
        "entropy of the sizes (1 = all equal)": scores.size_entropy,
        "silhouette of a sample (−1 to 1)": scores.silhouette,
        "agreement of the candidates (mean ARI)": scores.restart_agreement,
    }
    for name, value in figures.items():
        if value is not None:
            table.add_row(name, f"{value:.4f}")
    table.add_row("cluster sizes", f"{scores.smallest:,} to {scores.largest:,}")
    if scores.n_empty:
        table.add_row("[yellow]empty clusters[/]", f"[yellow]{scores.n_empty:,} of {scores.n_clusters:,}[/]")
    return table
