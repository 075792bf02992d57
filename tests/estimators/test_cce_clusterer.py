"""CCEClusterer as its users meet it: scikit-learn's tools, unusual data, bad input, and no silent collapse."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cceclust import CCEClusterer, estimate_pseudo_labels, nearest_neighbors, neighbor_modularity
from cceclust.errors import ClusteringWarning, InputError
from cceclust.io import open_features, write_features
from cceclust.objective import loss_cce_plus
from cceclust.training.rows import FileRows

pd = pytest.importorskip("pandas")

# Where a warning is what is tested, it is asked for; elsewhere `problems_` says more clearly what is expected.
pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

N_CLASSES = 3
CLASSES = np.arange(300) % N_CLASSES


def blobs(dtype: Any = np.float64, n_features: int = 6) -> Any:
    """Return rows in three groups that are easy to tell apart."""
    centres = 6 * np.eye(N_CLASSES, n_features)
    return (np.random.default_rng(0).normal(size=(len(CLASSES), n_features)) + centres[CLASSES]).astype(dtype)


def clusterer(n_clusters: int = N_CLASSES, **changes: Any) -> CCEClusterer:
    return CCEClusterer(n_clusters, **{"n_init": 3, "max_epochs": 30, "random_state": 0, "n_jobs": 1, **changes})


def accuracy(labels: Any) -> float:
    return float(adjusted_rand_score(CLASSES, labels))


class TestComponents:
    def test_wide_rows_are_trained_on_components_unless_told_otherwise(self) -> None:
        X = blobs(np.float32) @ np.random.default_rng(0).normal(size=(6, 1100)).astype(np.float32)
        found = {n: clusterer(n_components=n).fit(X) for n in ("auto", 0, 5)}
        assert [model.n_components_ for model in found.values()] == [256, 1100, 5]
        for model in found.values():
            assert accuracy(model.labels_) > 0.95
            assert model.coef_.shape == (N_CLASSES, 1100)
            assert model.coef_.dtype == np.float32
            np.testing.assert_array_equal(model.predict(X), model.labels_)

    def test_rows_as_wide_as_their_components_stay_as_they_are(self) -> None:
        plain, as_many, more = (clusterer(n_components=n, scale="overall").fit(blobs()) for n in (0, 6, 600))
        np.testing.assert_array_equal(plain.coef_, as_many.coef_)
        np.testing.assert_array_equal(plain.coef_, more.coef_)

    def test_nothing_is_projected_that_is_sparse_or_not_centred(self) -> None:
        X = blobs(n_features=1100)
        assert clusterer(max_epochs=2).fit(sparse.csr_matrix(X)).n_components_ == 1100
        assert clusterer(max_epochs=2, standardize=False, learning_rate=0.01).fit(X).n_components_ == 1100
        with pytest.raises(InputError, match="n_components=0"):
            clusterer(n_components=5).fit(sparse.csr_matrix(X))

    def test_training_goes_on_from_components(self) -> None:
        X = blobs(n_features=30)
        model = clusterer(n_components=4).fit(X)
        assert accuracy(model.partial_fit(X).labels_) > 0.95


class TestStart:
    @pytest.mark.parametrize("n_columns", [2, 40])
    def test_many_clusters_in_a_plane_are_found(self, n_columns: int) -> None:
        generator = np.random.default_rng(0)
        classes = np.arange(900) % 9
        plane = np.stack([classes // 3, classes % 3], axis=1) + 0.1 * generator.normal(size=(900, 2))
        # The same plane in more columns is the same task.
        X = plane @ np.linalg.qr(generator.normal(size=(n_columns, 2)))[0].T
        assert adjusted_rand_score(classes, CCEClusterer(9, random_state=0).fit(X).labels_) > 0.95
        if n_columns == 2:
            at_random = CCEClusterer(9, random_state=0, init="random", graph_candidates=False).fit(X)
            assert adjusted_rand_score(classes, at_random.labels_) < 0.95

    @pytest.mark.parametrize("index_type", [np.int32, np.int64])
    def test_k_means_takes_sparse_rows(self, index_type: type) -> None:
        X = sparse.csr_matrix(blobs())
        X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
        assert accuracy(clusterer(init="k-means").fit(X).labels_) > 0.95

    def test_streams_start_around_centres_of_the_first_piece(self) -> None:
        model = clusterer(init="k-means", n_init=5)
        for piece in np.array_split(blobs(), 3):
            model.partial_fit(piece)
        assert accuracy(model.predict(blobs())) > 0.95

    def test_a_first_piece_of_fewer_rows_than_clusters_starts_at_random(self) -> None:
        assert clusterer(5).partial_fit(blobs()[:3]).coef_.shape == (5, 6)
        with pytest.raises(InputError, match="needs a row for each of 5 clusters; got 3"):
            clusterer(5, init="k-means").partial_fit(blobs()[:3])

    def test_rows_without_weight_move_no_centre(self) -> None:
        X = np.concatenate([blobs(), np.full((50, 6), 1e3)])
        weights = np.concatenate([np.ones(300), np.zeros(50)])
        model = clusterer(init="k-means").fit(X, sample_weight=weights)
        assert accuracy(model.labels_[:300]) > 0.95

    @pytest.mark.parametrize("distinct", [1, 3])
    def test_rows_may_repeat(self, distinct: int) -> None:
        X = np.tile(np.eye(3)[:distinct], (20, 1))
        assert np.isfinite(clusterer(init="k-means").fit(X).coef_).all()


class TestAutomaticNeighbors:
    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({}, [15]),
            ({"n_neighbors": 20}, [20]),
            ({"n_neighbors": 0}, [15]),
            ({"n_neighbors": 0, "n_init": 1, "graph_candidates": False}, []),
            ({"n_init": 1, "graph_candidates": False}, [10]),
        ],
    )
    def test_one_search_serves_training_and_the_judge(
        self, settings: dict[str, Any], expected: list[int], searched: list[int]
    ) -> None:
        clusterer(max_epochs=1, **settings).fit(blobs())
        assert searched == expected

    def test_neighbours_share_pseudo_labels_in_training(self) -> None:
        alone = {"n_init": 1, "graph_candidates": False}
        with_some, without = (clusterer(n_neighbors=n, **alone).fit(blobs()) for n in ("auto", 0))
        assert not np.array_equal(with_some.coef_, without.coef_)

    def test_sparse_rows_go_without_unless_asked(self) -> None:
        X, alone = sparse.csr_matrix(blobs()), {"n_init": 1, "graph_candidates": False}
        without, asked = (clusterer(n_neighbors=n, **alone).fit(X) for n in ("auto", 10))
        np.testing.assert_array_equal(without.coef_, clusterer(n_neighbors=0, **alone).fit(X).coef_)
        assert not np.array_equal(without.coef_, asked.coef_)


class TestReproducibility:
    @pytest.mark.parametrize("n_components", [0, 4])
    def test_one_thread_equals_two(self, n_components: int) -> None:
        one, two = (clusterer(n_jobs=n, n_components=n_components).fit(blobs()) for n in (1, 2))
        for name in ("labels_", "coef_", "intercept_", "losses_", "loss_curves_"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))

    def test_the_same_seed_gives_the_same_bits_and_another_does_not(self) -> None:
        one, same, other = (clusterer(random_state=seed).fit(blobs()) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.coef_, same.coef_)
        assert not np.array_equal(one.coef_, other.coef_)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_fit_predict_equals_fit_then_predict(self, dtype: Any) -> None:
        X = blobs(dtype)
        labels = clusterer().fit_predict(X)
        model = clusterer().fit(X)
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_array_equal(labels, model.labels_)
        np.testing.assert_array_equal(labels, model.predict_proba(X).argmax(axis=1))


class TestResult:
    def test_groups_are_found(self) -> None:
        assert accuracy(clusterer().fit_predict(blobs())) > 0.95

    def test_only_the_number_of_clusters_goes_by_position(self) -> None:
        with pytest.raises(TypeError):
            CCEClusterer(3, 1.0)  # type: ignore[misc]

    def test_attributes_have_their_shapes_and_agree(self) -> None:
        X = blobs()
        model = clusterer().fit(X)
        assert model.labels_.shape == (300,)
        assert model.coef_.shape == (3, 6)
        assert model.intercept_.shape == (3,)
        assert model.losses_.shape == (3,)
        assert model.loss_curves_.shape == (3, model.n_iter_)
        assert model.n_features_in_ == 6
        np.testing.assert_array_equal(model.loss_curve_, model.loss_curves_[model.best_restart_])
        np.testing.assert_allclose(model.probabilities_, model.predict_proba(X), atol=1e-6)
        assert model.restart_agreement_ > 0.9
        assert model.converged_
        assert model.problems_ == []

    def test_score_is_the_modularity_on_the_graph_of_the_rows(self) -> None:
        # Too few rows to even out their directions.
        X, weights = blobs()[:250], np.random.default_rng(0).random(250)
        model = clusterer().fit(X)
        graph = nearest_neighbors(X, 15, metric="euclidean")
        assert model.score(X) == pytest.approx(neighbor_modularity(model.labels_, graph))
        weighted = neighbor_modularity(model.labels_, graph, weights)
        assert model.score(X, sample_weight=weights) == pytest.approx(weighted, rel=1e-6)

    def test_the_loss_is_the_minimum_over_pseudo_labels(self) -> None:
        X = blobs()
        model = clusterer(n_init=1, graph_candidates=False, fairness=10.0).fit(X)
        exact = estimate_pseudo_labels(model.predict_proba(X), fairness=10.0, solver="exact")
        labels = exact.pseudo_labels
        expected = loss_cce_plus(model.predict_proba(X), labels, fairness=10.0)
        assert model.loss_ == pytest.approx(expected, rel=1e-4, abs=1e-6)

    def test_heads_are_for_raw_features(self) -> None:
        X = 50 * blobs() + 20
        model = clusterer().fit(X)
        logits = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), logits, atol=1e-9)
        np.testing.assert_allclose(model.predict_proba(X), softmax(logits, axis=1), atol=1e-9)
        np.testing.assert_array_equal(model.transform(X), model.predict_proba(X))

    def test_the_wrong_number_of_features_is_refused(self) -> None:
        with pytest.raises(ValueError, match="4 features"):
            clusterer().fit(blobs()).predict(blobs()[:, :4])

    def test_nothing_is_predicted_before_a_fit(self) -> None:
        with pytest.raises(NotFittedError):
            clusterer().predict(blobs())

    def test_verbose_prints_to_stderr(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cceclust.progress.SECONDS_BETWEEN_LINES", 0.0)
        clusterer(verbose=1).fit(blobs())
        out, err = capsys.readouterr()
        assert out == ""
        assert "Training: 1 of 30, loss 0." in err


class TestData:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_types_stay(self, dtype: Any) -> None:
        model = clusterer().fit(blobs(dtype))
        assert model.coef_.dtype == model.intercept_.dtype == dtype
        assert model.predict_proba(blobs(dtype)).dtype == dtype

    @pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8, bool])
    def test_narrow_and_whole_numbers_are_computed_in_float32(self, dtype: Any) -> None:
        X = np.clip(10 * blobs(), 0, 255) > 20 if dtype is bool else np.clip(10 * blobs(), 0, 255).astype(dtype)
        model = clusterer().fit(X)
        assert model.coef_.dtype == np.float32
        assert accuracy(model.labels_) > 0.8

    def test_lists_and_data_frames_have_the_precision_of_their_numbers(self) -> None:
        expected = clusterer().fit(blobs()).coef_
        np.testing.assert_array_equal(clusterer().fit(blobs().tolist()).coef_, expected)
        np.testing.assert_array_equal(clusterer().fit(pd.DataFrame(blobs())).coef_, expected)
        assert clusterer().fit(pd.DataFrame(blobs(np.float32))).coef_.dtype == np.float32

    @pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0), (1e6, 0), (3, -500), (0.1, 1e3)])
    def test_scale_and_offset_do_not_matter(self, scale: float, offset: float) -> None:
        np.testing.assert_array_equal(
            clusterer().fit_predict(scale * blobs() + offset), clusterer().fit_predict(blobs())
        )

    @pytest.mark.parametrize("scale", [1e30, 1e-30])
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_extreme_scales_do_not_matter_in_float32(self, scale: float, kind: Any) -> None:
        X = blobs(np.float32) * np.float32(scale)
        assert accuracy(clusterer().fit_predict(kind(X))) > 0.95

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_a_huge_offset_in_float32_does_not_matter(self, kind: Any) -> None:
        X = blobs(np.float32) + np.float32(1e4)
        model = clusterer().fit(kind(X))
        assert accuracy(model.labels_) > 0.95
        assert accuracy(model.predict(kind(X))) > 0.95

    def test_sparse_equals_dense(self) -> None:
        X = np.where(blobs() > 1, blobs(), 0)
        dense, thin = (clusterer(scale="overall").fit(rows) for rows in (X, sparse.csr_matrix(X)))
        np.testing.assert_array_equal(thin.labels_, dense.labels_)
        np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_allclose(thin.losses_, dense.losses_, atol=1e-6)
        np.testing.assert_array_equal(thin.predict(X), dense.predict(sparse.csc_matrix(X)))

    def test_fortran_order_equals_c(self) -> None:
        X = blobs()
        np.testing.assert_array_equal(clusterer().fit(np.asfortranarray(X)).coef_, clusterer().fit(X).coef_)

    def test_memory_maps_are_not_copied(self, tmp_path: Path) -> None:
        X = np.tile(blobs(np.float32), (80, 25))
        np.save(tmp_path / "x.npy", X)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        settings = {"n_init": 1, "max_epochs": 2, "n_neighbors": 0, "weight_decay": 0.1, "graph_candidates": False}
        clusterer(**settings).fit(X[:300])  # Compiles what has to be compiled.
        tracemalloc.start()
        model = clusterer(**settings).fit(mapped)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.75 * X.nbytes
        np.testing.assert_array_equal(model.predict(mapped), model.labels_)

    def test_one_feature(self) -> None:
        X = np.r_[np.random.default_rng(0).normal(size=100), np.random.default_rng(1).normal(10, 1, 100)][:, None]
        assert adjusted_rand_score(np.arange(200) // 100, clusterer(2).fit_predict(X)) > 0.9

    def test_duplicated_rows_share_a_cluster(self) -> None:
        X = np.repeat(blobs()[:30], 10, axis=0)
        labels = clusterer().fit_predict(X).reshape(30, 10)
        assert (labels == labels[:, :1]).all()

    def test_a_batch_larger_than_the_data_is_the_data(self) -> None:
        assert accuracy(clusterer(batch_size=10_000, max_epochs=100).fit_predict(blobs())) > 0.95

    def test_as_many_clusters_as_rows(self) -> None:
        model = clusterer(20).fit(blobs()[:20])
        assert model.labels_.shape == (20,)

    def test_one_cluster(self) -> None:
        model = clusterer(1).fit(blobs())
        assert not model.labels_.any()
        np.testing.assert_allclose(model.predict_proba(blobs()), 1)
        assert model.problems_ == []


class TestStreaming:
    @pytest.mark.parametrize("is_sorted", [False, True])
    def test_a_streamed_file_is_clustered_as_well_as_an_array(self, tmp_path: Path, is_sorted: bool) -> None:
        generator = np.random.default_rng(0)
        classes = generator.integers(0, 5, 4000)
        classes = np.sort(classes) if is_sorted else classes
        X = (generator.normal(size=(4000, 8)) + 4 * np.eye(5, 8)[classes]).astype(np.float32)
        write_features(tmp_path / "x.h5", X)
        settings: dict[str, Any] = {"max_epochs": 12, "n_neighbors": 0}
        with open_features(tmp_path / "x.h5") as file:
            streamed = clusterer(5, **settings).fit(FileRows(file, 1100 * 8 * 4))
        in_memory = clusterer(5, **settings).fit(X)
        reached = adjusted_rand_score(classes, in_memory.labels_)
        assert reached > 0.9
        assert adjusted_rand_score(classes, streamed.labels_) > reached - 0.03
        np.testing.assert_array_equal(streamed.predict(X), streamed.labels_)


class TestPartialFit:
    def test_the_loss_falls_and_the_groups_are_found(self) -> None:
        X, model = blobs(), clusterer(init="random")
        losses = [model.partial_fit(X).loss_ for _ in range(40)]
        assert losses[-1] < 0.7 * losses[0]
        assert accuracy(model.predict(X)) > 0.95
        np.testing.assert_array_equal(model.predict(X), model.labels_)

    def test_it_goes_on_from_a_fit_even_with_few_rows(self) -> None:
        X = 100 * blobs() + 1000
        model = clusterer().fit(X)
        before = model.predict_proba(X)
        np.testing.assert_allclose(model.partial_fit(X[:6]).predict_proba(X), before, atol=0.1)

    def test_a_fit_ends_an_older_stream(self) -> None:
        X, other = blobs(), blobs(n_features=4)
        model = clusterer().partial_fit(X).partial_fit(X)
        coef = model.fit(other).coef_
        np.testing.assert_allclose(model.partial_fit(other[:20]).coef_, coef, atol=0.1)

    def test_types_may_change_between_pieces(self) -> None:
        model = clusterer().partial_fit(blobs(np.float32)).partial_fit(blobs(np.float64))
        assert model.coef_.dtype == np.float32

    def test_a_model_that_was_saved_goes_on(self) -> None:
        model = clusterer().partial_fit(blobs())
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(model.partial_fit(blobs()).coef_, again.partial_fit(blobs()).coef_)


class TestTypes:
    @pytest.mark.parametrize("dtype", [">f8", np.longdouble])
    def test_wide_numbers_are_not_narrowed(self, dtype: Any) -> None:
        # Far from the origin, float32 could not tell rows apart.
        X = (1e9 + blobs()).astype(dtype)
        model = clusterer().fit(X)
        assert model.coef_.dtype == np.float64
        assert accuracy(model.labels_) > 0.95

    def test_many_clusters_of_few_columns_need_little_memory(self) -> None:
        X = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
        model = CCEClusterer(200, n_init=5, max_epochs=1, n_neighbors=0, random_state=0)
        tracemalloc.start()
        model.fit(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # The probabilities of all restarts, which are kept, and little beside them.
        assert peak < 1.5 * 20_000 * 200 * 5 * 4 + 100e6


class TestWeightsAndPrior:
    def test_weights_count_as_repetitions(self) -> None:
        X, counts = blobs()[:90], 1 + np.arange(90) % 3
        settings: dict[str, Any] = {"batch_size": 1000, "max_epochs": 60, "tol": 0.0, "n_neighbors": 0}
        weighted = clusterer(**settings).fit(X, sample_weight=counts)
        repeated = clusterer(**settings).fit(np.repeat(X, counts, axis=0))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)

    def test_rows_without_weight_decide_nothing_but_get_a_label(self) -> None:
        X, weights = blobs(), np.ones(300)
        weights[:50] = 0
        spoiled = X.copy()
        spoiled[:50] += 1e3
        one, other = clusterer().fit(X, sample_weight=weights), clusterer().fit(spoiled, sample_weight=weights)
        np.testing.assert_array_equal(one.labels_[50:], other.labels_[50:])
        assert other.labels_.shape == (300,)

    def test_given_neighbours_without_weight_decide_nothing(self) -> None:
        X, weights = blobs(), np.ones(300)
        weights[:50] = 0
        graph = nearest_neighbors(X, 10)
        spoiled = X.copy()
        spoiled[:50] += 7
        one, other = (clusterer().fit(x, sample_weight=weights, neighbors=graph) for x in (X, spoiled))
        np.testing.assert_array_equal(one.coef_, other.coef_)

    @pytest.mark.parametrize("scale", [1e-40, 1e37])
    def test_weights_may_have_any_scale(self, scale: float) -> None:
        X = blobs().astype(np.float32)
        scaled = clusterer().fit(X, sample_weight=np.full(300, scale))
        np.testing.assert_array_equal(scaled.labels_, clusterer().fit(X).labels_)

    @pytest.mark.parametrize(
        ("weights", "said"),
        [
            (np.ones(299), "shape"),
            (-np.ones(300), "negative"),
            (np.full(300, np.nan), "not a finite number"),
            (np.zeros(300), "zero for every row"),
        ],
    )
    def test_bad_weights_are_refused(self, weights: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            clusterer().fit(blobs(), sample_weight=weights)

    def test_a_prior_finds_unbalanced_groups(self) -> None:
        generator = np.random.default_rng(0)
        classes = np.repeat([0, 1, 2], [400, 80, 20])
        X = generator.normal(size=(500, 6)) + 5 * np.eye(3, 6)[classes]
        model = clusterer(prior=[0.8, 0.16, 0.04], fairness=1.0, n_init=10).fit(X)
        assert adjusted_rand_score(classes, model.labels_) > 0.9
        equal = clusterer(fairness=1.0, n_init=10, prior=None)
        assert adjusted_rand_score(classes, equal.fit_predict(X)) < 0.6

    def test_a_cluster_with_no_part_stays_empty_without_complaint(self) -> None:
        model = clusterer(4, prior=[0.4, 0.3, 0.3, 0]).fit(blobs())
        assert accuracy(model.labels_) > 0.95
        assert 3 not in model.labels_

    @pytest.mark.parametrize(
        ("prior", "said"),
        [
            ([0.5, 0.5], "2 entries, but there are 3 clusters"),
            ([1, -1, 1], "negative"),
            ([0, 0, 0], "sums to 0, expected 1"),
            ([2, 1, 1], "sums to 4, expected 1; divided by its sum it is"),
            ([1, np.nan, 1], "not a finite number"),
            (["a", "b", "c"], "numbers"),
            (3, "shape"),
        ],
    )
    def test_bad_priors_are_refused(self, prior: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            clusterer(prior=prior).fit(blobs())


class TestBadInput:
    def test_fewer_rows_than_clusters_are_refused_with_both_numbers(self) -> None:
        with pytest.raises(InputError, match="n_samples=2 should be >= n_clusters=3"):
            clusterer().fit(blobs()[:2])

    def test_rows_without_weight_do_not_count(self) -> None:
        with pytest.raises(InputError, match="n_samples=2 should be >= n_clusters=3"):
            clusterer().fit(blobs(), sample_weight=np.arange(300) < 2)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_what_is_not_finite_is_found(self, value: float) -> None:
        X = blobs()
        X[7, 2] = value
        with pytest.raises(InputError, match="NaN or infinity in 1 of 300 rows, first in row 7"):
            clusterer().fit(X)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clusterer().fit(blobs()).predict(X)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_clusters", 0),
            ("n_clusters", 2.5),
            ("n_clusters", True),
            ("n_init", 0),
            ("batch_size", -1),
            ("max_epochs", 0),
            ("max_epochs", "many"),
            ("tol", -1.0),
            ("tol", "small"),
            ("learning_rate", 0),
            ("learning_rate", np.inf),
            ("learning_rate_schedule", "linear"),
            ("weight_decay", -1),
            ("weight_decay", "automatic"),
            ("fairness", -1),
            ("n_neighbors", -1),
            ("n_neighbors", 1.5),
            ("neighbor_weight", -1),
            ("n_components", -1),
            ("n_components", "all"),
            ("init", "zeros"),
            ("n_jobs", 0),
            ("n_jobs", "all"),
        ],
    )
    def test_bad_parameters_are_refused_by_name_and_value(self, name: str, value: Any) -> None:
        with pytest.raises(InputError, match=name) as caught:
            clusterer().set_params(**{name: value}).fit(blobs())
        assert repr(value) in str(caught.value)

    def test_features_too_small_for_their_type_are_refused(self) -> None:
        X = 1e-40 * np.random.default_rng(0).normal(size=(300, 1100))
        with pytest.raises(InputError, match="float32 cannot hold; rescale"):
            clusterer(max_epochs=2).fit(X.astype(np.float32))

    def test_divergence_is_told(self) -> None:
        with pytest.raises(InputError, match="training diverges with learning_rate=100 and weight_decay=1; lower them"):
            clusterer(learning_rate=100.0, weight_decay=1.0, max_epochs=100).fit(blobs(np.float32))

    def test_a_failed_fit_leaves_the_last_one(self) -> None:
        model = clusterer().fit(blobs())
        with pytest.raises(InputError):
            model.set_params(prior=[1.0]).fit(blobs())
        assert accuracy(model.predict(blobs())) > 0.95


class TestNoSilentCollapse:
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_constant_data_are_told(self, kind: Any) -> None:
        with pytest.warns(ClusteringWarning) as caught:
            model = clusterer().fit(kind(np.full((50, 4), 3.3)))
        said = [str(warning.message) for warning in caught]
        assert said == model.problems_
        assert any("2 of 3 clusters are empty" in sentence for sentence in said)
        assert any("ignores the features" in sentence for sentence in said)

    def test_too_much_weight_decay_is_told(self) -> None:
        with pytest.warns(ClusteringWarning, match="ignores the features; lower weight_decay"):
            clusterer(weight_decay=50.0, learning_rate=0.01, init="random", graph_candidates=False).fit(blobs())
        with pytest.warns(ClusteringWarning, match="2 of 3 clusters are empty; try another fairness, a lower weight_"):
            clusterer(weight_decay=50.0, learning_rate=0.01, init="k-means", graph_candidates=False).fit(blobs())

    def test_tiny_clusters_are_told(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.normal(size=(1000, 2)) * 0.1
        X[:5] += 2
        with pytest.warns(ClusteringWarning, match="less than 15% of the expected rows"):
            clusterer(2, fairness=0.0, weight_decay=0.0, n_init=1, n_neighbors=0, prior=None).fit(X)

    def test_restarts_that_disagree_are_told(self) -> None:
        with pytest.warns(ClusteringWarning, match="restarts disagree"):
            model = clusterer(8, n_init=4).fit(np.random.default_rng(0).normal(size=(300, 30)))
        assert model.restart_agreement_ < 0.45

    def test_too_few_epochs_are_told(self) -> None:
        with pytest.warns(ClusteringWarning, match="raise max_epochs"):
            model = clusterer(max_epochs=1).fit(blobs())
        assert not model.converged_

    def test_warnings_point_to_the_caller(self) -> None:
        with pytest.warns(ClusteringWarning) as caught:
            clusterer(max_epochs=1).fit(blobs())
        assert {Path(warning.filename) for warning in caught} == {Path(__file__)}

    def test_weights_decide_what_is_tiny(self) -> None:
        generator = np.random.default_rng(0)
        classes = np.repeat([0, 1], [990, 10])
        X = generator.normal(size=(1000, 4)) + 10 * np.eye(2, 4)[classes]
        model = clusterer(2, n_neighbors=0).fit(X, sample_weight=np.where(classes == 1, 99.0, 1.0))
        assert np.bincount(model.labels_).min() == 10
        assert model.problems_ == []


class TestScikitLearn:
    def test_pipeline(self) -> None:
        pipeline = make_pipeline(StandardScaler(with_std=False), clusterer())
        labels = pipeline.fit_predict(blobs())
        assert accuracy(labels) > 0.95
        np.testing.assert_array_equal(pipeline.predict(blobs()), labels)

    def test_features_for_a_next_step(self) -> None:
        pipeline = make_pipeline(clusterer(), StandardScaler())
        assert pipeline.fit_transform(blobs()).shape == (300, 3)

    def test_grid_search(self) -> None:
        search = GridSearchCV(clusterer(), {"weight_decay": [0.05, 3.0]}, cv=2, refit=False)
        search.fit(blobs())
        assert search.best_params_ == {"weight_decay": 0.05}

    def test_clones_have_the_parameters_and_no_fit(self) -> None:
        model = clusterer(fairness=3.0, prior=[0.2, 0.3, 0.5]).fit(blobs())
        copied = clone(model)
        assert copied.get_params() == model.get_params()
        assert not hasattr(copied, "coef_")

    def test_fit_changes_no_parameter(self) -> None:
        model = clusterer(prior=[0.2, 0.3, 0.5])
        before = copy.deepcopy(model.get_params())
        assert model.fit(blobs()).get_params() == before

    def test_data_frames_in_and_out(self) -> None:
        frame = pd.DataFrame(blobs(), columns=list("abcdef"), index=np.arange(300) + 7)
        model = clusterer().set_output(transform="pandas").fit(frame)
        assert model.feature_names_in_.tolist() == list("abcdef")
        out = model.transform(frame)
        assert out.columns.tolist() == ["cceclusterer0", "cceclusterer1", "cceclusterer2"]
        assert out.columns.tolist() == model.get_feature_names_out().tolist()
        assert out.index.equals(frame.index)
        np.testing.assert_array_equal(model.labels_, clusterer().fit(blobs()).labels_)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "z"}))

    @pytest.mark.parametrize("library", ["polars", "pyarrow"])
    def test_tables_of_other_libraries(self, library: str) -> None:
        module = pytest.importorskip(library)
        columns = dict(zip("abcdef", blobs().T, strict=True))
        table = module.DataFrame(columns) if library == "polars" else module.table(columns)
        model = clusterer().fit(table)
        assert model.feature_names_in_.tolist() == list("abcdef")
        np.testing.assert_array_equal(model.labels_, clusterer().fit(blobs().astype(np.float64)).labels_)
        np.testing.assert_array_equal(model.predict(table), model.labels_)

    def test_saved_models_predict_the_same(self, tmp_path: Path) -> None:
        model = clusterer().fit(blobs())
        joblib.dump(model, tmp_path / "model.joblib")
        for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
            np.testing.assert_array_equal(again.predict_proba(blobs()), model.predict_proba(blobs()))


class TestNumberOfClusters:
    @pytest.mark.parametrize("n_clusters", ["auto", range(2, 9), [2, 3, 7], np.array([3, 5])])
    def test_it_is_found_and_the_fit_is_that_of_the_number(self, n_clusters: Any) -> None:
        model = clusterer(n_clusters).fit(blobs())
        assert model.n_clusters_ == N_CLASSES
        assert max(model.k_scores_, key=model.k_scores_.get) == N_CLASSES
        given = clusterer(N_CLASSES).fit(blobs())
        np.testing.assert_array_equal(model.coef_, given.coef_)
        assert (given.n_clusters_, given.k_scores_, given.k_search_) == (N_CLASSES, None, None)
        assert list(model.get_feature_names_out()) == list(given.get_feature_names_out())

    def test_noise_is_one_cluster(self) -> None:
        noise = np.random.default_rng(0).normal(size=(300, 4))
        with pytest.warns(ClusteringWarning, match="speaks for clusters"):
            model = clusterer("auto").fit(noise)
        assert model.n_clusters_ == 1
        assert not model.labels_.any()
        assert len(model.problems_) == 1
        np.testing.assert_array_equal(model.predict_proba(noise), 1.0)

    def test_columns_in_other_units_do_not_hide_clusters(self) -> None:
        X = blobs()
        X[:, 5] *= 1e6
        assert clusterer("auto").fit(X).n_clusters_ == N_CLASSES

    def test_baselines_find_it_as_well(self) -> None:
        from cceclust.estimators import SeLa

        assert SeLa("auto", n_init=2, max_epochs=20, random_state=0, n_jobs=1).fit(blobs()).n_clusters_ == N_CLASSES

    def test_rows_of_a_file_are_sampled(self, tmp_path: Path) -> None:
        write_features(tmp_path / "x.h5", blobs(np.float32))
        with open_features(tmp_path / "x.h5") as features:
            assert clusterer("auto").fit(FileRows(features, 1 << 20)).n_clusters_ == N_CLASSES

    def test_copies_keep_what_was_asked_for(self) -> None:
        model = clusterer("auto").fit(blobs())
        assert clone(model).n_clusters == "auto"
        assert pickle.loads(pickle.dumps(model)).k_scores_ == model.k_scores_

    def test_pieces_go_on_with_the_number_that_was_found(self) -> None:
        with pytest.raises(InputError, match="pieces of data need a number"):
            clusterer("auto").partial_fit(blobs())
        assert clusterer("auto").fit(blobs()).partial_fit(blobs()).n_clusters_ == N_CLASSES

    @pytest.mark.parametrize(
        ("n_clusters", "changes", "said"),
        [
            ("many", {}, "n_clusters='many'; expected a whole number of at least 1"),
            (range(5, 2), {}, "expected at least one number"),
            ([], {}, "expected at least one number"),
            ([2, 2.5], {}, "n_clusters=2.5; expected a whole number"),
            (range(5), {}, "n_clusters=0; expected a whole number of at least 1"),
            (range(2, 5000), {}, "goes up to 4999, but numbers are compared up to 1000"),
            (range(2, 400), {}, "goes up to 399, but there are 300 rows"),
            ("auto", {"prior": [0.5, 0.5]}, "a prior needs a number of clusters"),
        ],
    )
    def test_what_cannot_be_searched_is_refused(self, n_clusters: Any, changes: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            clusterer(n_clusters, **changes).fit(blobs())
