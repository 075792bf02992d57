"""How many kinds of digits are there? The number of clusters is found from the data, and its score is drawn.

python examples/unknown_k.py --out unknown-k.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from cceclust import CCEClusterer


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1797, help="use only the first rows")
    parser.add_argument("--out", type=Path, default=Path("unknown-k.png"), help="the picture")
    options = parser.parse_args(arguments)

    images, _ = load_digits(return_X_y=True)
    model = CCEClusterer("auto", random_state=0).fit(images[: options.rows])
    print(model.k_search_.in_words())

    numbers, scores = list(model.k_scores_), list(model.k_scores_.values())
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(numbers, scores, ".-", color="#8a9a9a")
    # A single cluster, the answer where nothing speaks for clusters, has no score.
    best, height = model.n_clusters_, model.k_scores_.get(model.n_clusters_, 0.0)
    axes.plot(best, height, "o", color="#00796b", markersize=10)
    axes.annotate(f"{best} clusters", (best, height), (0, 10), textcoords="offset points", ha="center")
    axes.margins(y=0.15)
    axes.set(xlabel="number of clusters", ylabel="score", xscale="log", xticks=(2, 5, 10, 20, 50, 100))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out, dpi=100)


if __name__ == "__main__":
    main()
