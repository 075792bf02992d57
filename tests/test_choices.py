"""Automatic choices as functions of what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust import choices

WIDE = np.ones(500)


@pytest.mark.parametrize(("n_rows", "expected"), [(1, 800), (250, 800), (2000, 100), (20_000, 10), (10**7, 4)])
def test_about_800_steps_and_at_least_four_epochs(n_rows: int, expected: int) -> None:
    assert choices.epochs_for(n_rows, 250) == expected


@pytest.mark.parametrize(("n_restarts", "expected"), [(1, 1), (2, 2), (5, 2), (10, 2), (11, 3), (40, 8)])
def test_groups_depend_on_nothing_but_the_number_of_restarts(n_restarts: int, expected: int) -> None:
    assert choices.restart_groups(n_restarts) == expected


@pytest.mark.parametrize(
    ("n_features", "n_clusters", "expected"),
    [(64, 10, 0), (1023, 10, 0), (1024, 10, 256), (2048, 256, 512), (2048, 300, 0), (100_000, 1000, 2000)],
)
def test_few_features_or_many_clusters_need_no_components(n_features: int, n_clusters: int, expected: int) -> None:
    assert choices.components_for(n_features, n_clusters) == expected


@pytest.mark.parametrize(
    ("variances", "n_directions"),
    [([1.0], 1), ([0.0], 1), ([1.0, 1.0], 2), ([98.0, 1.0, 1.0], 1), ([5.0, 4.0, 1.0], 3)],
)
def test_directions_that_hold_nearly_nothing_do_not_count(variances: list[float], n_directions: int) -> None:
    assert choices.directions_in(np.array(variances)) == n_directions


def test_clusters_are_crowded_unless_each_beyond_two_has_four_directions() -> None:
    assert [choices.is_crowded(10, k) for k in (1, 2, 4, 5, 100)] == [False, False, False, True, True]


def test_kmeans_sees_enough_rows_and_not_too_many_bytes() -> None:
    assert choices.sample_for_kmeans(10, n_clusters=100) == 5000
    assert choices.sample_for_kmeans(10, n_clusters=2) == choices.ROWS_FOR_SPECTRUM
    assert choices.sample_for_kmeans(100_000, n_clusters=1000) == 4000


def test_heads_around_narrow_clusters_are_steeper_up_to_a_limit() -> None:
    assert choices.steepness_for(0.1, 1) == pytest.approx(10)
    assert choices.steepness_for(0.4, 4) == pytest.approx(5)
    assert choices.steepness_for(1e-9, 1) == choices.steepness_for(0.0, 1) == choices.STEEPEST


def test_decay_grows_with_the_deviation() -> None:
    assert choices.decay_for(4 * WIDE, 10) == pytest.approx(2 * choices.decay_for(WIDE, 10))


def test_decay_falls_with_the_share_of_a_cluster_beyond_ten() -> None:
    few, ten, many = (choices.decay_for(WIDE, n_clusters) for n_clusters in (2, 10, 40))
    assert few == ten == pytest.approx(4 * many)


def test_crowded_clusters_have_less_decay_the_larger_their_weights() -> None:
    assert choices.decay_for(WIDE, 10, squared_weights=100.0) == pytest.approx(0.003)
    assert choices.decay_for(WIDE, 10, squared_weights=1e-6) == choices.decay_for(WIDE, 10)


@pytest.mark.parametrize(
    ("n_rows", "crowded", "expected"),
    [(99, False, 0), (100, False, 10), (999, True, 0), (1000, True, 10), (500_000, False, 10), (500_001, False, 0)],
)
def test_neighbours_need_enough_rows_and_enough_memory(n_rows: int, crowded: bool, expected: int) -> None:
    assert choices.neighbors_for(n_rows, crowded=crowded) == expected
