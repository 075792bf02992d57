from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cceclust.errors import FileContentError, FileError
from cceclust.io import open_features

NUMBERS = {"height": [1.5, 2.25, -3e-7, 0.1], "weight": [1.0, 2.0, 3.0, 1e300]}
MATRIX = np.array(list(NUMBERS.values())).T
FRAME = pd.DataFrame({"id": ["007", "b", "c", "d"], "label": ["cat", "dog", "cat", ""], **NUMBERS, "age": [4, 5, 6, 7]})


def save_stream(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


SAVERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "x.csv": lambda frame, path: frame.to_csv(path, index=False),
    "semicolons.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "x.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "x.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=2),
    "x.feather": lambda frame, path: frame.to_feather(path),
    "stream.arrow": save_stream,
    "x.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize("name", SAVERS)
class TestEveryFormat:
    def test_columns_have_their_uses(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](FRAME, tmp_path / name)
        with open_features(tmp_path / name, keep=["age"]) as features:
            np.testing.assert_array_equal(features.array(), MATRIX)
            assert features.columns == ["height", "weight"]
            assert features.names is not None
            assert features.names.tolist() == ["007", "b", "c", "d"]
            assert features.labels is not None
            assert features.labels.tolist() == ["cat", "dog", "cat", ""]
            assert features.kept["age"].tolist() == [4, 5, 6, 7]
            np.testing.assert_array_equal(features.read([3, 0]), MATRIX[[3, 0]])

    def test_options_name_other_columns(self, tmp_path: Path, name: str) -> None:
        frame = FRAME.rename(columns={"id": "sample", "age": "group"})
        SAVERS[name](frame, tmp_path / name)
        options: dict[str, Any] = {"names_dataset": "sample", "labels_dataset": "group", "keep": ["label"]}
        with open_features(tmp_path / name, **options) as features:
            assert features.columns == ["height", "weight"]
            assert features.names is not None
            assert features.names[0] == "007"
            assert features.labels is not None
            assert features.labels.tolist() == [4, 5, 6, 7]
            assert features.kept["label"].tolist() == ["cat", "dog", "cat", ""]

    def test_columns_can_be_chosen(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](FRAME, tmp_path / name)
        with open_features(tmp_path / name, dataset="weight,height") as features:
            np.testing.assert_array_equal(features.array(), MATRIX[:, ::-1])

    def test_columns_of_text_are_named(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](FRAME.assign(city=["Bonn", "Kiel", "Rom", ""], street="x"), tmp_path / name)
        with pytest.raises(
            FileContentError,
            match=r"column 'city' holds text \('Bonn' in row 0\).*leave it out with --keep city --keep street",
        ):
            open_features(tmp_path / name)
        with open_features(tmp_path / name, keep=["city", "street"]) as features:
            assert features.shape == (4, 3)

    def test_missing_numbers_are_nan(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](pd.DataFrame({"a": [1.5, None, 3.0], "b": [1, 2, 3]}), tmp_path / name)
        with open_features(tmp_path / name) as features:
            np.testing.assert_array_equal(features.array(), [[1.5, 1], [np.nan, 2], [3, 3]])

    def test_what_is_not_there_is_said(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](FRAME, tmp_path / name)
        for option in ("dataset", "labels_dataset", "names_dataset"):
            with pytest.raises(FileContentError, match=r"no column 'size'; it has id, label, height, weight, age"):
                open_features(tmp_path / name, **{option: "size"})
        with pytest.raises(FileContentError, match="no column 'size'"):
            open_features(tmp_path / name, keep=["size"])

    def test_damage_is_one_error(self, tmp_path: Path, name: str) -> None:
        SAVERS[name](FRAME, tmp_path / name)
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"\xff" + content[1 : len(content) // 2] + b"\xfe")
        with pytest.raises(FileContentError, match=name):
            open_features(tmp_path / name)
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(FileContentError, match="is empty"):
            open_features(tmp_path / name)
        (tmp_path / name).unlink()
        with pytest.raises(FileError, match="there is no file"):
            open_features(tmp_path / name)


class TestSeparatedValues:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1: 3"),
            ("a,a\n1,2\n", "several columns of the name 'a'"),
            ("a,,c\n1,2,3\n", "column 2 has no name"),
            ("0.5,0.25\n1,2\n", "first line looks like a row of data"),
            ("3,7\n1,2\n", "first line looks like a row of data"),
            ("a,b\n", "not empty"),
            ('a,b\n"1,2\n', "damaged or not UTF-8 text of comma-separated values"),
            ("name\nx\n", "no column of features"),
        ],
    )
    def test_what_is_no_table(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises(FileContentError, match=said):
            open_features(tmp_path / "x.csv")

    @pytest.mark.parametrize("header", ["0,1", "1,2", "a,0"])
    def test_numbered_columns_are_a_header(self, tmp_path: Path, header: str) -> None:
        (tmp_path / "x.csv").write_text(f"{header}\n1,2\n3,4\n")
        with open_features(tmp_path / "x.csv") as features:
            assert features.array().tolist() == [[1, 2], [3, 4]]

    def test_a_first_column_without_a_name_has_the_row_names(self, tmp_path: Path) -> None:
        FRAME.set_index("id").rename_axis(None).drop(columns="label").to_csv(tmp_path / "x.csv")
        with open_features(tmp_path / "x.csv") as features:
            assert features.names is not None
            assert features.names[0] == "007"
            assert features.shape == (4, 3)

    def test_spellings_of_numbers(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text('\ufeffa,b\r\n" 1.5 ",NA\r\n\r\n-2E3,n/a\r\nnan,null\r\n')
        with open_features(tmp_path / "x.csv") as features:
            np.testing.assert_array_equal(features.array(), [[1.5, np.nan], [-2000, np.nan], [np.nan, np.nan]])
        (tmp_path / "x.csv").write_text("a,b\n1,10_000\n")
        with pytest.raises(FileContentError, match="column 'b' holds text"):
            open_features(tmp_path / "x.csv")

    def test_text_far_down_makes_a_column_of_text(self, tmp_path: Path) -> None:
        rows = "".join(f"{number:05},{number}\n" for number in range(5000))
        (tmp_path / "x.csv").write_text(f"code,a\n{rows}x,1\n")
        with open_features(tmp_path / "x.csv", keep=["code"]) as features:
            assert features.kept["code"][[0, 4999, 5000]].tolist() == ["00000", "04999", "x"]

    def test_kept_text_is_kept_as_it_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("a,zip,price,n,f\n1,01234,1.50,7,'=1\n2,50667,2.00,8,x\n")
        with open_features(tmp_path / "x.csv", keep=["zip", "price", "n", "f"]) as features:
            assert features.kept["zip"].tolist() == ["01234", "50667"]
            assert features.kept["price"].tolist() == ["1.50", "2.00"]
            assert features.kept["n"].tolist() == [7, 8]
            assert features.kept["f"].tolist() == ["=1", "x"]

    def test_the_options_that_would_work_are_told(self, tmp_path: Path) -> None:
        text = "".join(f"Ann {row},{'Peru' if row % 2 else 'New Zealand'},{row},{row}.5\n" for row in range(20))
        (tmp_path / "x.csv").write_text("customer,home country,a,b\n" + text)
        with pytest.raises(
            FileContentError,
            match=r"leave it out with --keep customer --keep 'home country', name the rows by it with --id",
        ):
            open_features(tmp_path / "x.csv")
        with open_features(tmp_path / "x.csv", names_dataset="customer", keep=["home country"]) as features:
            assert features.columns == ["b"]

    def test_whole_numbers_that_only_rise_are_row_names(self, tmp_path: Path) -> None:
        rows = [f"{row:04},{row * 3},{row % 7},{row / 3}\n" for row in range(50)]
        (tmp_path / "x.csv").write_text("customer_id,day,visits,sum\n" + "".join(rows))
        with open_features(tmp_path / "x.csv") as features:
            assert features.columns == ["visits", "sum"]
            assert features.names is not None
            assert features.names[7] == "0007"
            assert features.notes == [
                "customer_id numbers the rows, so it is used as the row id, not as a feature",
                "day numbers the rows, so it is no feature; --dataset can make it one",
            ]
        with open_features(tmp_path / "x.csv", dataset="day,visits") as features:
            assert features.columns == ["day", "visits"]
            assert features.notes == []
        (tmp_path / "x.csv").write_text("day\n" + "".join(f"{row}\n" for row in range(50)))
        with open_features(tmp_path / "x.csv") as features:
            assert features.columns == ["day"]

    def test_booleans_are_numbers(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("a,b\ntrue,1\nFalse,2\n")
        with open_features(tmp_path / "x.csv") as features:
            assert features.array().tolist() == [[1, 1], [0, 2]]

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"id,a\nx,1\ny,2\n")))
        with open_features("-") as features:
            assert features.array().tolist() == [[1], [2]]
            assert features.names is not None
            assert features.names.tolist() == ["x", "y"]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "standard input is empty"),
            (b"a\n\xff\n", "standard input is damaged or not UTF-8 text"),
            (b"a,a\n1,2\n", "- has several columns of the name 'a'"),
            (b"a,b\n1,x\n", "stdin: column 'b' holds text.*--keep b"),
            (b"a,b\n1,2\n3,\n5,oops\n", r"stdin: column 'b' holds text \('oops' in row 2\)"),
        ],
    )
    def test_standard_input_that_is_no_table(self, content: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        with pytest.raises(FileContentError, match=said):
            open_features("-")


class TestArrow:
    def test_types(self, tmp_path: Path) -> None:
        table = pa.table(
            {
                "small": pa.array([1.5, 2.5], pa.float32()),
                "flag": pa.array([True, None]),
                "decimal": pa.array([1, 2]).cast(pa.decimal128(22, 2)),
                "nothing": pa.nulls(2),
                "day": pa.array([0, 1], pa.date32()),
                "kind": pa.array(["a", None]).dictionary_encode(),
            }
        )
        pa.parquet.write_table(table, tmp_path / "x.parquet")
        with open_features(tmp_path / "x.parquet", keep=["day", "kind"]) as features:
            np.testing.assert_array_equal(features.array(), [[1.5, 1, 1, np.nan], [2.5, np.nan, 2, np.nan]])
            assert features.kept["day"].tolist() == ["1970-01-01", "1970-01-02"]
            assert features.kept["kind"].tolist() == ["a", ""]

    def test_narrow_numbers_stay_narrow(self, tmp_path: Path) -> None:
        pd.DataFrame({"a": np.ones(2, "f4"), "b": np.ones(2, "f4")}).to_parquet(tmp_path / "x.parquet")
        with open_features(tmp_path / "x.parquet") as features:
            assert features.dtype == np.float32

    @pytest.mark.parametrize("name", ["name", "label", "path"])
    def test_lists_are_no_names_labels_or_paths(self, name: str, tmp_path: Path) -> None:
        lists = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
        pa.parquet.write_table(pa.table({"a": [1.0, 2.0], name: lists}), tmp_path / "x.parquet")
        with pytest.raises(FileContentError, match=f"column '{name}' holds neither"):
            open_features(tmp_path / "x.parquet")

    @pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 3), pa.large_list(pa.float32())])
    def test_a_column_of_lists_is_the_matrix(self, tmp_path: Path, kind: Any) -> None:
        vectors = pa.array([[1, 2, 3], [4, 5, 6]], kind)
        pa.parquet.write_table(pa.table({"text": ["x", "y"], "n": [1, 2], "v": vectors}), tmp_path / "x.parquet")
        with open_features(tmp_path / "x.parquet", keep=["text"]) as features:
            assert features.array().tolist() == [[1, 2, 3], [4, 5, 6]]
            assert features.columns is None

    @pytest.mark.parametrize("vectors", [[[1.0], [1.0, 2.0]], [[1.0], None]])
    def test_lists_of_different_lengths(self, tmp_path: Path, vectors: Any) -> None:
        pa.parquet.write_table(pa.table({"v": vectors}), tmp_path / "x.parquet")
        with pytest.raises(FileContentError, match="lists in column 'v' differ in length"):
            open_features(tmp_path / "x.parquet")

    def test_what_is_neither_number_nor_text(self, tmp_path: Path) -> None:
        pa.parquet.write_table(pa.table({"a": [1], "s": [{"x": 1}]}), tmp_path / "x.parquet")
        with pytest.raises(FileContentError, match="column 's' holds"):
            open_features(tmp_path / "x.parquet")
        with pytest.raises(FileContentError, match="column 's' holds neither numbers nor text"):
            open_features(tmp_path / "x.parquet", keep=["s"])
        with open_features(tmp_path / "x.parquet", dataset="a") as features:
            assert features.shape == (1, 1)

    def test_dates_in_json_stay_as_they_are_spelled(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text('{"id": "2024-01-01", "v": [1, 2.5]}\n{"id": "2024-01-02", "v": [3, 4]}\n')
        with open_features(tmp_path / "x.jsonl") as features:
            assert features.array().tolist() == [[1, 2.5], [3, 4]]
            assert features.names is not None
            assert features.names.tolist() == ["2024-01-01", "2024-01-02"]
