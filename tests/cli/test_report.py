"""``cceclust report`` writes the page it was asked for, and nothing over another."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import Clusters, write_clusters


@pytest.fixture
def clusters(tmp_path, monkeypatch):
    """Write a small cluster file into the current folder."""
    monkeypatch.chdir(tmp_path)
    write_clusters("a.clusters.h5", Clusters(np.array([0, 1, 1, 0]), true_labels=np.array([5, 6, 6, 6])))
    return tmp_path


def test_it_writes_the_page_and_says_where(clusters, capsys):
    assert run(["report", "a.clusters.h5", "-o", "page.html"]) == 0
    assert "page.html" in capsys.readouterr().out
    assert "75.0" in (clusters / "page.html").read_text("utf-8")


def test_by_default_the_page_has_the_name_of_the_clusters_and_lies_beside_them(clusters, capsys):
    (clusters / "folder").mkdir()
    (clusters / "a.clusters.h5").rename(clusters / "folder" / "b.h5")
    write_clusters("a.clusters.h5", Clusters(np.array([0, 1, 1, 0])))
    for name in ("a.clusters.h5", "folder/b.h5"):
        assert run(["report", name, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert (clusters / "a.report.html").is_file()
    assert (clusters / "folder" / "b.report.html").is_file()


@pytest.mark.parametrize("name", ["a.clusters.h5", "a.h5", "page.txt"])
def test_only_pages_are_written(clusters, capsys, name):
    before = (clusters / "a.clusters.h5").read_bytes()
    assert run(["report", "a.clusters.h5", "--out", name, "--force"]) == 2
    assert ".html" in capsys.readouterr().err
    assert (clusters / "a.clusters.h5").read_bytes() == before
