from __future__ import annotations

from typing import Any

import numpy as np

from cceclust.fit.choice import NEAREST, choose
from cceclust.fit.modularity import neighbor_modularity
from cceclust.fit.starts import COMPONENTS

N_POINTS = 120
TRUTH = np.repeat(np.arange(3), 40)
# Each point's neighbours are in its own group, but for one in ten.
NEIGHBORS = np.stack(
    [(np.arange(N_POINTS) // 40) * 40 + (np.arange(N_POINTS) + step) % 40 for step in range(1, 8)], axis=1
).astype(np.int32)
NEIGHBORS[::10] = (NEIGHBORS[::10] + 40) % N_POINTS


def with_errors(share: float, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return np.where(generator.random(N_POINTS) < share, generator.integers(3, size=N_POINTS), TRUTH)


def choice_among(candidates: list[Any], *, keeps_kmeans: bool = False, names: Any = None, n_clusters: int = 3) -> Any:
    names = names or [f"candidate {i}" for i in range(len(candidates))]
    stacked = np.stack(candidates).astype(np.int32)
    weights = np.ones(N_POINTS)
    return choose(names, stacked, list(stacked), NEIGHBORS, weights, n_clusters, keeps_kmeans=keeps_kmeans)


def test_the_highest_modularity_on_the_nearest_neighbours_is_chosen() -> None:
    candidates = [with_errors(0.3), TRUTH, with_errors(0.1)]
    choice = choice_among(candidates)
    expected = neighbor_modularity(np.stack(candidates), NEIGHBORS[:, :NEAREST])
    np.testing.assert_allclose(list(choice.scores.values()), expected, atol=1e-6)
    assert choice.best == 1
    assert f"modularity {expected[1]:.3f}" in choice.reason


def test_a_head_with_empty_clusters_is_not_chosen_if_another_is_whole() -> None:
    # Of two groups, modularity is less than of three: so it is the better one that leaves a cluster empty.
    whole = with_errors(0.5)
    assert choice_among([np.minimum(TRUTH, 1), whole]).best == 1
    assert choice_among([np.minimum(TRUTH, 1), np.zeros(N_POINTS, int)]).best == 0


def test_of_many_clusters_a_few_may_be_missing() -> None:
    many = np.arange(N_POINTS) // 3
    one_missing = np.where(many == 39, 38, many)
    assert choice_among([np.random.default_rng(0).permutation(many), one_missing], n_clusters=40).best == 1


def test_separate_parts_win_if_the_head_draws_them() -> None:
    names = ["candidate", COMPONENTS]
    assert choice_among([TRUTH, with_errors(0.1)], names=names).best == 1


def test_kmeans_is_kept_if_no_head_is_clearly_better() -> None:
    nearly = TRUTH.copy()
    nearly[0] = 1
    kept = choice_among([TRUTH, nearly], keeps_kmeans=True)
    assert kept.best == 1
    assert "no other clustering is clearly better" in kept.reason
    assert choice_among([TRUTH, with_errors(0.3)], keeps_kmeans=True).best == 0


def test_kmeans_is_kept_if_it_cuts_fewer_neighbours_apart_for_its_uneven_sizes() -> None:
    # One cluster of 110 points and two small ones; the head halves the large one.
    sizes = np.array([100, 10, 10])
    truth = np.repeat(np.arange(3), sizes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    count = np.repeat(sizes, sizes)
    place = np.arange(N_POINTS) - starts
    neighbors = np.stack([starts + (place + step) % count for step in (1, 2, 3)], axis=1).astype(np.int32)
    halved = np.where(place < 50, 0, 1) * (truth == 0) + 2 * (truth != 0)
    candidates = np.stack([halved, truth]).astype(np.int32)
    choice = choose(["head", "kmeans"], candidates, [], neighbors, np.ones(N_POINTS), 3, keeps_kmeans=True)
    assert choice.scores["head"] > choice.scores["kmeans"]
    assert choice.best == 1
    assert "for clusters of its sizes" in choice.reason
