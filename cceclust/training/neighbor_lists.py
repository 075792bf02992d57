"""The most similar rows of every row so far, and the compiled code that improves these lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cceclust.compiled import compiled
from cceclust.pseudo_labels.summation import sum_in_pairs

__all__ = ["Lists", "compare_with_links", "keep_most_similar", "merge_lists"]

# Similarities that are compared at once with the lowest that counts: as many as the widest registers hold.
LOOKED_AT_ONCE = 16


@dataclass(frozen=True)
class Lists:
    """The most similar rows of every row so far.

    Attributes
    ----------
    best : ndarray of shape (n_samples, n_neighbors)
        Similarities, the highest first.
    found : ndarray of shape (n_samples, n_neighbors)
        The rows that have them; `n_samples` stands for none.
    """

    best: NDArray[np.float32]
    found: NDArray[np.int32]

    @classmethod
    def without_rows(cls, n_samples: int, n_neighbors: int, least: NDArray[np.float32] | float = -np.inf) -> Lists:
        """Return empty lists, which take only rows that are at least so similar: one number, or one for each."""
        best = np.empty((n_samples, n_neighbors), np.float32)
        best[:] = np.reshape(np.asarray(least, np.float32), (-1, 1))
        return cls(best, np.full((n_samples, n_neighbors), n_samples, np.int32))

    def in_order(self, order: NDArray[np.intp]) -> Lists:
        """Return the lists of rows that are sorted anew, with the new places of all rows."""
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Lists(self.best[order], place[self.found[order]])


@compiled(inline="always")
def insert(similarity: float, row: int, highest: NDArray[np.float32], found: NDArray[np.int32]) -> None:
    """Insert a row among the most similar ones if it is one of them; of equals, the first row counts as more similar.

    So the order in which rows come does not matter.
    """
    place = highest.shape[0]
    while place > 0 and (
        similarity > highest[place - 1] or (similarity == highest[place - 1] and row < found[place - 1])
    ):
        place -= 1
    for later in range(highest.shape[0] - 1, place, -1):
        highest[later] = highest[later - 1]
        found[later] = found[later - 1]
    if place < highest.shape[0]:
        highest[place] = similarity
        found[place] = row


@compiled(error_model="numpy")
def keep_most_similar(
    similarities: NDArray[np.float32],
    offsets: NDArray[np.float32],
    first_row: int,
    first_other: int,
    best: NDArray[np.float32],
    neighbors: NDArray[np.int32],
) -> None:
    """Merge the similarities of two cells into the best so far of both (IN and OUT), skipping each row itself.

    `offsets` are added to the rows of `similarities`, one to each. Their columns are the rows from `first_other` on.
    """
    n_rows, n_others = similarities.shape
    last = best.shape[1] - 1
    is_same = first_row == first_other
    lowest = np.empty(n_others, np.float32)
    for j in range(n_others):
        # In a cell of its own, each pair comes twice, and one side is enough.
        lowest[j] = np.inf if is_same else best[first_other + j, last]
    for i in range(n_rows):
        row, offset = similarities[i], offsets[i]
        own = best[first_row + i, last]
        for start in range(0, n_others, LOOKED_AT_ONCE):
            stop = min(start + LOOKED_AT_ONCE, n_others)
            # Most similarities are too low for both; a loop without branches finds out for many at once.
            n_high = 0
            for j in range(start, stop):
                n_high += (row[j] + offset >= own) | (row[j] + offset >= lowest[j])
            if n_high == 0:
                continue
            for j in range(start, stop):
                similarity = row[j] + offset
                if similarity >= own and not (is_same and i == j):
                    insert(similarity, first_other + j, best[first_row + i], neighbors[first_row + i])
                    own = best[first_row + i, last]
                if similarity >= lowest[j]:
                    insert(similarity, first_row + i, best[first_other + j], neighbors[first_other + j])
                    lowest[j] = best[first_other + j, last]


@compiled(inline="always")
def is_among(row: int, rows: NDArray[np.int32]) -> bool:
    """Tell whether a list holds a row."""
    is_there = False
    for other in rows:
        is_there |= other == row
    return is_there


@compiled()
def merge_lists(
    start: int,
    stop: int,
    further_best: NDArray[np.float32],
    further: NDArray[np.int32],
    best: NDArray[np.float32],
    found: NDArray[np.int32],
) -> None:
    """Insert what was found elsewhere (IN) into the lists of some rows (IN and OUT), each row once."""
    n_samples = len(found)
    for i in range(start, stop):
        for place in range(further.shape[1]):
            row = further[i, place]
            if row == n_samples:
                break
            # What two searches find is the same but for the last bit of its similarity.
            if not is_among(row, found[i]):
                insert(further_best[i, place], row, best[i], found[i])


@compiled(inline="always")
def is_first(row: int, table: NDArray[np.int32]) -> bool:
    """Add a row to a hash table (IN and OUT, -1 where empty, its size a power of two); tell if it was not there yet."""
    slot = (row * 2654435761 >> 8) & (table.shape[0] - 1)
    while table[slot] != -1:
        if table[slot] == row:
            return False
        slot = (slot + 1) & (table.shape[0] - 1)
    table[slot] = row
    return True


@compiled(inline="always")
def product(one: NDArray[np.float32], other: NDArray[np.float32], terms: NDArray[np.float32]) -> float:
    """Return the scalar product of two rows by sums in a fixed order; `terms` are overwritten."""
    half = (one.shape[0] + 1) // 2
    for i in range(half):
        terms[i] = one[i] * other[i]
    for i in range(one.shape[0] - half):
        terms[i] += one[half + i] * other[half + i]
    total: float = sum_in_pairs(terms[:half])
    return total


@compiled()
def compare_with_links(
    start: int,
    stop: int,
    directions: NDArray[np.float32],
    targets: NDArray[np.float32],
    offsets: NDArray[np.float32],
    links: NDArray[np.int32],
    is_new: NDArray[np.bool_],
    best: NDArray[np.float32],
    found: NDArray[np.int32],
    is_found_now: NDArray[np.bool_],
) -> None:
    """Compare some rows with the neighbours of their neighbours.

    Parameters
    ----------
    start, stop : int
        The rows whose lists are improved.
    directions, targets, offsets : ndarrays
        The product of a row's direction with another's target, plus its own offset, is the similarity of the two.
    links, is_new : ndarrays of shape (n_samples, n_links)
        The neighbours of all rows, which do not change here, and which of them were not there one round before. Where
        none on the way from a row to another is new, both were compared in that round.
    best, found : ndarrays of shape (n_samples, n_neighbors), IN and OUT
        Lists of most similar rows.
    is_found_now : ndarray of shape (n_samples, n_neighbors), OUT
        Which of them were not there before.
    """
    n_links, last = links.shape[1], best.shape[1] - 1
    size = 1
    while size < 2 * (n_links * n_links + last + 2):
        size *= 2
    table = np.empty(size, np.int32)
    terms = np.empty(directions.shape[1], np.float32)
    before = np.empty(last + 1, np.int32)
    for i in range(start, stop):
        table[:] = -1
        is_first(i, table)
        for place in range(last + 1):
            before[place] = found[i, place]
            is_first(before[place], table)
        for one in range(n_links):
            for other in range(n_links):
                row = links[links[i, one], other]
                if (is_new[i, one] or is_new[links[i, one], other]) and is_first(row, table):
                    similarity = product(directions[i], targets[row], terms) + offsets[i]
                    if similarity >= best[i, last]:
                        insert(similarity, row, best[i], found[i])
        for place in range(last + 1):
            is_found_now[i, place] = not is_among(found[i, place], before)
