"""``cceclust score``: how good clusters are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.console import print_json, results
from cceclust.cli.options import FeaturesOption, JsonOption, LabelsDatasetOption, examples, input_option

if TYPE_CHECKING:
    from cceclust.clustering import FileScores

EPILOG = examples("score features.clusters.h5", "score found.csv --labels truth.csv")
WORST_CONFUSIONS = 10


def score(
    file: Annotated[
        Path,
        typer.Argument(
            help="Clusters (.h5), a run of cceclust deep, or labels as .h5, .npy, .csv or .txt.", metavar="CLUSTERS"
        ),
    ],
    labels: Annotated[
        Path | None,
        input_option(
            metavar="FILE", help="True labels: .h5, .npy, .csv or .txt. [dim]\\[default: those in CLUSTERS][/]"
        ),
    ] = None,
    labels_dataset: LabelsDatasetOption = None,
    features: FeaturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how good clusters are, with true labels and without.

    With labels: accuracy under the best matching of clusters to classes, NMI,
    ARI, and which classes went to which clusters. Rows labelled -1 or empty
    are left out and counted.

    Without: modularity (how much more often near rows share a cluster than
    random rows would), silhouette, confidence and sizes.
    """
    if labels_dataset is not None and labels is None:
        raise typer.BadParameter("names labels inside a file; give it with --labels", param_hint="--labels-dataset")
    from cceclust.io.reading import refuse_what_is_not_there

    refuse_what_is_not_there(file)
    from cceclust.clustering import score_file

    scores = score_file(file, labels=labels, labels_dataset=labels_dataset, features=features)
    if as_json:
        print_json(scores)
    else:
        print_scores(scores)


def print_scores(scores: FileScores) -> None:
    """Print figures, the most important first, and which classes went astray."""
    from cceclust.scoring import worst_confusions

    console = results()
    console.print(scores.path, style="bold", markup=False)
    judged, alone = scores.with_labels, scores.without_labels
    if judged is not None:
        left_out = {"true label": judged.n_without_label, "cluster": judged.n_without_cluster}
        notes = [f"{count:,} rows without a {what} left out" for what, count in left_out.items() if count]
        figures = f"ACC {judged.accuracy:.4f}  NMI {judged.nmi:.4f}  ARI {judged.ari:.4f}  purity {judged.purity:.4f}"
        rows = f"{judged.n_samples:,} rows, {judged.n_classes:,} classes, {judged.n_clusters:,} clusters"
        console.print(f"\n{figures}\n{'; '.join([rows, *notes])}")
        confusions = worst_confusions(judged, WORST_CONFUSIONS)
        if confusions:
            console.print("\nMost frequent confusions")
        stands_for = {entry.cluster: entry.label for entry in judged.classes}
        for label, cluster, count in confusions:
            matched = (
                f"which stands for {stands_for[cluster]}" if cluster in stands_for else "which stands for no class"
            )
            console.print(f"{count:>8,} rows of {label} in cluster {cluster}, {matched}", markup=False, soft_wrap=True)
    found = {
        "modularity of near rows": alone.modularity,
        "silhouette": alone.silhouette,
        "mean confidence": alone.mean_confidence,
        "evenness of the sizes": alone.size_entropy,
    }
    texts = [f"{name} {value:.4f}" for name, value in found.items() if value is not None]
    texts.append(f"{alone.smallest:,} to {alone.largest:,} rows in a cluster")
    console.print("\nWithout labels: " + ", ".join(texts), soft_wrap=True)
