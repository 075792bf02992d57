"""Text that others wrote steers no terminal and no spreadsheet, and gives away no folders."""

import re

import pytest

from cceclust.text import as_cell, from_cell, printable, without_folders

DANGEROUS = [chr(code) for code in (*range(10), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F)]
DANGEROUS += [chr(code) for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDCE9, 0xFEFF)]


@pytest.mark.parametrize("character", DANGEROUS, ids=lambda character: f"{ord(character):04x}")
def test_what_could_steer_a_terminal_is_replaced(character: str) -> None:
    assert printable(f"a{character}b") == "a\ufffdb"


def test_plain_text_is_left_alone() -> None:
    text = "é ü 漢字 🐈 1\N{NARROW NO-BREAK SPACE}% − × …\nline"
    assert printable(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "'=1", "''@x", "cat", "'cat", "", "a=b"])
def test_cells_are_no_formulas_and_come_back(text: str) -> None:
    assert not re.match(r"[=+\-@\t\r]", as_cell(text))
    assert from_cell(as_cell(text)) == text


def test_numbers_are_no_formulas() -> None:
    assert as_cell(-1) == -1


def test_paths_are_shortened_wherever_they_stand() -> None:
    value = {"a": ["/x/y.h5", {"b": "C:\\x\\y.h5"}], "c": "relative/y.h5", "d": 3, "e": None, "f": "/"}
    assert without_folders(value) == {"a": ["y.h5", {"b": "y.h5"}], "c": "relative/y.h5", "d": 3, "e": None, "f": "/"}
