from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy import sparse

from cceclust.fit.head import Curves
from cceclust.io import Clusters, Model, write_clusters, write_features, write_model
from cceclust.io.description import describe


def test_features(small_features: Path) -> None:
    description = describe(small_features)
    assert description.kind == "features"
    assert description.bytes == small_features.stat().st_size
    facts = description.facts
    assert facts["shape"] == (120, 6)
    assert facts["dtype"] == "float32"
    assert (facts["labels"], facts["classes"], facts["smallest_class"]) == ("int64", 3, 40)
    assert facts["rows_with_nan_or_infinity"] == 0
    assert facts["duplicate_rows"] == 0
    assert description.provenance["backbone"] == "none"


@pytest.mark.parametrize("n_finite", [0, 299_997])
def test_rows_that_are_not_finite_are_counted(tmp_path: Path, n_finite: int) -> None:
    matrix = np.full((n_finite + 3, 2), np.nan, np.float32)
    matrix[:n_finite] = np.random.default_rng(0).normal(size=(n_finite, 2))
    matrix[-1, 0] = np.inf
    write_features(tmp_path / "x.h5", matrix)
    facts = describe(tmp_path / "x.h5").facts
    assert facts["rows_with_nan_or_infinity"] == 3
    assert facts["constant_columns"] == 0


def test_constant_columns_and_duplicates(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 4))
    matrix[:, 2] = 7
    matrix[[10, 20, 30]] = matrix[0]
    np.save(tmp_path / "x.npy", matrix)
    facts = describe(tmp_path / "x.npy").facts
    assert facts["constant_columns"] == 1
    assert facts["duplicate_rows"] == 3
    assert facts["labels"] is None


def test_another_dataset_of_any_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros((3, 2)), b=np.zeros((4, 2)), names=np.array(["x", "y", "x", "z"]))
    facts = describe(tmp_path / "x.npz", dataset="b", labels_dataset="names").facts
    assert facts["shape"] == (4, 2)
    assert (facts["labels"], facts["classes"]) == ("text", 3)


def test_clusters(tmp_path: Path) -> None:
    clusters = Clusters(
        np.array([0, 0, 2]),
        probabilities=np.full((3, 3), 1 / 3),
        parameters={"n_clusters": 3},
        diagnostics={"modularity": 0.5},
        provenance={"features": "x.h5"},
    )
    write_clusters(tmp_path / "c.h5", clusters)
    description = describe(tmp_path / "c.h5")
    assert description.kind == "clusters"
    facts = description.facts
    assert (facts["samples"], facts["clusters"], facts["modularity"]) == (3, 2, 0.5)
    assert description.provenance == {"features": "x.h5"}


def test_model(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", Model(np.zeros((3, 5), np.float32), np.zeros(3, np.float32), {"a": 1}))
    description = describe(tmp_path / "m.safetensors")
    assert description.kind == "model"
    expected = {"clusters": 3, "features": 5, "borders": "linear", "parameters": {"a": 1}}
    assert description.facts == expected
    curves = Curves(np.ones((1, 5)), np.ones(1), np.ones((3, 1)))
    write_model(tmp_path / "m.safetensors", Model(np.zeros((3, 5)), np.zeros(3), curves=curves), force=True)
    assert describe(tmp_path / "m.safetensors").facts["borders"] == "curved"


def test_safetensors_that_are_no_model_are_features(tmp_path: Path) -> None:
    save_file({"embedding": np.eye(3)}, tmp_path / "x.safetensors", {"note": '"format":"cceclust-model"'})
    assert describe(tmp_path / "x.safetensors").kind == "features"


def test_a_column_that_dominates_is_named(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 5))
    write_features(tmp_path / "alike.h5", X)
    assert describe(tmp_path / "alike.h5").facts["columns_in_different_units"] is None
    write_features(tmp_path / "unlike.h5", X * [1, 1, 500, 1, 1])
    assert describe(tmp_path / "unlike.h5").facts["columns_in_different_units"] == "column 2 is the widest"


def test_tables_and_sparse_matrices(tmp_path: Path) -> None:
    rows = "".join(f"{row},{row % 7},{row / 3}\n" for row in range(50))
    (tmp_path / "x.csv").write_text("customer,visits,sum\n" + rows)
    facts = describe(tmp_path / "x.csv").facts
    assert facts["columns"] == "visits, sum"
    assert facts["notes"] == "customer numbers the rows, so it is used as the row id, not as a feature"
    sparse.save_npz(tmp_path / "x.npz", sparse.eye_array(5, format="csr"))
    assert describe(tmp_path / "x.npz").facts["duplicate_rows"] == 0
