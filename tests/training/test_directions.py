"""Long directions that hide clusters are shortened; noise is not made longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from cceclust import CCEClusterer, choices, nearest_neighbors
from cceclust.errors import InputError
from cceclust.training.candidates import arena_of, kmeans_head_before_evening
from cceclust.training.directions import are_as_clear, even_out, evening_map
from cceclust.training.rows import ArrayRows
from cceclust.training.space import TrainingSpace, project
from cceclust.training.spectrum import measure_spectrum
from cceclust.training.standardization import measure

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

CLASSES = np.repeat(np.arange(4), 300)


def hidden() -> Any:
    """Return four clusters in three of eight turned directions; four of the others are longer and say nothing."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1200, 8)) * [10, 10, 10, 10, 1, 1, 1, 1]
    X[:, 4:7] += 8 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[CLASSES]
    return X @ np.linalg.qr(generator.normal(size=(8, 8)))[0] + 3


def shown() -> Any:
    """Return four clusters along the long directions; the short ones are noise."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1200, 20)) * ([3] * 2 + [1] * 18)
    X[:, :2] += 10 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[CLASSES]
    return X


def space_of(X: Any, n_components: int = 0) -> TrainingSpace:
    rows, weights = ArrayRows(X), np.ones(len(X))
    standardization = measure(rows, weights, standardize=True)
    if n_components == 0:
        return TrainingSpace.of_rows(rows, standardization)
    return project(rows, standardization, weights, n_components, seed=0, n_threads=1)


def evened(space: TrainingSpace, **options: Any) -> TrainingSpace:
    return even_out(space, np.ones(space.rows.shape[0]), seed=0, n_jobs=1, **options)


@given(st.integers(2, 8), st.integers(0, 1000))
def test_deviations_become_their_roots_with_a_mean_variance_of_one(n_columns: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    deviations = generator.uniform(0.1, 10, n_columns)
    axes = np.linalg.qr(generator.normal(size=(n_columns, n_columns)))[0]
    matrix = evening_map((axes * deviations**2) @ axes.T)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9)
    expected = deviations / deviations.mean()
    np.testing.assert_allclose(
        axes.T @ matrix @ ((axes * deviations**2) @ axes.T) @ matrix @ axes, np.diag(expected), atol=1e-6
    )


def test_directions_without_length_stay_finite() -> None:
    assert np.isfinite(evening_map(np.diag([4.0, 0.0]))).all()
    assert np.isfinite(evening_map(np.zeros((2, 2)))).all()


def test_clusters_in_short_directions_are_found() -> None:
    X = hidden()
    model = CCEClusterer(4, random_state=0).fit(X)
    assert model.directions_evened_
    assert adjusted_rand_score(CLASSES, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    plain = CCEClusterer(4, random_state=0, scale="overall").fit(X)
    assert not plain.directions_evened_
    assert adjusted_rand_score(CLASSES, plain.labels_) < 0.5


def test_noise_in_short_directions_is_left_short() -> None:
    assert evened(space_of(shown())).axes is None
    assert evened(space_of(shown()), is_certain=True).axes is not None


def test_few_rows_say_too_little() -> None:
    few = np.random.default_rng(1).choice(1200, choices.LEAST_ROWS_TO_EVEN_OUT - 1, replace=False)
    assert evened(space_of(hidden()[few])).axes is None
    assert evened(space_of(hidden())).axes is not None
    assert not are_as_clear(hidden()[few], hidden()[few], seed=0, n_jobs=1)
    assert are_as_clear(hidden(), hidden(), seed=0, n_jobs=1)


@pytest.mark.parametrize("n_components", [0, 4])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_head_says_the_same_of_evened_rows_and_of_features(n_components: int, in_place: bool) -> None:
    X = hidden()
    space = evened(space_of(X.copy(), n_components), is_certain=True, in_place=in_place)
    weights = np.random.default_rng(1).normal(size=(3, space.rows.shape[1]))
    coef, intercept = space.raw_heads(weights, np.ones(3))
    np.testing.assert_allclose(X @ coef.T + intercept, space.rows.matrix @ weights.T + 1, atol=1e-4)
    assert space.rows.matrix.var(axis=0).mean() == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("n_components", [0, 4])
def test_rows_and_heads_from_before_evening_are_found_again(n_components: int) -> None:
    plain = space_of(hidden(), n_components)
    space = evened(plain, is_certain=True)
    before, back = space.before_evening()
    standardised = (plain.rows.matrix - plain.standardization.mean) / plain.standardization.scale
    np.testing.assert_allclose(before.rows.matrix, standardised, atol=1e-9)
    weights = np.random.default_rng(1).normal(size=(3, before.rows.shape[1]))
    expected = before.rows.matrix @ weights.T
    np.testing.assert_allclose(space.rows.matrix @ (weights @ back).T, expected, atol=1e-9)
    np.testing.assert_allclose(before.raw_heads(weights, np.zeros(3))[0], plain.raw_heads(weights, np.zeros(3))[0])


def test_kmeans_has_the_rows_as_they_were_before_evening() -> None:
    plain = space_of(shown()[:, :6])
    heads = []
    for space in (plain, evened(plain, is_certain=True)):
        arena = arena_of(space, np.ones(1200), nearest_neighbors(space.rows.matrix, 15))
        spectrum = measure_spectrum(space.rows, space.standardization, arena.sample_weight, seed=0)
        found = kmeans_head_before_evening(arena, 4, spectrum, np.zeros((1, 1200), np.int32), seed=0)
        heads.append(space.raw_heads(*found.unstacked()))
    for one, other in zip(*heads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_number_of_threads_changes_nothing() -> None:
    weights = np.ones(1200)
    one, two = (even_out(space_of(hidden()), weights, seed=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.rows.matrix, two.rows.matrix)


def test_neighbours_that_are_given_are_those_of_the_rows_as_they_are() -> None:
    neighbors = np.random.default_rng(0).integers(0, 1200, (1200, 6))
    assert not CCEClusterer(4, random_state=0).fit(hidden(), neighbors=neighbors).directions_evened_


def test_the_score_knows_that_clusters_are_in_short_directions() -> None:
    good, bad = (CCEClusterer(4, random_state=0, scale=scale).fit(hidden()) for scale in ("auto", "overall"))
    assert good.score(hidden()) > bad.score(hidden()) + 0.1
    assert good.score(hidden()) == pytest.approx(good.modularity_, abs=0.02)


def test_the_number_of_clusters_is_searched_with_directions_evened_out() -> None:
    model = CCEClusterer("auto", random_state=0).fit(hidden())
    assert model.n_clusters_ == 4
    assert model.directions_evened_


def test_many_directions_are_left_alone_also_if_few_are_long() -> None:
    # Evened out, they would be compared by angle.
    assert not choices.may_even_out(np.repeat([100.0, 1.0], [25, 60]))
    assert choices.may_even_out(np.repeat([100.0, 1.0], [5, 10]))
    assert not choices.may_even_out(np.zeros(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "directions", "standardize": False}, "scale='directions' needs standardize=True"),
        ({"scale": "columns", "standardize": False}, "scale='columns' needs standardize=True"),
    ],
)
def test_features_that_are_to_be_left_alone_are_not_scaled(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CCEClusterer(4, **options).fit(hidden())
    assert not CCEClusterer(4, random_state=0, standardize=False).fit(hidden()).directions_evened_


def test_very_many_columns_are_refused() -> None:
    with pytest.raises(InputError, match="at most 1024 features, got 1025"):
        CCEClusterer(2, scale="directions").fit(np.zeros((30, 1025)))


def test_sparse_rows_are_refused() -> None:
    with pytest.raises(InputError, match="scale='directions' needs dense features"):
        CCEClusterer(4, random_state=0, scale="directions").fit(sparse.csr_array(hidden()))
