"""How well the report's map keeps neighbours and classes together, beside two principal components and umap-learn."""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import nearest_neighbors
from cceclust.bench.files import read_labelled
from cceclust.cli.bench.tables import plain_table
from cceclust.cli.console import results
from cceclust.report.layout import lay_out
from cceclust.report.placement import principal_plane

NEIGHBORS, VOTERS = 15, 10


@dataclass(frozen=True)
class Layout:
    """One way to place points, and how well it does."""

    name: str
    # Part of the nearest neighbours in the features that are as near on the map.
    kept: float
    # Part of the points whose class is that of most of the nearest points on the map.
    voted: float
    # Time, neighbours included, the first call of compiled code as well.
    seconds: float


def with_umap(features: NDArray[Any]) -> NDArray[Any]:
    """Place points by umap-learn, which must be installed."""
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centred = features - features.mean(axis=0)
        return np.asarray(umap.UMAP(n_neighbors=NEIGHBORS, metric="cosine", random_state=0).fit_transform(centred))


def compare_layouts(features: NDArray[Any], labels: NDArray[Any]) -> list[Layout]:
    """Place points in each way that is installed, and measure it."""
    ways: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
        "two principal components": principal_plane,
        "cceclust": lambda rows: lay_out(nearest_neighbors(rows, NEIGHBORS), principal_plane(rows)),
    }
    if importlib.util.find_spec("umap") is not None:
        ways["umap-learn"] = with_umap
    neighbors, codes = nearest_neighbors(features, NEIGHBORS), np.unique(labels, return_inverse=True)[1]
    outcomes = []
    for name, place in ways.items():
        started = time.perf_counter()
        places = place(features)
        seconds = time.perf_counter() - started
        near = nearest_neighbors(places, NEIGHBORS, metric="euclidean")
        kept = np.mean([np.isin(found, wanted).mean() for found, wanted in zip(near, neighbors, strict=True)])
        votes = np.eye(codes.max() + 1)[codes[near[:, :VOTERS]]].sum(axis=1)
        outcomes.append(Layout(name, float(kept), float((votes.argmax(axis=1) == codes).mean()), seconds))
    return outcomes


def print_layouts(outcomes: list[Layout], title: str) -> None:
    """Print the table."""
    table = plain_table(title, "map", "kept neighbours", "class by the map", "seconds")
    for outcome in outcomes:
        table.add_row(outcome.name, f"{outcome.kept:.2f}", f"{outcome.voted:.2f}", f"{outcome.seconds:.1f}")
    results().print(table)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="labelled features")
    options = parser.parse_args()
    print_layouts(compare_layouts(*read_labelled(options.file)), options.file.name)


if __name__ == "__main__":
    main()
