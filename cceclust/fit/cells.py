"""Rows sorted into cells of near rows, and which cells are near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Cells", "as_targets", "as_unit_length", "cells_around_centres", "consecutive_cells"]

# ``map``, or that of a pool of threads.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]

# Smaller cells follow the data more closely, but products of smaller matrices are slower. Where many equal rows share a
# cell, it is cut into pieces of eight times this size.
ROWS_IN_CELL = 128


@dataclass(frozen=True)
class Cells:
    """Rows sorted into cells of a few hundred rows.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Row numbers, cell by cell.
    starts : ndarray of shape (n_cells + 1,)
        Where in `order` each cell starts, and where the last ends.
    centres, targets : ndarray of shape (n_cells, n_components) or None
        The product of a cell's centre with another's target says how near they are; None if all are compared with all.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    centres: NDArray[np.float32] | None = None
    targets: NDArray[np.float32] | None = None

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.starts) - 1

    def pairs(self, n_rows: int) -> NDArray[np.intp]:
        """Return which cells to compare: each with the nearest that together hold enough rows, or all with all.

        Each pair comes once, the smaller number first. Each cell with itself comes first, then the nearest ones: once
        good neighbours are known, few rows are worth keeping.
        """
        if self.centres is None or self.targets is None:
            one, other = np.triu_indices(self.count)
            return np.column_stack([one, other])[np.argsort(other - one, kind="stable")]
        sizes = np.diff(self.starts)
        owners, partners, nearness = [], [], []
        for cell in range(self.count):
            similarities = self.centres[cell] @ self.targets.T
            # A cell that is cut up has several equal centres, and must still be compared with itself.
            similarities[cell] = np.inf
            others = np.argsort(-similarities, kind="stable")
            others = others[: np.searchsorted(np.cumsum(sizes[others]), n_rows) + 1]
            owners.append(np.minimum(cell, others))
            partners.append(np.maximum(cell, others))
            nearness.append(similarities[others])
        pairs = np.column_stack([np.concatenate(owners), np.concatenate(partners)])
        pairs = pairs[np.argsort(-np.concatenate(nearness), kind="stable")]
        first = np.unique(pairs @ [self.count, 1], return_index=True)[1]
        return np.asarray(pairs[np.sort(first)])


def consecutive_cells(n_samples: int) -> Cells:
    """Return cells of successive rows, each to be compared with all."""
    return Cells(np.arange(n_samples), np.append(np.arange(0, n_samples, ROWS_IN_CELL), n_samples))


def cells_around_centres(rows: NDArray[np.float32], seed: int, run: Map, metric: str) -> Cells:
    """Sort rows by the nearest of some centres, which a few rounds of K-means find on a sample."""
    n_samples, n_centres = len(rows), max(1, len(rows) // ROWS_IN_CELL)
    sample = rows[np.random.default_rng(seed).permutation(n_samples)[: n_samples // 8]]
    centres = sample[:n_centres]
    # More rounds, or more rows than an eighth, found no more neighbours.
    for _ in range(3):
        members = (nearest_centres(sample, as_targets(centres, metric), run), np.arange(len(sample)))
        sums = sparse.csr_array((np.ones(len(sample), np.float32), members), (n_centres, len(sample))) @ sample
        centres = as_unit_length(sums) if metric == "cosine" else as_means(sums, centres)
    centre_of_row = nearest_centres(rows, as_targets(centres, metric), run)
    order = np.argsort(centre_of_row, kind="stable")
    ends = np.cumsum(np.bincount(centre_of_row, minlength=n_centres))
    starts = np.concatenate(
        [np.arange(start, end, 8 * ROWS_IN_CELL) for start, end in zip(np.append(0, ends[:-1]), ends, strict=True)]
    )
    chosen = centres[centre_of_row[order[starts]]]
    return Cells(order, np.append(starts, n_samples), chosen, as_targets(chosen, metric))


def as_means(sums: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of cells, whose last column counts their rows; an empty cell stays where it was."""
    counts = sums[:, -1:]
    return np.where(counts > 0, sums / np.maximum(counts, 1), before).astype(np.float32)


def nearest_centres(rows: NDArray[np.float32], targets: NDArray[np.float32], run: Map) -> NDArray[np.intp]:
    """Return for each row the number of the most similar centre."""

    def nearest(start: int) -> NDArray[np.intp]:
        return np.asarray((rows[start : start + ROWS_IN_CELL] @ targets.T).argmax(axis=1))

    return np.concatenate(list(run(nearest, range(0, len(rows), ROWS_IN_CELL))))


def as_targets(rows: NDArray[np.float32], metric: str) -> NDArray[np.float32]:
    """Return what rows are multiplied with. For distances: ``y, −‖y‖²/2``, so that x, 1 gives (‖x‖² − ‖x − y‖²)/2."""
    if metric == "cosine":
        return rows
    targets = rows.copy()
    targets[:, -1] = -0.5 * (rows[:, :-1] ** 2).sum(axis=1)
    return targets


def as_unit_length(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows divided by their lengths; zeros stay zeros."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny))
