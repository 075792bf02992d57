"""Fitting, predicting and scoring files, without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans

from cceclust import CCEClassifier, CCEClusterer
from cceclust.clustering import fit_features, fit_file, predict_features, predict_file, score_file
from cceclust.errors import FileError, InputError, TargetExistsError
from cceclust.io import open_features, read_clusters, write_features
from cceclust.io.partial_labels import PartialLabels
from cceclust.scoring import clustering_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

FAST: dict[str, Any] = {"random_state": 0, "n_jobs": 1}


@pytest.mark.parametrize("method", ["cce", "kmeans"])
def test_every_method_clusters_and_its_model_repeats_the_labels(method: str, small_features: Path) -> None:
    with open_features(small_features) as features:
        clusters, model = fit_features(features, 3, method=method, random_state=0)
        again = predict_features(model, features)
    assert clustering_accuracy(features.labels, clusters.labels) > 0.95
    np.testing.assert_array_equal(again.labels, clusters.labels)
    np.testing.assert_array_equal(again.probabilities, clusters.probabilities)
    np.testing.assert_allclose(clusters.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert clusters.parameters["method"] == model.parameters["method"] == method
    assert clusters.parameters["n_clusters"] == 3
    assert clusters.diagnostics["seconds"] >= 0
    assert clusters.diagnostics["warnings"] == []


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_kmeans_is_scikit_learn_s(offset: float, tmp_path: Path) -> None:
    X = (np.random.default_rng(0).normal(size=(300, 4)) + offset).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    with open_features(tmp_path / "x.npy") as features:
        clusters, _ = fit_features(features, 4, method="kmeans", random_state=0)
    means = np.array([X[clusters.labels == k].mean(axis=0, dtype=np.float64) for k in range(4)])
    inertia = ((X - means[clusters.labels]) ** 2).sum()
    assert inertia <= 1.02 * KMeans(4, n_init=10, random_state=0).fit(X.astype(np.float64)).inertia_


@pytest.mark.parametrize("kind", [int, np.int64])
def test_labels_take_any_whole_number_of_clusters(kind: Any, small_features: Path) -> None:
    values = np.full(120, -1)
    values[[0, 50]] = 0, 1
    labels = PartialLabels(values, np.array(["ant", "bee"]))
    with open_features(small_features) as features:
        clusters, model = fit_features(features, kind(3), labels=labels, **FAST)
        classifier = CCEClassifier(n_extra_clusters=1, **FAST).fit(features.array(), values)
    assert model.parameters["classes"] == ["ant", "bee", "extra 1"]
    assert (clusters.named_labels[0], clusters.named_labels[50]) == ("ant", "bee")
    assert clusters.diagnostics["labelled_rows"] == 2
    np.testing.assert_array_equal(model.coef, classifier.coef_)


def test_a_fit_is_the_estimator_s_and_its_model_file_loads_as_one(small_features: Path) -> None:
    clusters, (_, model) = fit_file(small_features, 3, scale="overall", **FAST)
    loaded = CCEClusterer.load(model)
    with open_features(small_features) as features:
        X = features.array()
    np.testing.assert_array_equal(CCEClusterer(3, scale="overall", **FAST).fit(X).labels_, clusters.labels)
    np.testing.assert_array_equal(loaded.predict(X), clusters.labels)
    assert (loaded.scale, loaded.n_clusters) == ("overall", 3)


def test_how_a_number_of_clusters_was_found_is_kept(small_features: Path) -> None:
    with open_features(small_features) as features:
        clusters, _ = fit_features(features, **FAST)
    found = clusters.diagnostics["number_of_clusters"]
    assert found["low"] <= found["chosen"] == 3 <= found["high"]
    assert (found["is_weak"], found["at_edge"], found["splits"]) == (False, False, {})
    assert clusters.levels.shape[1] == 2
    assert 3 in clusters.levels[:, 0]


def test_labels_and_paths_are_copied_but_never_used(small_features: Path, tmp_path: Path) -> None:
    with open_features(small_features) as features:
        with_labels, _ = fit_features(features, 3, **FAST)
        write_features(tmp_path / "bare.h5", features.array())
    with open_features(tmp_path / "bare.h5") as bare:
        without, _ = fit_features(bare, 3, **FAST)
    np.testing.assert_array_equal(with_labels.labels, without.labels)
    np.testing.assert_array_equal(with_labels.true_labels, features.labels)
    np.testing.assert_array_equal(with_labels.paths, features.paths)
    assert without.true_labels is None
    assert with_labels.provenance["backbone"] == "none"


def test_sparse_rows_are_clustered_as_they_are(tmp_path: Path) -> None:
    classes = np.arange(300) % 3
    X = sparse.csr_array(np.maximum(np.random.default_rng(0).normal(size=(300, 9)) + 8 * np.eye(3, 9)[classes] - 2, 0))
    sparse.save_npz(tmp_path / "x.npz", X)
    for method in ("cce", "kmeans"):
        with open_features(tmp_path / "x.npz") as features:
            clusters, _ = fit_features(features, 3, method=method, random_state=0)
        assert clustering_accuracy(classes, clusters.labels) > 0.95


def test_rows_beyond_the_most_to_learn_from_get_a_cluster(small_features: Path) -> None:
    for method in ("cce", "kmeans"):
        with open_features(small_features) as features:
            clusters, _ = fit_features(features, 3, method=method, max_rows=60, random_state=0)
        assert clustering_accuracy(features.labels, clusters.labels) > 0.95
        assert clusters.diagnostics["trained_rows"] == 60


@pytest.mark.parametrize("method", ["cce", "kmeans"])
def test_bad_data_are_our_errors_whatever_the_method(method: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    np.save(tmp_path / "few.npy", X)
    X[3, 1] = np.nan
    np.save(tmp_path / "nan.npy", X)
    with open_features(tmp_path / "few.npy") as few, pytest.raises(InputError, match=r"n_samples=30 .* n_clusters=31"):
        fit_features(few, 31, method=method)
    with open_features(tmp_path / "nan.npy") as bad, pytest.raises(InputError, match="row 3 contains NaN or infinity"):
        fit_features(bad, 3, method=method)


class TestFiles:
    def test_predicting_a_file_repeats_the_fit(self, small_features: Path, tmp_path: Path) -> None:
        clusters, (_, model) = fit_file(small_features, 3, **FAST)
        again, (written,) = predict_file(model, small_features, out=tmp_path / "again.h5")
        np.testing.assert_array_equal(again.labels, clusters.labels)
        np.testing.assert_array_equal(read_clusters(written).probabilities, clusters.probabilities)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"out": "small.h5", "force": True}, InputError),
            ({"out": "clusters.txt"}, InputError),
            ({"out": "there.h5"}, TargetExistsError),
            ({"out": "elsewhere.csv"}, TargetExistsError),
            ({"out": "nowhere/clusters.h5"}, FileError),
            ({"report": True}, TargetExistsError),
        ],
    )
    def test_what_cannot_be_written_is_refused_before_the_work(
        self, options: dict[str, Any], error: Any, small_features: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = small_features.parent
        for name in ("there.h5", "elsewhere.model.safetensors", "small.report.html"):
            (folder / name).write_text("precious")
        before = small_features.read_bytes()

        def work(*_: Any, **__: Any) -> None:
            raise AssertionError("the work has begun")

        monkeypatch.setattr("cceclust.clustering.fit_features", work)
        options = {name: folder / value if isinstance(value, str) else value for name, value in options.items()}
        with pytest.raises(error):
            fit_file(small_features, 3, **options)
        assert small_features.read_bytes() == before
        assert (folder / "there.h5").read_text() == "precious"


def test_scores_use_labels_and_the_features_beside_the_clusters(small_features: Path, tmp_path: Path) -> None:
    _, (path, _) = fit_file(small_features, 3, **FAST)
    scores = score_file(path)
    assert scores.with_labels.accuracy == 1
    assert scores.without_labels.modularity > 0.6
    np.save(tmp_path / "found.npy", np.repeat([0, 1, 1], 40))
    other = score_file(tmp_path / "found.npy", labels=small_features, features=small_features)
    assert other.with_labels.accuracy == pytest.approx(2 / 3)
    assert other.without_labels.modularity < scores.without_labels.modularity
