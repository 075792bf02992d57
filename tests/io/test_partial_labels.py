"""Labels of some rows: found by number or by path, from tables, arrays and datasets; what fits no row is refused."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file

from cceclust.errors import FileContentError, FileError
from cceclust.io import Clusters, write_clusters
from cceclust.io.partial_labels import read_partial_labels, read_soft_labels

PATHS = np.array(["a.png", "b.png", "c.png", "d.png"])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "values", "classes"),
    [
        ("row,label\n2,dog\n0,cat\n", [0, -1, 1, -1], ["cat", "dog"]),
        ("label;row\n7;3\n4;1\n", [-1, 0, -1, 1], [4, 7]),
        ("path,label\nb.png,1\nd.png,0\n", [-1, 1, -1, 0], [0, 1]),
        ("row,path,label,confidence\n1,a.png,x,0.5\n", [-1, 0, -1, -1], ["x"]),
        ("row,label\n0,cat\n1,\n0,cat\n", [0, -1, -1, -1], ["cat"]),
        ("label\ncat\n\ndog\ncat\n", [0, -1, 1, 0], ["cat", "dog"]),
        ("name,class\n1st,cat\n2nd,\n3rd,dog\n4th,cat\n", [0, -1, 1, 0], ["cat", "dog"]),
        ("name,labels\n1st,cat\n2nd,\n3rd,dog\n4th,cat\n", [0, -1, 1, 0], ["cat", "dog"]),
        ("row,class,label\n2,dog,1\n0,cat,0\n", [0, -1, 1, -1], [0, 1]),
    ],
)
def test_tables_name_rows_by_number_or_by_path(tmp_path, text, values, classes):
    labels = read_partial_labels(write(tmp_path / "partial.csv", text), 4, paths=PATHS)
    assert labels.values.tolist() == values
    assert labels.classes.tolist() == classes
    assert labels.known.tolist() == [value >= 0 for value in values]


def test_arrays_and_datasets_hold_a_label_a_row(tmp_path, small_features):
    np.save(tmp_path / "labels.npy", [5, -1, 9])
    assert read_partial_labels(tmp_path / "labels.npy", 3).values.tolist() == [0, -1, 1]
    with h5py.File(small_features, "a") as file:
        file["few"] = np.where(np.arange(120) % 40 == 0, file["labels"][...], -1)
    labels = read_partial_labels("few", 120, features=small_features)
    assert labels.known.sum() == 3
    assert labels.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["obs/leiden_0.5", "/obs/leiden_0.5", "obs/kinds.csv"])
def test_a_dataset_may_have_a_dot_in_its_name_and_several_matrices_beside_it(tmp_path, name):
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["obsm/X_pca"], file["obsm/X_umap"] = np.zeros((3, 5)), np.zeros((3, 2))
        file[name] = [5, -1, 9]
    labels = read_partial_labels(name, 3, features=tmp_path / "cells.h5ad")
    assert labels.values.tolist() == [0, -1, 1]


@pytest.mark.parametrize("name", ["x.npz", "x.safetensors"])
def test_datasets_come_from_any_file_that_has_names(tmp_path, name):
    arrays = {"features": np.eye(3), "few_0.5": np.array([5, -1, 9]), "soft_0.5": np.full((3, 2), 0.5)}
    np.savez(tmp_path / name, **arrays) if name == "x.npz" else save_file(arrays, tmp_path / name)
    assert read_partial_labels("few_0.5", 3, features=tmp_path / name).values.tolist() == [0, -1, 1]
    assert read_soft_labels("soft_0.5", 3, features=tmp_path / name).values.tolist() == [[0.5, 0.5]] * 3


def test_a_file_comes_before_a_dataset_of_its_name(tmp_path, small_features, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File(small_features, "a") as file:
        file["few.csv"] = np.zeros(120, int)
    write(tmp_path / "few.csv", "row,label\n7,cat\n")
    assert read_partial_labels("few.csv", 120, features=small_features).classes.tolist() == ["cat"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,label\n4,cat\n", "labels row 4, but rows go from 0 to 3"),
        ("row,label\n-1,cat\n", "labels row -1, but rows go from 0 to 3"),
        ("row,label\n,cat\n", r"labels row \(empty\), but"),
        ("row,label\nfirst,cat\n", "labels row first, but rows go from 0 to 3"),
        ("path,label\nz.png,cat\n", r"labels path z\.png, but the features have no such path; theirs look like a\.png"),
        ("row,label\n0,cat\n0,dog\n", "gives row 0 two labels that differ"),
        ("row,kind\n0,cat\n", "has no column 'label'; it has kind"),
        ("row,label\n0,cat,3\n", "Row #2: Expected 2 columns, got 3"),
        ("row,label\n0,\n", "holds no label, only unknown ones"),
        ("label\ncat\ndog\n", "labels 2 rows, but there are 4"),
    ],
)
def test_tables_that_fit_no_rows_are_refused(tmp_path, text, message):
    with pytest.raises(FileContentError, match=message):
        read_partial_labels(write(tmp_path / "partial.csv", text), 4, paths=PATHS)


def test_paths_need_features_that_have_some(tmp_path):
    table = write(tmp_path / "partial.csv", "path,label\na.png,cat\n")
    with pytest.raises(FileContentError, match="the features have no paths; name them by row"):
        read_partial_labels(table, 4)


def test_a_name_that_is_neither_file_nor_dataset_is_refused(tmp_path, small_features):
    with pytest.raises(FileError, match="nowhere"):
        read_partial_labels("nowhere", 120, features=small_features)
    with pytest.raises(FileError, match=r"nowhere\.csv"):
        read_partial_labels(tmp_path / "nowhere.csv", 120, features=small_features)
    with pytest.raises(FileError, match=r"no file obs/nowhere_0\.5, and .*small\.h5 has no dataset .* it has features"):
        read_partial_labels("obs/nowhere_0.5", 120, features=small_features)
    with pytest.raises(FileError, match="nowhere"):
        read_soft_labels("nowhere", 120, features=small_features)
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(
        FileError, match=r"no file few, and .*x\.npy has no dataset of that name; it has \(3, 3\) float64"
    ):
        read_partial_labels("few", 3, features=tmp_path / "x.npy")


def test_soft_tables_name_their_classes_and_leave_other_rows_unknown(tmp_path):
    table = write(tmp_path / "soft.csv", "row,cat,dog\n3,0.25,0.75\n0,1,0\n")
    labels = read_soft_labels(table, 4)
    np.testing.assert_array_equal(labels.values[[0, 3]], [[1, 0], [0.25, 0.75]])
    assert labels.known.tolist() == [True, False, False, True]
    assert labels.classes.tolist() == ["cat", "dog"]
    twice = read_soft_labels(write(tmp_path / "twice.csv", "row,cat,dog\n1,,\n1,0.25,0.75\n1,0.25,0.75\n"), 2)
    np.testing.assert_array_equal(twice.values, [[np.nan, np.nan], [0.25, 0.75]])
    whole = read_soft_labels(write(tmp_path / "whole.csv", "cat,dog\n0.5,0.5\n1,0\n"), 2)
    assert whole.values.tolist() == [[0.5, 0.5], [1, 0]]


def test_soft_arrays_come_from_numpy_and_from_clusters(tmp_path, small_features):
    matrix = np.array([[0.5, 0.5], [0.1, 0.9]])
    np.save(tmp_path / "soft.npy", matrix)
    write_clusters(tmp_path / "old.h5", Clusters(np.array([0, 1]), matrix))
    for name in ("soft.npy", "old.h5"):
        labels = read_soft_labels(tmp_path / name, 2)
        np.testing.assert_array_equal(labels.values, matrix)
        assert labels.classes.tolist() == [0, 1]
    with h5py.File(small_features, "a") as file:
        file["beliefs"] = np.full((120, 3), 1 / 3)
    assert read_soft_labels("beliefs", 120, features=small_features).values.shape == (120, 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("soft.csv", "row,cat,dog\n9,1,0\n", "labels row 9, but rows go from 0 to 1"),
        ("soft.csv", "row,cat,dog\n1,1,0\n1,0,1\n", "gives row 1 two labels that differ"),
        ("soft.csv", "cat,dog\nmuch,little\n", "holds no numbers"),
        ("soft.csv", "cat,dog\n1,0\n", "expected a number for each class in each of 2 rows"),
        ("soft.npy", np.ones(2), r"shape \(2,\); expected a number for each class"),
        ("soft.txt", "1 0\n", "cannot read files that end in '.txt'; expected one of .h5"),
    ],
)
def test_soft_labels_that_fit_no_rows_are_refused(tmp_path, name, content, message):
    path = tmp_path / name
    if isinstance(content, str):
        write(path, content)
    else:
        np.save(path, content)
    with pytest.raises(FileContentError, match=message):
        read_soft_labels(path, 2)


def test_an_hdf5_file_without_soft_labels_says_what_it_has(small_features):
    with pytest.raises(FileContentError, match="has no dataset 'soft_labels'; it has"):
        read_soft_labels(small_features, 120)


def test_a_column_of_a_table_of_features_can_be_the_labels(tmp_path):
    table = write(tmp_path / "x.csv", "a,kind\n0.5,3\n1.5,\n2.5,7\n")
    labels = read_partial_labels("kind", 3, features=table)
    assert labels.values.tolist() == [0, -1, 1]
    assert labels.classes.tolist() == [3, 7]
