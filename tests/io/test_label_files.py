"""Labels are the same whichever file they come from, and a file without them says so."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from cceclust.errors import CceclustError, FileContentError, FileError
from cceclust.io import Clusters, write_clusters, write_features
from cceclust.io.partial_labels import read_label_file


def write_text(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_feature_file_gives_its_labels(small_features):
    assert read_label_file(small_features).tolist() == [0] * 40 + [1] * 40 + [2] * 40


def test_a_cluster_file_gives_true_labels_or_else_clusters(tmp_path):
    write_clusters(tmp_path / "with.h5", Clusters(np.array([1, 0]), true_labels=np.array(["cat", "dog"])))
    write_clusters(tmp_path / "without.h5", Clusters(np.array([1, 0])))
    assert read_label_file(tmp_path / "with.h5").tolist() == ["cat", "dog"]
    assert read_label_file(tmp_path / "without.h5").tolist() == [1, 0]
    assert read_label_file(tmp_path / "with.h5", column="labels").tolist() == [1, 0]


def test_a_categorical_column_of_anndata_is_read_by_name(tmp_path):
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["obs/cell_type/codes"] = [1, -1, 0]
        file["obs/cell_type/categories"] = ["B cell", "T cell"]
    assert read_label_file(tmp_path / "cells.h5ad", column="obs/cell_type").tolist() == ["T cell", "", "B cell"]


@pytest.mark.parametrize("labels", [np.array([2, 0, -1]), np.array(["x", "", "y"]), np.array([[2], [0], [1]])])
def test_numpy_files_hold_integers_or_strings(tmp_path, labels):
    np.save(tmp_path / "labels.npy", labels)
    assert read_label_file(tmp_path / "labels.npy").tolist() == labels.ravel().tolist()


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("3\n1\n\n2\n", [3, 1, -1, 2]),
        ("cat\n\ndog", ["cat", "", "dog"]),
        ("\ufeff1\r\n2\r\n", [1, 2]),
        ("1.000e+00\n2.000e+00\nnan\n", [1, 2, -1]),
        ("nan\nbaguette\n", ["nan", "baguette"]),
        ("01a\n02b\n", ["01a", "02b"]),
        ("a\x85b\nc\u2028d\n", ["a\x85b", "c\u2028d"]),
    ],
)
def test_text_files_hold_a_label_a_line(tmp_path, text, labels):
    assert read_label_file(write_text(tmp_path / "labels.txt", text)).tolist() == labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("row,path,label,confidence\n0,a.png,4,0.9\n1,b.png,5,0.8\n", [4, 5]),
        ("name;Label\nfirst;cat\nsecond;\n", ["cat", ""]),
        ("name\tlabels\nfirst\t1.0\nsecond\t\n", [1, -1]),
        ("name,class\nfirst,cat\nsecond,dog\n", ["cat", "dog"]),
        ("class,label\ncat,1\ndog,0\n", [1, 0]),
        ("class\ncat\ndog\n", ["cat", "dog"]),
        ("label\ncat\ndog\n", ["cat", "dog"]),
        ("species\n1\n2\n", [1, 2]),
        ("cat\ndog\n", ["cat", "dog"]),
        ("3\n\n4\n", [3, -1, 4]),
        ('name,label\n"Doe, J.",1\n', [1]),
        ('label\n"a\x85b"\n"two\nlines"\n', ["a\x85b", "two\nlines"]),
    ],
)
def test_tables_hold_a_column_of_labels(tmp_path, text, labels):
    assert read_label_file(write_text(tmp_path / "labels.csv", text)).tolist() == labels


def test_a_column_of_a_table_is_read_by_name(tmp_path):
    table = write_text(tmp_path / "labels.csv", "label,species\n0,cat\n1,dog\n")
    assert read_label_file(table, column="species").tolist() == ["cat", "dog"]


def test_what_write_clusters_wrote_comes_back_even_sorted_by_a_spreadsheet(tmp_path):
    labels = np.array([2, 0, 1, 0])
    write_clusters(tmp_path / "clusters.csv", Clusters(labels))
    header, *lines = (tmp_path / "clusters.csv").read_text("utf-8").splitlines()
    by_label = sorted(lines, key=lambda line: line.split(",")[1])
    sorted_table = write_text(tmp_path / "sorted.csv", "\n".join([header, *by_label]))
    assert read_label_file(tmp_path / "clusters.csv").tolist() == labels.tolist()
    assert read_label_file(sorted_table).tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"first,second\n1,2\n", "no labels; name them with --labels-dataset; it has first"),
        ("a.csv", b"row,label\n0,1\n1\n", "Row #3: Expected 2 columns, got 1"),
        ("a.csv", b"label\n\xff\n", "not UTF-8"),
        ("a.csv", b"label\n", r"labels of shape \(0,\)"),
        ("a.txt", b"\xff\xfe\xff", "not UTF-8"),
        ("a.npy", b"nonsense", "damaged"),
        ("a.h5", b"nonsense", "not an HDF5 file"),
        ("a.pkl", b"nonsense", "'.pkl'"),
        ("a.txt", b"", "empty"),
    ],
)
def test_a_file_without_labels_says_so(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_label_file(tmp_path / name)


def test_a_matrix_is_not_taken_for_labels(tmp_path):
    np.save(tmp_path / "matrix.npy", np.zeros((3, 2)))
    with pytest.raises(FileContentError, match=r"shape \(3, 2\)"):
        read_label_file(tmp_path / "matrix.npy")
    write_features(tmp_path / "unlabelled.h5", np.zeros((3, 2)))
    with pytest.raises(FileContentError, match="has no labels"):
        read_label_file(tmp_path / "unlabelled.h5")


@pytest.mark.parametrize(("name", "said"), [("a.npy", r"has no 'label'; it has \(1,\)"), ("a.txt", "without a name")])
def test_naming_a_column_where_there_are_none_is_an_error(tmp_path, name, said):
    np.save(tmp_path / "a.npy", [1])
    write_text(tmp_path / "a.txt", "1\n")
    with pytest.raises(CceclustError, match=said):
        read_label_file(tmp_path / name, column="label")
