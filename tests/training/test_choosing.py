"""The choice among clusterings: the plain one where nothing is clearly better, else by what sizes and borders say."""

import numpy as np
import pytest

from cceclust.training.choosing import are_whole, choose, even_rival, standard_error
from cceclust.training.modularity import links_of

LABELS = np.array([[0, 0, 1, 1] * 25, [0, 1, 1, 1] * 25, [0, 0, 1, 1] * 25, [0, 1, 0, 1] * 25])
CUTS = np.full(4, 0.1)


def test_a_clear_best_is_chosen_however_uneven():
    assert choose(LABELS, np.array([0.4, 0.8, 0.4, 0.4]), CUTS, 2) == 1


@pytest.mark.parametrize(("below", "taken"), [(0.7, True), (0.8, False)])
def test_the_most_even_is_taken_if_it_is_among_equals(below: float, taken: bool):
    uneven = np.repeat([0, 1], [20, 80])
    labels = np.stack([LABELS[0], uneven, uneven, uneven])
    modularities = np.array([0.5 - below * standard_error(0.5, 100), 0.5, 0.5, 0.5])
    cuts = np.array([0.2, 0.1, 0.1, 0.1])
    assert (choose(labels, modularities, cuts, 2) == 0) is taken


def test_of_two_nearly_even_ones_evenness_and_modularity_decide_together():
    a_little_uneven = np.repeat([0, 1], [45, 55])
    labels = np.stack([LABELS[0], a_little_uneven])
    # These sizes lack 0.0072 of the entropy of equal ones, which counts as 0.58 standard errors.
    for below, taken in ((0.5, 0), (0.65, 1)):
        modularities = np.array([0.5 - below * standard_error(0.5, 100), 0.5])
        assert choose(labels, modularities, CUTS[:2], 2) == taken


def test_the_nearest_neighbours_decide_between_equals_only():
    modularities = np.array([0.5, 0.5 - 0.5 * standard_error(0.5, 100), 0.3])
    labels = np.stack([LABELS[0], LABELS[3], LABELS[2]])
    assert choose(labels, modularities, CUTS[:3], 2) == 0
    assert choose(labels, modularities, CUTS[:3], 2, on_nearest=np.array([0.5, 0.6, 0.9])) == 1


def test_a_best_one_that_is_nearly_even_is_not_left_for_fewer_separated_neighbours():
    nearly, uneven = np.repeat([0, 1], [42, 58]), np.repeat([0, 1], [20, 80])
    modularities = np.array([0.5, 0.5 - 0.7 * standard_error(0.5, 100)])
    assert choose(np.stack([nearly, uneven]), modularities, np.array([0.2, 0.1]), 2) == 0


@pytest.mark.parametrize(("below", "taken"), [(1.2, True), (1.3, False)])
def test_where_sizes_differ_the_fewest_neighbours_are_separated(below: float, taken: bool):
    uneven = np.tile(np.repeat([0, 1], [20, 80]), (3, 1))
    modularities = np.array([0.5, 0.5 - below * standard_error(0.5, 100), 0.4])
    assert (choose(uneven, modularities, np.array([0.2, 0.1, 0.05]), 2) == 1) is taken


@pytest.mark.parametrize(("below", "kept"), [(1.5, True), (2.5, False)])
def test_the_floor_is_kept_within_its_tolerance(below: float, kept: bool):
    modularities = np.array([0.5, 0.1, 0.1, 0.5 - below * standard_error(0.5, 100)])
    assert (choose(LABELS, modularities, CUTS, 3, floor=3) == 3) is kept


def test_the_floor_is_kept_if_it_surely_separates_fewer_neighbours():
    modularities = np.array([0.5, 0.1, 0.1, 0.3])
    for errors, taken in ((2.9, 0), (3.1, 3)):
        cuts = np.array([0.2, 0.1, 0.1, 0.2 - errors * standard_error(0.2, 100)])
        assert choose(LABELS, modularities, cuts, 3, floor=3) == taken


def test_a_floor_with_an_empty_cluster_gives_way_to_a_rival_without():
    labels = np.stack([np.arange(100) % 3, np.arange(100) % 2])
    modularities, cuts = np.array([0.5, 0.499]), np.array([0.1, 0.0])
    assert choose(labels, modularities, cuts, 3, floor=1) == 0
    assert choose(labels % 2, modularities, cuts, 3, floor=1) == 1


def test_the_floor_of_two_clusters_is_kept_unless_a_rival_separates_far_fewer_neighbours():
    labels, modularities = np.tile(LABELS, 20), np.array([0.5, 0.1, 0.1, 0.2])
    for cut, taken in ((0.05, 0), (0.07, 3)):
        assert choose(labels, modularities, np.array([cut, 0.1, 0.1, 0.1]), 2, floor=3) == taken


