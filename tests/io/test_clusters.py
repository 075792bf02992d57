import csv
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from cceclust.errors import InputError
from cceclust.io import Clusters, read_clusters, write_clusters

LABELS = np.array([1, 0, 1])
CLUSTERS = Clusters(
    LABELS,
    probabilities=np.array([[0.25, 0.75], [1.0, 0.0], [0.4, 0.6]], np.float32),
    true_labels=np.array(["dog", "cat", "dog"]),
    paths=np.array(["a,1.png", "b.png", "ü.png"]),
    outlier_scores=np.array([1.0, 2.5, 1.0]),
    levels=np.array([[2, 0.9], [5, 0.5]]),
    parameters={"n_clusters": np.int64(2), "prior": [0.5, 0.5]},
    diagnostics={"warnings": [], "seconds": 3.5, "candidates": {"graph": np.float32(0.5), "kmeans": float("nan")}},
    provenance={"features": Path("/home/ann/x.h5"), "backbone": "resnet50"},
)


def test_everything_comes_back_from_hdf5(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.h5", CLUSTERS)
    clusters = read_clusters(tmp_path / "c.h5")
    for name in ("labels", "probabilities", "true_labels", "paths", "outlier_scores", "levels"):
        np.testing.assert_array_equal(getattr(clusters, name), getattr(CLUSTERS, name))
    assert clusters.parameters == {"n_clusters": 2, "prior": [0.5, 0.5]}
    assert clusters.diagnostics == {"warnings": [], "candidates": {"graph": 0.5, "kmeans": None}}
    assert clusters.provenance == {"features": "x.h5", "backbone": "resnet50"}


def test_one_cluster_stays_a_matrix(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.h5", Clusters(np.zeros(3, int), probabilities=np.ones((3, 1)), levels=np.ones((0, 2))))
    clusters = read_clusters(tmp_path / "c.h5")
    assert clusters.probabilities is not None
    assert clusters.levels is not None
    assert (clusters.probabilities.shape, clusters.levels.shape) == ((3, 1), (0, 2))


def test_what_only_version_0_2_wrote_is_ignored(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.h5", CLUSTERS)
    with h5py.File(tmp_path / "c.h5", "a") as file:
        file.update({"losses": [1.0, np.nan], "k_ks": [2, 3], "k_level_labels": [[0]], "loss_curves": np.ones((2, 1))})
    assert read_clusters(tmp_path / "c.h5").labels.tolist() == LABELS.tolist()


def test_labels_alone_are_enough(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.h5", Clusters(LABELS))
    clusters = read_clusters(tmp_path / "c.h5")
    assert clusters.probabilities is None
    assert clusters.parameters == {}


def test_csv_is_a_table_for_spreadsheets(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.csv", CLUSTERS)
    with (tmp_path / "c.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["row", "path", "label", "confidence", "outlier_score"],
            ["0", "a,1.png", "1", "0.75", "1"],
            ["1", "b.png", "0", "1", "2.5"],
            ["2", "ü.png", "1", "0.6", "1"],
        ]


KEPT = {"city": np.array(["=Bonn", "", "Ü"]), "obs/n": np.arange(3), "label": np.array([0.5, np.nan, 1]), "50%": LABELS}


def test_names_and_kept_columns_come_back_from_hdf5(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.h5", replace(CLUSTERS, names=np.array(["x", "y", "z"]), kept=KEPT))
    clusters = read_clusters(tmp_path / "c.h5")
    assert clusters.names is not None
    assert clusters.names.tolist() == ["x", "y", "z"]
    assert set(clusters.kept) == set(KEPT)
    for name, column in KEPT.items():
        np.testing.assert_array_equal(clusters.kept[name], column)


def test_tables_have_names_and_kept_columns(tmp_path: Path) -> None:
    named = replace(CLUSTERS, names=np.array(["x", "y", "-z"]), outlier_scores=np.ones(3), kept=KEPT)
    write_clusters(tmp_path / "c.csv", named)
    assert (tmp_path / "c.csv").read_text(encoding="utf-8").splitlines() == [
        "row,name,path,label,confidence,outlier_score,city,obs/n,kept_label,50%",
        '0,x,"a,1.png",1,0.75,1,\'=Bonn,0,0.5,1',
        "1,y,b.png,0,1,1,,1,nan,0",
        "2,'-z,ü.png,1,0.6,1,Ü,2,1.0,1",
    ]
    write_clusters(tmp_path / "c.parquet", named)
    table = pd.read_parquet(tmp_path / "c.parquet")
    assert list(table) == [
        "row",
        "name",
        "path",
        "label",
        "confidence",
        "outlier_score",
        *list(KEPT)[:2],
        "kept_label",
        "50%",
    ]
    assert table["name"].tolist() == ["x", "y", "-z"]
    assert table["city"].tolist() == ["=Bonn", "", "Ü"]
    np.testing.assert_array_equal(table["confidence"], np.array([0.75, 1, 0.6], np.float32))
    assert table["label"].tolist() == LABELS.tolist()


def test_standard_output_gets_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_clusters(tmp_path / "c.csv", CLUSTERS)
    write_clusters("-", CLUSTERS)
    assert capsys.readouterr().out == (tmp_path / "c.csv").read_text(encoding="utf-8")


def test_text_that_is_no_unicode_becomes_question_marks_in_parquet(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.parquet", replace(CLUSTERS, paths=np.array(["a\udcff.png", "b", "c"])))
    assert pd.read_parquet(tmp_path / "c.parquet")["path"][0] == "a?.png"


def test_npy_holds_the_labels(tmp_path: Path) -> None:
    write_clusters(tmp_path / "c.npy", CLUSTERS)
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), LABELS)


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match=r"true_labels have shape \(2,\), but there are 3 labels"):
        Clusters(LABELS, true_labels=np.array([0, 1]))
    with pytest.raises(InputError, match=r"labels have shape \(3, 1\)"):
        Clusters(LABELS[:, np.newaxis])


@pytest.mark.parametrize(("classes", "named"), [(["a", "b"], ["b", "", "a"]), ([3, 7], [7, -1, 3])])
def test_a_row_in_no_cluster_has_no_class(classes: list[object], named: list[object]) -> None:
    clusters = Clusters(np.array([1, -1, 0]), parameters={"classes": classes})
    assert clusters.named_labels.tolist() == named
