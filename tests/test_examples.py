"""The scripts of the gallery run, draw something, and have a small picture on its page."""

import re
from pathlib import Path

import few_labels
import pytest
import report_page
import unequal_sizes
import unknown_k

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "gallery.md").read_text("utf-8")


@pytest.mark.parametrize("example", [few_labels, unequal_sizes, unknown_k], ids=lambda module: module.__name__)
def test_examples_draw_a_picture(example, tmp_path, capsys):
    example.main(["--rows", "400", "--out", str(tmp_path / "picture.png")])
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*clusters:cceclust.errors.ClusteringWarning")  # so few rows leave doubts
def test_the_report_page_is_written(tmp_path, capsys):
    report_page.main(["--rows", "300", "--out", str(tmp_path / "page.html")])
    assert "ankle boot" in (tmp_path / "page.html").read_text("utf-8")
    assert "in the cluster of their class" in capsys.readouterr().out


def test_every_example_is_on_the_page_with_a_small_picture():
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert set(re.findall(r"examples/(\w+\.py)", PAGE)) == scripts
    pictures = [ROOT / "docs" / picture for picture in re.findall(r"\]\((gallery/[\w-]+\.png)\)", PAGE)]
    assert len(pictures) == len(scripts)
    for picture in pictures:
        assert picture.stat().st_size < 100_000
