"""Clusters of clothes by their ResNet-50 features, with a page to look at.

python examples/report_page.py --out clothes.report.html
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cceclust import CCEClusterer, score_clusters
from cceclust.io import Clusters, open_features, write_features
from cceclust.report import write_report

SAMPLE = Path(__file__).parent.parent / "sample_data" / "fashion-resnet50.h5"
CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="use only the first rows")
    parser.add_argument("--out", type=Path, default=Path("clothes.report.html"), help="the page")
    options = parser.parse_args(arguments)

    with open_features(SAMPLE) as sample:
        rows, labels = sample.array()[: options.rows], sample.labels[: options.rows]
    model = CCEClusterer(10, random_state=0).fit(rows)
    clusters = Clusters(
        model.labels_,
        model.probabilities_,
        true_labels=np.array(CLASSES)[labels],
        outlier_scores=model.outlier_score_,
    )
    scores = score_clusters(clusters.true_labels, clusters.labels)
    print(
        f"{scores.accuracy:.0%} of the rows are in the cluster of their class; no label was used to find the clusters"
    )

    features = options.out.with_suffix(".h5")
    write_features(features, rows, force=True)
    with open_features(features) as opened:
        write_report(clusters, options.out, features=opened, force=True)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
