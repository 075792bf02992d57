"""What a few labels are worth: a classifier that also learns from the rows without a label, beside one that does not.

python examples/few_labels.py --out few-labels.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cceclust import CCEClassifier

LABELS_OF_EACH_CLASS = (1, 2, 5, 10)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1797, help="use only the first rows")
    parser.add_argument("--out", type=Path, default=Path("few-labels.png"), help="the picture")
    options = parser.parse_args(arguments)

    images, truth = load_digits(return_X_y=True)
    images, truth = images[: options.rows], truth[: options.rows]
    right: dict[str, list[float]] = {"cceclust, all rows": [], "logistic regression, labelled rows": []}
    order = np.random.default_rng(0).permutation(len(truth))
    for count in LABELS_OF_EACH_CLASS:
        known = np.concatenate([order[truth[order] == digit][:count] for digit in range(10)])
        rest = np.setdiff1d(order, known)
        given = np.full(len(truth), -1)
        given[known] = truth[known]
        semi = CCEClassifier(random_state=0).fit(images, given)
        alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(images[known], truth[known])
        for shares, classifier in zip(right.values(), (semi, alone), strict=True):
            shares.append(classifier.score(images[rest], truth[rest]))
        print(f"{count} of each class:", ", ".join(f"{name} {shares[-1]:.3f}" for name, shares in right.items()))

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, shares), color in zip(right.items(), ("#00796b", "#8a9a9a"), strict=True):
        axes.plot(LABELS_OF_EACH_CLASS, shares, "o-", color=color, label=name)
    axes.set(
        xlabel="labels of each class", ylabel="accuracy on the other rows", xticks=LABELS_OF_EACH_CLASS, ylim=(0, 1)
    )
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.out, dpi=100)


if __name__ == "__main__":
    main()
