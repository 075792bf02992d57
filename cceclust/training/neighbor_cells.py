"""Rows sorted into cells of near rows, and which cells are near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cceclust import choices

__all__ = [
    "Cells",
    "as_targets",
    "as_unit_length",
    "cells_around_centres",
    "cells_in_groups",
    "consecutive_cells",
    "put_in_order",
]

# ``map``, or that of a pool of threads.
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
Seed = int | tuple[int, ...]


@dataclass(frozen=True)
class Cells:
    """Rows sorted into cells of a few hundred rows.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Row numbers, cell by cell.
    starts : ndarray of shape (n_cells + 1,)
        Where in `order` each cell starts, and where the last ends.
    centres : ndarray of shape (n_cells, n_components) or None
        Used to find the nearest cells; None if each cell is compared with all.
    targets : ndarray of shape (n_cells, n_components) or None
        Vectors that a centre is multiplied with to compare it with the others.
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

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Each pair once, the smaller number first. Each cell with itself comes first, then the nearest ones: once
            good neighbours are known, few rows are worth keeping.
        """
        if self.centres is None or self.targets is None:
            one, other = np.triu_indices(self.count)
            return np.column_stack([one, other])[np.argsort(other - one, kind="stable")]
        sizes = np.diff(self.starts)
        owners, partners, nearness = [], [], []
        for cell, similarities in enumerate(self.similarities()):
            # A cell that is cut up has several equal centres, and must still be compared with itself.
            similarities[cell] = np.inf
            others = nearest_with_rows(similarities, sizes, n_rows)
            owners.append(np.minimum(cell, others))
            partners.append(np.maximum(cell, others))
            nearness.append(similarities[others])
        pairs = np.column_stack([np.concatenate(owners), np.concatenate(partners)])
        pairs = pairs[np.argsort(-np.concatenate(nearness), kind="stable")]
        first = np.unique(pairs @ [self.count, 1], return_index=True)[1]
        return np.asarray(pairs[np.sort(first)])

    def similarities(self) -> Iterator[NDArray[np.float32]]:
        """Yield how similar each cell is to all."""
        if self.centres is None or self.targets is None:
            return
        for start in range(0, self.count, choices.ROWS_IN_CELL):
            yield from self.centres[start : start + choices.ROWS_IN_CELL] @ self.targets.T


def nearest_with_rows(similarities: NDArray[np.float32], sizes: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
    """Return the most similar cells that together hold enough rows, the most similar first."""
    others = np.arange(len(sizes))
    # So many are nearly always enough, and sorting all would take longer than comparing their rows.
    n_likely = 16 + 4 * n_rows // choices.ROWS_IN_CELL
    if n_likely < len(sizes):
        likely = np.flatnonzero(similarities >= np.partition(similarities, -n_likely)[-n_likely])
        others = likely if sizes[likely].sum() >= n_rows else others
    others = others[np.argsort(-similarities[others], kind="stable")]
    return others[: np.searchsorted(np.cumsum(sizes[others]), n_rows) + 1]


def put_in_order(rows: NDArray[Any], order: NDArray[np.integer[Any]]) -> None:
    """Sort rows in place, a few columns at a time, as a copy of all could be too large."""
    for start in range(0, rows.shape[1], choices.COLUMNS_SORTED_AT_ONCE):
        columns = slice(start, start + choices.COLUMNS_SORTED_AT_ONCE)
        rows[:, columns] = rows[order, columns]


def consecutive_cells(n_samples: int) -> Cells:
    """Return cells of successive rows, each to be compared with all."""
    return Cells(np.arange(n_samples), np.append(np.arange(0, n_samples, choices.ROWS_IN_CELL), n_samples))


def cells_in_groups(directions: NDArray[np.float32], seed: Seed, pool: ThreadPoolExecutor, metric: str) -> Cells:
    """Sort rows into groups, and then the rows of each group into cells.

    Comparing each row with the centres of all cells would take a time that grows with the square of the number of rows.
    Cells at the borders of groups are worse; but with other seeds, the borders are elsewhere.
    """
    n_groups = max(1, round(np.sqrt(len(directions) / choices.ROWS_IN_CELL)))
    centres = centres_on_sample(directions, n_groups, choices.SAMPLE_IN_GROUP, seed, pool.map, metric)
    order, ends = sorted_by_centre(nearest_centres(directions, as_targets(centres, metric), pool.map), n_groups)
    groups = [order[start:end] for start, end in zip(np.append(0, ends[:-1]), ends, strict=True) if start < end]
    # Threads take one group each; a group that waited for threads of the same pool might wait for ever.
    parts = list(pool.map(lambda rows: cells_around_centres(directions[rows], seed, map, metric), groups))
    chosen = np.concatenate([part.centres for part in parts if part.centres is not None])
    return Cells(
        np.concatenate([rows[part.order] for rows, part in zip(groups, parts, strict=True)]),
        np.append(0, np.cumsum(np.concatenate([np.diff(part.starts) for part in parts]))),
        chosen,
        as_targets(chosen, metric),
    )


def cells_around_centres(directions: NDArray[np.float32], seed: Seed, run: Map, metric: str) -> Cells:
    """Sort rows by the nearest of some centres, which a few rounds of K-means find on a sample."""
    n_samples, n_centres = len(directions), max(1, len(directions) // choices.ROWS_IN_CELL)
    centres = centres_on_sample(directions, n_centres, choices.SAMPLE_IN_CELL, seed, run, metric)
    centre_of_row = nearest_centres(directions, as_targets(centres, metric), run)
    order, ends = sorted_by_centre(centre_of_row, n_centres)
    # Many equal rows share a centre; such a cell is cut up, so that it needs no more memory than others.
    starts = np.concatenate(
        [np.arange(start, end, choices.LARGEST_CELL) for start, end in zip(np.append(0, ends[:-1]), ends, strict=True)]
    )
    chosen = centres[centre_of_row[order[starts]]]
    return Cells(order, np.append(starts, n_samples), chosen, as_targets(chosen, metric))


def centres_on_sample(
    directions: NDArray[np.float32], n_centres: int, rows_for_each: int, seed: Seed, run: Map, metric: str
) -> NDArray[np.float32]:
    """Find centres by a few rounds of K-means on so many rows for each."""
    drawn = np.random.default_rng(seed).permutation(len(directions))[: rows_for_each * n_centres]
    sample = directions[drawn]
    centres = sample[:n_centres]
    for _ in range(choices.ROUNDS_FOR_CELLS):
        members = (nearest_centres(sample, as_targets(centres, metric), run), np.arange(len(sample)))
        sums = sparse.csr_array((np.ones(len(sample), np.float32), members), (n_centres, len(sample))) @ sample
        centres = as_unit_length(sums) if metric == "cosine" else as_means(sums, centres)
    return np.asarray(centres)


def sorted_by_centre(centre_of_row: NDArray[np.intp], n_centres: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the order of rows by their centres, and where in it those of each centre end."""
    return np.argsort(centre_of_row, kind="stable"), np.cumsum(np.bincount(centre_of_row, minlength=n_centres))


def as_means(sums: NDArray[np.float32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the means of cells, whose last column counts their rows; an empty cell stays where it was."""
    counts = sums[:, -1:]
    return np.where(counts > 0, sums / np.maximum(counts, 1), before).astype(np.float32)


def nearest_centres(rows: NDArray[np.float32], centres: NDArray[np.float32], run: Map) -> NDArray[np.intp]:
    """Return for each row the index of the centre in the most similar direction."""

    def nearest(start: int) -> NDArray[np.intp]:
        return np.asarray((rows[start : start + choices.ROWS_IN_CELL] @ centres.T).argmax(axis=1))

    return np.concatenate(list(run(nearest, range(0, len(rows), choices.ROWS_IN_CELL))))


def as_targets(rows: NDArray[np.float32], metric: str) -> NDArray[np.float32]:
    """Return the factors of the rows: for distances ``y, −‖y‖²/2``, so that x, 1 gives −‖x − y‖²/2 + ‖x‖²/2."""
    if metric == "cosine":
        return rows
    targets = rows.copy()
    targets[:, -1] = -0.5 * (rows[:, :-1] ** 2).sum(axis=1)
    return targets


def as_unit_length(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows divided by their lengths; zeros stay zeros."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny))
