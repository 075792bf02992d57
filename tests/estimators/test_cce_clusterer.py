"""CCEClusterer as its users meet it: good clusters, unusual data, bad input, scikit-learn's tools."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cceclust import CCEClusterer, clustering_accuracy
from cceclust.errors import ClusteringWarning, InputError
from cceclust.fit.source import ArraySource
from cceclust.io import open_features

pd = pytest.importorskip("pandas")

# Where a warning is what is tested, it is asked for; elsewhere `problems_` says more clearly what is expected.
pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
CLASSES = np.arange(300) % 3


def blobs(dtype: Any = np.float64, n_features: int = 6) -> Any:
    """Return rows in three groups that are easy to tell apart."""
    return (np.random.default_rng(0).normal(size=(300, n_features)) + 6 * np.eye(3, n_features)[CLASSES]).astype(dtype)


def clusterer(n_clusters: Any = 3, **changes: Any) -> CCEClusterer:
    return CCEClusterer(n_clusters, **{"random_state": 0, "n_jobs": 1, **changes})


def accuracy(labels: Any) -> float:
    return float(adjusted_rand_score(CLASSES, labels))


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    with open_features(SAMPLE_DATA / "digits.h5") as file:
        return file.array(), file.labels


class TestQuality:
    # K-means reaches 0.79 and 0.72.
    @pytest.mark.parametrize(
        ("name", "least", "on_average"), [("digits", 0.89, 0.93), ("fashion-resnet50", 0.67, 0.705)]
    )
    def test_sample_data(self, name: str, least: float, on_average: float) -> None:
        with open_features(SAMPLE_DATA / f"{name}.h5") as file:
            X, classes = file.array(), file.labels
        models = [clusterer(10, random_state=seed, n_jobs=None).fit(X) for seed in range(4)]
        scores = [clustering_accuracy(classes, model.labels_) for model in models]
        assert min(scores) > least
        assert np.mean(scores) > on_average

    @pytest.mark.parametrize(("load", "least"), [(load_wine, 0.95), (load_breast_cancer, 0.89)])
    def test_tables_in_mixed_units(self, load: Any, least: float) -> None:
        X, classes = load(return_X_y=True)
        model = clusterer(len(np.unique(classes))).fit(X)
        assert model.columns_scaled_
        assert clustering_accuracy(classes, model.labels_) > least

    @pytest.mark.parametrize("n_columns", [2, 40])
    def test_many_clusters_in_a_plane(self, n_columns: int) -> None:
        generator = np.random.default_rng(0)
        classes = np.arange(900) % 9
        plane = np.stack([classes // 3, classes % 3], axis=1) + 0.1 * generator.normal(size=(900, 2))
        # The same plane in more columns is the same task.
        X = plane @ np.linalg.qr(generator.normal(size=(n_columns, 2)))[0].T
        assert adjusted_rand_score(classes, clusterer(9).fit(X).labels_) > 0.99

    def test_groups_of_unequal_size(self) -> None:
        classes = np.repeat([0, 1, 2], [400, 80, 20])
        X = np.random.default_rng(0).normal(size=(500, 6)) + 6 * np.eye(3, 6)[classes]
        assert adjusted_rand_score(classes, clusterer().fit_predict(X)) > 0.95

    def test_a_prior_decides_the_sizes(self) -> None:
        X = np.random.default_rng(0).normal(size=(600, 4))
        sizes = np.bincount(clusterer(prior=[0.6, 0.3, 0.1]).fit_predict(X)) / 600
        np.testing.assert_allclose(sizes, [0.6, 0.3, 0.1], atol=0.06)
        assert np.ptp(np.bincount(clusterer(prior="equal").fit_predict(X))) < 40

    def test_curved_borders_and_linear_ones(self) -> None:
        X = blobs()
        curved, linear = clusterer().fit(X), clusterer(curved=False).fit(X)
        assert linear.curves_ is None
        np.testing.assert_allclose(linear.decision_function(X), X @ linear.coef_.T + linear.intercept_, atol=1e-9)
        assert accuracy(curved.labels_) > 0.98 < accuracy(linear.labels_) + 0.02


class TestReproducibility:
    @pytest.mark.parametrize("n_clusters", [10, "auto"])
    def test_the_number_of_threads_changes_no_bit(self, digits: Any, n_clusters: Any) -> None:
        one, two, all_cores = (clusterer(n_clusters, n_jobs=n).fit(digits[0][:900]) for n in (1, 2, None))
        for other in (two, all_cores):
            np.testing.assert_array_equal(one.labels_, other.labels_)
            np.testing.assert_array_equal(one.coef_, other.coef_)

    def test_the_same_seed_gives_the_same_bits_and_another_does_not(self, digits: Any) -> None:
        one, same, other = (clusterer(10, random_state=seed).fit(digits[0][:600]) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.probabilities_, same.probabilities_)
        assert not np.array_equal(one.coef_, other.coef_)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_fit_predict_equals_fit_then_predict(self, dtype: Any) -> None:
        X = blobs(dtype)
        model = clusterer().fit(X)
        np.testing.assert_array_equal(clusterer().fit_predict(X), model.labels_)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.labels_)


class TestResult:
    def test_there_are_few_parameters_and_only_the_number_goes_by_position(self) -> None:
        parameters = list(inspect.signature(CCEClusterer).parameters.values())
        assert len(parameters) <= 12
        assert [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] == ["n_clusters"]

    def test_attributes_have_their_shapes_and_agree(self) -> None:
        X = blobs(np.float32)
        model = clusterer().fit(X)
        assert model.labels_.shape == model.outlier_score_.shape == (300,)
        assert model.coef_.shape == model.cluster_centers_.shape == (3, 6)
        assert model.intercept_.shape == (3,)
        assert (model.n_clusters_, model.n_features_in_, model.n_trained_rows_) == (3, 6, 300)
        assert model.probabilities_.dtype == np.float32
        np.testing.assert_allclose(model.probabilities_, model.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(model.probabilities_, softmax(model.decision_function(X), axis=1), atol=1e-6)
        np.testing.assert_array_equal(model.transform(X), model.predict_proba(X))
        means = [X[model.labels_ == k].mean(axis=0) for k in range(3)]
        np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-5)
        assert max(model.candidates_.values()) >= model.modularity_ > 0.6
        assert model.reason_
        assert model.problems_ == []
        assert model.levels_ is None

    def test_nothing_is_left_of_an_older_fit(self) -> None:
        model = clusterer("auto").fit(pd.DataFrame(blobs(), columns=list("abcdef")))
        assert model.levels_ is not None
        model.set_params(n_clusters=3).fit(ArraySource(blobs(n_features=5)))
        assert (model.levels_, model.n_features_in_) == (None, 5)
        assert not hasattr(model, "feature_names_in_")
        fresh = clusterer().fit(blobs(n_features=5))
        assert set(vars(model)) == set(vars(fresh))
        np.testing.assert_array_equal(model.coef_, fresh.coef_)

    def test_scores_of_models_with_other_settings_are_of_one_graph(self, digits: Any) -> None:
        X = digits[0]
        overall, columns = (clusterer(10, scale=scale).fit(X) for scale in ("overall", "columns"))
        assert overall.score(X) > columns.score(X)
        # The same clusters have the same score, whatever model they come from.
        columns.coef_, columns.intercept_, columns.curves_ = overall.coef_, overall.intercept_, overall.curves_
        assert columns.score(X) == overall.score(X)

    def test_rows_without_weight_do_not_count_in_the_score(self) -> None:
        X, weights = blobs(), np.repeat([1.0, 0.0], [250, 50])
        model = clusterer().fit(X)
        assert model.score(X, sample_weight=weights) == pytest.approx(model.score(X[:250]), abs=0.02)
        assert model.score(X[:1]) == 0

    def test_verbose_prints_to_stderr(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cceclust.progress.SECONDS_BETWEEN_LINES", 0.0)
        clusterer(verbose=1).fit(blobs())
        out, err = capsys.readouterr()
        assert out == ""
        assert "Training heads" in err

    def test_progress_goes_to_whoever_asks(self) -> None:
        phases = []
        clusterer().fit(blobs(), on_progress=lambda now: phases.append(now.phase))
        assert len(set(phases)) >= 4


class TestData:
    @pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8, bool])
    def test_narrow_and_whole_numbers_are_computed_in_float32(self, dtype: Any) -> None:
        X = np.clip(10 * blobs(), 0, 255) > 20 if dtype is bool else np.clip(10 * blobs(), 0, 255).astype(dtype)
        model = clusterer().fit(X)
        assert model.coef_.dtype == np.float32
        assert accuracy(model.labels_) > 0.8

    @pytest.mark.parametrize("dtype", [">f8", np.longdouble])
    def test_wide_numbers_are_not_narrowed(self, dtype: Any) -> None:
        # Far from the origin, float32 could not tell rows apart.
        model = clusterer().fit((1e9 + blobs()).astype(dtype))
        assert model.coef_.dtype == np.float64
        assert accuracy(model.labels_) > 0.95

    @pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0), (1e6, 0), (3, -500), (0.1, 1e3)])
    def test_scale_and_offset_do_not_matter(self, scale: float, offset: float) -> None:
        moved = clusterer().fit_predict(scale * blobs() + offset)
        assert adjusted_rand_score(moved, clusterer().fit_predict(blobs())) > 0.99

    @pytest.mark.parametrize("scale", [1e30, 1e-30])
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_extreme_scales_do_not_matter_in_float32(self, scale: float, kind: Any) -> None:
        assert accuracy(clusterer().fit_predict(kind(blobs(np.float32) * np.float32(scale)))) > 0.95

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_a_huge_offset_in_float32_does_not_matter(self, kind: Any) -> None:
        X = kind(blobs(np.float32) + np.float32(1e4))
        model = clusterer().fit(X)
        assert accuracy(model.labels_) > 0.95
        np.testing.assert_array_equal(model.predict(X), model.labels_)

    def test_sparse_rows_give_the_clusters_of_dense_ones(self) -> None:
        X = np.where(blobs() > 1, blobs(), 0)
        dense, thin = clusterer(scale="overall").fit(X), clusterer(scale="overall").fit(sparse.csr_array(X))
        np.testing.assert_array_equal(thin.labels_, dense.labels_)
        np.testing.assert_array_equal(thin.predict(X), dense.predict(sparse.csc_matrix(X)))

    def test_sources_memory_maps_tables_and_layouts_are_arrays(self, tmp_path: Path) -> None:
        X = blobs(np.float32)
        np.save(tmp_path / "x.npy", X)
        expected = clusterer().fit(X).coef_
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        for same in (ArraySource(X), mapped, np.asfortranarray(X), pd.DataFrame(X)):
            np.testing.assert_array_equal(clusterer().fit(same).coef_, expected)
        with open_features(tmp_path / "x.npy") as features:
            np.testing.assert_array_equal(clusterer().fit(features).coef_, expected)

    def test_more_rows_than_are_learnt_from_all_get_a_cluster(self) -> None:
        model = clusterer(max_rows=150).fit(blobs())
        assert (model.n_trained_rows_, model.outlier_score_) == (150, None)
        assert accuracy(model.labels_) > 0.95

    def test_wide_rows_are_learnt_from_on_components(self) -> None:
        X = blobs(np.float32) @ np.random.default_rng(0).normal(size=(6, 1100)).astype(np.float32)
        model = clusterer(n_components=5).fit(X)
        assert model.coef_.shape == (3, 1100)
        assert accuracy(model.labels_) > 0.95

    def test_duplicated_rows_share_a_cluster(self) -> None:
        labels = clusterer().fit_predict(np.repeat(blobs()[:30], 10, axis=0)).reshape(30, 10)
        assert (labels == labels[:, :1]).all()

    @pytest.mark.parametrize("n_clusters", [1, 20])
    def test_one_cluster_and_as_many_as_rows(self, n_clusters: int) -> None:
        model = clusterer(n_clusters).fit(blobs()[:20])
        np.testing.assert_allclose(model.predict_proba(blobs()).sum(axis=1), 1)
        assert len(np.unique(model.labels_)) >= 0.9 * n_clusters


class TestWeights:
    def test_rows_without_weight_decide_nothing_but_get_a_label(self) -> None:
        X, weights = blobs(), np.ones(300)
        weights[:50] = 0
        spoiled = X.copy()
        spoiled[:50] += 1e3
        one, other = clusterer().fit(X, sample_weight=weights), clusterer().fit(spoiled, sample_weight=weights)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert other.labels_.shape == (300,)

    def test_weights_count_as_repetitions(self) -> None:
        X, counts = blobs()[:90], 1 + np.arange(90) % 3
        weighted = clusterer().fit(X, sample_weight=counts)
        repeated = clusterer().fit(np.repeat(X, counts, axis=0))
        np.testing.assert_array_equal(weighted.predict(blobs()), repeated.predict(blobs()))

    @pytest.mark.parametrize("scale", [1e-40, 1e37])
    def test_weights_may_have_any_scale(self, scale: float) -> None:
        scaled = clusterer().fit(blobs(np.float32), sample_weight=np.full(300, scale))
        np.testing.assert_array_equal(scaled.labels_, clusterer().fit(blobs(np.float32)).labels_)

    def test_weights_decide_what_is_tiny(self) -> None:
        classes = np.repeat([0, 1], [990, 10])
        X = np.random.default_rng(0).normal(size=(1000, 4)) + 10 * np.eye(2, 4)[classes]
        model = clusterer(2).fit(X, sample_weight=np.where(classes == 1, 99.0, 1.0))
        assert np.bincount(model.labels_).min() == 10
        assert model.problems_ == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_clusters", 0),
            ("n_clusters", 2.5),
            ("n_clusters", True),
            ("n_clusters", "many"),
            ("fairness", 0),
            ("fairness", np.inf),
            ("scale", "rows"),
            ("curved", "yes"),
            ("n_components", 0),
            ("max_rows", 1.5),
            ("n_jobs", 0),
        ],
    )
    def test_bad_parameters_are_refused_by_name_and_value(self, name: str, value: Any) -> None:
        with pytest.raises(InputError, match=name) as caught:
            clusterer().set_params(**{name: value}).fit(blobs())
        assert repr(value) in str(caught.value)

    @pytest.mark.parametrize(
        ("prior", "said"),
        [
            ([0.5, 0.5], "2 entries, but there are 3 clusters"),
            ([1, -1, 1], "negative"),
            ([2, 1, 1], "sums to 4, expected 1; divided by its sum it is"),
            ("uniform", "prior='uniform'; expected numbers"),
            (3, "shape"),
        ],
    )
    def test_bad_priors_are_refused(self, prior: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            clusterer(prior=prior).fit(blobs())

    @pytest.mark.parametrize("weights", [np.ones(300), np.arange(300) < 2])
    def test_fewer_rows_than_clusters_are_refused_with_both_numbers(self, weights: Any) -> None:
        X = blobs() if weights.sum() == 2 else blobs()[:2]
        with pytest.raises(InputError, match="n_samples=2 should be >= n_clusters=3"):
            clusterer().fit(X, sample_weight=weights[: len(X)])

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_what_is_not_finite_is_found(self, value: float) -> None:
        X = blobs()
        X[7, 2] = value
        with pytest.raises(InputError, match=r"row 7\b"):
            clusterer().fit(X)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clusterer().fit(blobs()).predict(X)

    def test_the_wrong_number_of_features_is_refused(self) -> None:
        model = clusterer().fit(blobs())
        for rows in (blobs()[:, :4], ArraySource(blobs()[:, :4])):
            with pytest.raises(ValueError, match="4 features"):
                model.predict(rows)


class TestNoSilentCollapse:
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_constant_data_are_told(self, kind: Any) -> None:
        with pytest.warns(ClusteringWarning, match="2 of 3 clusters are empty") as caught:
            model = clusterer().fit(kind(np.full((50, 4), 3.3)))
        assert [str(warning.message) for warning in caught] == model.problems_
        assert {Path(warning.filename) for warning in caught} == {Path(__file__)}

    def test_rows_far_from_all_others_are_told_and_do_not_decide(self) -> None:
        X = np.concatenate([blobs(), np.full((2, 6), 1e4)])
        with pytest.warns(ClusteringWarning, match="2 rows far from all others were ignored in training"):
            model = clusterer().fit(X)
        assert accuracy(model.labels_[:300]) > 0.95
        assert model.outlier_score_[300:].min() > np.median(model.outlier_score_) * 5


class TestNumberOfClusters:
    @pytest.mark.parametrize("n_clusters", ["auto", range(2, 9), [2, 3, 7]])
    def test_it_is_found(self, n_clusters: Any) -> None:
        model = clusterer(n_clusters).fit(blobs())
        assert model.n_clusters_ == model.levels_.chosen == len(model.coef_) == 3
        assert not model.levels_.is_weak
        assert accuracy(model.labels_) > 0.95

    def test_a_few_rows_are_one_cluster_and_doubted(self) -> None:
        for n_rows in (1, 9):
            model = clusterer("auto").fit(blobs()[:n_rows])
            assert model.n_clusters_ == 1
            assert model.levels_.is_weak

    def test_columns_in_other_units_do_not_hide_clusters(self) -> None:
        X = blobs()
        X[:, 5] *= 1e6
        assert clusterer("auto").fit(X).n_clusters_ == 3

    @pytest.mark.parametrize(
        ("n_clusters", "changes", "said"),
        [
            (range(5, 2), {}, "expected at least one number"),
            ([], {}, "expected at least one number"),
            ([2, 2.5], {}, "n_clusters=2.5; expected a whole number"),
            (range(5), {}, "n_clusters=0; expected a whole number of at least 1"),
            ("auto", {"prior": [0.5, 0.5]}, "prior needs a number of clusters"),
        ],
    )
    def test_what_cannot_be_searched_is_refused(self, n_clusters: Any, changes: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            clusterer(n_clusters, **changes).fit(blobs())


class TestScikitLearn:
    def test_pipelines(self) -> None:
        pipeline = make_pipeline(StandardScaler(with_std=False), clusterer())
        labels = pipeline.fit_predict(blobs())
        assert accuracy(labels) > 0.95
        np.testing.assert_array_equal(pipeline.predict(blobs()), labels)
        assert make_pipeline(clusterer(), StandardScaler()).fit_transform(blobs()).shape == (300, 3)

    def test_data_frames_in_and_out(self) -> None:
        frame = pd.DataFrame(blobs(), columns=list("abcdef"), index=np.arange(300) + 7)
        model = clusterer().set_output(transform="pandas").fit(frame)
        out = model.transform(frame)
        assert out.columns.tolist() == ["cceclusterer0", "cceclusterer1", "cceclusterer2"]
        assert out.columns.tolist() == model.get_feature_names_out().tolist()
        assert out.index.equals(frame.index)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "z"}))

    @pytest.mark.parametrize("library", ["polars", "pyarrow"])
    def test_tables_of_other_libraries(self, library: str) -> None:
        module = pytest.importorskip(library)
        columns = dict(zip("abcdef", blobs().T, strict=True))
        table = module.DataFrame(columns) if library == "polars" else module.table(columns)
        model = clusterer().fit(table)
        assert model.feature_names_in_.tolist() == list("abcdef")
        np.testing.assert_array_equal(model.predict(table), clusterer().fit(blobs()).labels_)
