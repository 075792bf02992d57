"""Lists of the most similar rows: merged, sorted anew and improved as plain NumPy would do it."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.training.neighbor_lists import Lists, compare_with_links, is_first, merge_lists, product


def nearest_of(similarities: np.ndarray, allowed: list[np.ndarray], n_neighbors: int) -> Lists:
    """Return the most similar of the allowed rows."""
    found = [rows[np.argsort(-similarities[i, rows], kind="stable")][:n_neighbors] for i, rows in enumerate(allowed)]
    return Lists(np.take_along_axis(similarities, np.array(found), axis=1), np.array(found, np.int32))


def random_similarities(n_samples: int, width: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).normal(size=(n_samples, width)).astype(np.float32)
    return rows, rows @ rows.T


def others_of(n_samples: int, n_drawn: int, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [np.setdiff1d(generator.permutation(n_samples)[:n_drawn], [i]) for i in range(n_samples)]


def test_merged_lists_are_those_of_both_searches_together() -> None:
    _, similarities = random_similarities(60)
    one, other = others_of(60, 20, 1), others_of(60, 20, 2)
    lists, further = nearest_of(similarities, one, 5), nearest_of(similarities, other, 5)
    # The same pair of rows, compared elsewhere, has another last bit.
    further.best[:] = np.nextafter(further.best, np.float32(np.inf))
    merge_lists(10, 50, further.best, further.found, lists.best, lists.found)
    both = nearest_of(similarities, [np.union1d(*rows) for rows in zip(one, other, strict=True)], 5)
    np.testing.assert_array_equal(lists.found[10:50], both.found[10:50])
    np.testing.assert_allclose(lists.best[10:50], both.best[10:50], rtol=1e-6)
    np.testing.assert_array_equal(lists.found[:10], nearest_of(similarities, one, 5).found[:10])


def test_lists_that_are_not_full_add_what_they_have() -> None:
    lists = Lists(np.array([[3.0, 1.0]] * 4, np.float32), np.array([[1, 2], [2, 3], [3, 0], [0, 1]], np.int32))
    further = Lists.without_rows(4, 2, lists.best[:, -1])
    assert further.best.tolist() == [[1.0, 1.0]] * 4
    further.best[0, 0], further.found[0, 0] = 2.0, 3
    merge_lists(0, 4, further.best, further.found, lists.best, lists.found)
    assert lists.found.tolist() == [[1, 3], [2, 3], [3, 0], [0, 1]]


def test_lists_follow_rows_that_are_sorted() -> None:
    _, similarities = random_similarities(40)
    order = np.random.default_rng(1).permutation(40)
    every = [np.setdiff1d(np.arange(40), [i]) for i in range(40)]
    found = nearest_of(similarities, every, 4).in_order(order)
    expected = nearest_of(similarities[order][:, order], every, 4)
    np.testing.assert_array_equal(found.found, expected.found)
    np.testing.assert_array_equal(found.best, expected.best)


@pytest.mark.parametrize("width", [1, 2, 3, 33, 256, 257])
def test_products_are_those_of_numpy(width: int) -> None:
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, width)).astype(np.float32)
    found = product(one, other, np.empty(width, np.float32))
    assert found == pytest.approx(float(one.astype(np.float64) @ other), abs=1e-6 * width)
    assert found == product(other, one, np.empty(width, np.float32))


def test_a_table_knows_what_was_added() -> None:
    table = np.full(64, -1, np.int32)
    rows = np.random.default_rng(0).integers(0, 2_000_000_000, 30).tolist()
    assert all(is_first(row, table) for row in rows)
    assert not any(is_first(row, table) for row in rows)
    assert sorted(table[table >= 0].tolist()) == sorted(rows)


@pytest.mark.parametrize("n_links", [3, 5])
@pytest.mark.parametrize("part_new", [0.0, 0.3, 1.0])
def test_rows_are_compared_with_neighbours_of_neighbours(n_links: int, part_new: float) -> None:
    rows, similarities = random_similarities(80)
    offsets = np.linspace(-1, 1, 80, dtype=np.float32)
    known = others_of(80, 12, 1)
    shifted = similarities + offsets[:, None]
    lists, before = nearest_of(shifted, known, 5), nearest_of(shifted, known, 5)
    links = before.found[:, :n_links].copy()
    is_new = np.random.default_rng(2).random(links.shape) < part_new
    allowed = []
    for i in range(80):
        through = [links[j][is_new[j] | is_new[i, place]] for place, j in enumerate(links[i])]
        allowed.append(np.setdiff1d(np.concatenate([before.found[i], *through]), [i]))
    expected = nearest_of(shifted, allowed, 5)
    is_found_now = np.ones((80, 5), bool)
    compare_with_links(10, 80, rows, rows, offsets, links, is_new, lists.best, lists.found, is_found_now)
    np.testing.assert_array_equal(lists.found[10:], expected.found[10:])
    np.testing.assert_allclose(lists.best[10:], expected.best[10:], atol=1e-5)
    np.testing.assert_array_equal(lists.found[:10], before.found[:10])
    for i in range(10, 80):
        np.testing.assert_array_equal(is_found_now[i], ~np.isin(lists.found[i], before.found[i]))
    assert is_found_now[10:].any() == (part_new > 0)
