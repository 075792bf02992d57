import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cceclust.cli.console import print_error, print_json, print_warning, results
from cceclust.io import Clusters, write_clusters
from cceclust.io.label_files import read_label_file
from cceclust.text import as_cell, from_cell, printable, without_folders

DANGEROUS = [chr(code) for code in (*range(10), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F)]
DANGEROUS += [chr(code) for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDCE9, 0xFEFF)]


@pytest.mark.parametrize("character", DANGEROUS, ids=lambda character: f"{ord(character):04x}")
def test_nothing_that_steers_a_terminal_is_printed(character: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    text = f"a{character}b"
    table = Table("heading")
    table.add_row(Text(text))
    results().print(table)
    results().print(text, markup=False)
    print_error(text)
    print_warning(text)
    print_json({text: text})
    out, err = capsys.readouterr()
    assert character not in out + err
    assert json.loads(out[out.index("{") :]) == {text: text}


def test_colours_are_still_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    results().print("[bold]bold[/]")
    assert capsys.readouterr().out == "\x1b[1mbold\x1b[0m\n"


def test_plain_text_is_left_alone() -> None:
    text = "é ü 漢字 🐈 1\N{NARROW NO-BREAK SPACE}% − × …\nline"
    assert printable(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "'=1", "''@x", "cat", "'cat", "", "a=b"])
def test_cells_are_no_formulas_and_come_back(text: str) -> None:
    assert not re.match(r"[=+\-@\t\r]", as_cell(text))
    assert from_cell(as_cell(text)) == text


def test_tables_hold_no_formulas(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "@x", "cat"]
    paths = np.array(["+1.png", "-2.png", "3.png"])
    clusters = Clusters(np.array([0, 1, 2]), paths=paths, parameters={"classes": names})
    write_clusters(tmp_path / "c.csv", clusters)
    with (tmp_path / "c.csv").open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in cells if re.match(r"[=+\-@\t\r]", cell)]
    assert read_label_file(tmp_path / "c.csv", column="class").tolist() == names
    assert read_label_file(tmp_path / "c.csv", column="path").tolist() == ["+1.png", "-2.png", "3.png"]


def test_paths_are_shortened_wherever_they_stand() -> None:
    value = {"a": ["/x/y.h5", {"b": "C:\\x\\y.h5"}], "c": "relative/y.h5", "d": 3, "e": None, "f": "/"}
    assert without_folders(value) == {"a": ["y.h5", {"b": "y.h5"}], "c": "relative/y.h5", "d": 3, "e": None, "f": "/"}