def test_more_rows_make_the_judge_surer():
    assert standard_error(0.5, 100) == pytest.approx(0.05)
    assert standard_error(0.5, 10_000) == pytest.approx(0.005)
    assert standard_error(-0.1, 10) == standard_error(1.0 + 1e-9, 10) == 0


def test_clusters_that_are_clear_on_the_graph_win_over_labels_that_are_a_little_clearer():
    labels = np.repeat(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]), 50_000, axis=1)
    modularities = np.array([0.80, 0.81, 0.5])
    assert choose(labels, modularities, CUTS[:3], 2) == 1
    assert choose(labels, modularities, CUTS[:3], 2, on_graph=np.array([0.90, 0.82, 0.5])) == 0


def test_the_floor_is_only_a_floor():
    labels = np.repeat(np.array([[0, 1, 2], [0, 1, 2], [2, 1, 0]]), 50_000, axis=1)
    modularities, on_graph = np.array([0.30, 0.25, 0.20]), np.array([0.30, 0.25, 0.90])
    assert choose(labels, modularities, CUTS[:3], 3, floor=2, on_graph=on_graph) == 0


def test_what_leaves_clusters_out_gives_way_to_what_is_whole():
    is_whole = np.array([False, True, False, False])
    assert choose(LABELS, np.array([0.5, 0.4, 0.3, 0.3]), CUTS, 2, is_whole=is_whole) == 1
    # Where none is whole, all count. If the plain one is as clear as the best, it is kept as ever.
    assert choose(LABELS, np.array([0.5, 0.48, 0.3, 0.3]), CUTS, 2, is_whole=np.zeros(4, bool)) == 0
    for modularity, taken in ((0.49, 3), (0.3, 1)):
        assert choose(LABELS, np.array([0.5, 0.48, 0.3, modularity]), CUTS, 3, is_whole=is_whole, floor=3) == taken


def test_a_rival_of_equal_size_is_named_only_if_it_is_hardly_worse():
    uneven = np.repeat([0, 1], [20, 80])
    labels = np.stack([LABELS[0], uneven, LABELS[3]])
    # The part decides among few rows, and the error among many.
    for repeats, below in ((1, 0.03 * 0.5), (100, 2 * standard_error(0.5, 10_000))):
        many = np.tile(labels, repeats)
        assert even_rival(many, np.array([0.5 - 0.95 * below, 0.5, 0.1]), 2, chosen=1) == 0
        assert even_rival(many, np.array([0.5 - 1.05 * below, 0.5, 0.1]), 2, chosen=1) is None
    assert even_rival(labels, np.array([0.5, 0.5, 0.5]), 2, chosen=0) is None


def test_the_plain_one_is_not_kept_if_the_best_separates_far_fewer_neighbours():
    labels = np.tile(LABELS[:3], 20)
    modularities = np.array([0.66, 0.60, 0.655])
    assert choose(labels, modularities, np.array([0.011, 0.03, 0.02]), 2, floor=2) == 0
    assert choose(labels, modularities, np.array([0.013, 0.03, 0.02]), 2, floor=2) == 2
    # Of few rows, so many fewer may be chance.
    assert choose(LABELS[:3], modularities, np.array([0.010, 0.03, 0.02]), 2, floor=2) == 2
    assert choose(labels, modularities, np.zeros(3), 2, floor=2) == 2


def test_a_small_cluster_is_whole_if_it_keeps_to_itself() -> None:
    neighbors = np.repeat(np.arange(0, 400, 4), 4)[:, None] + np.array([0, 1, 2, 3])
    labels = np.zeros((3, 400), int)
    apart, torn, _ = labels
    apart[:4] = 1
    torn[[0, 4, 8, 12]] = 1
    links = links_of(labels, neighbors, n_clusters=2)
    assert are_whole(labels, links).tolist() == [True, False, False]
    np.testing.assert_allclose(links.cuts, [0, (4 * 3 + 12) / 1600, 0])


def test_of_many_clusters_a_few_may_be_missing() -> None:
    neighbors = np.roll(np.arange(400), 1)[:, None]
    labels = np.tile(np.arange(40), 10)
    few, more = (np.where(labels < n_missing, 39, labels) for n_missing in (2, 3))
    stack = np.stack([labels, few, more])
    assert are_whole(stack, links_of(stack, neighbors, n_clusters=40)).tolist() == [True, True, False]


def test_a_plain_one_that_hardly_divides_the_rows_is_not_kept():
    labels = np.tile(LABELS[:3], 20)
    modularities, cuts = np.array([0.6, 0.5, 0.1]), np.array([0.1, 0.1, 0.01])
    for n_apart, taken in ((50, 0), (200, 2)):
        labels[2] = np.arange(labels.shape[1]) < n_apart
        assert choose(labels, modularities, cuts, 2, floor=2) == taken
