"""Typical rows are sure, doubtful ones are not, and each is named once."""

from __future__ import annotations

import re

import numpy as np

from cceclust.io import Clusters
from cceclust.report.placement import Placement
from cceclust.report.summary import summarize
from cceclust.report.telling_rows import telling_rows


def make_clusters(n_rows=8, **columns):
    confidence = np.linspace(0.9, 0.55, n_rows)
    return Clusters(np.zeros(n_rows, int), np.stack([confidence, 1 - confidence, 0 * confidence], axis=1), **columns)


def names_in(html):
    return re.findall(r"row \d+", html.partition("Most doubtful rows")[0])


def test_the_surest_and_the_least_sure_are_listed():
    html = telling_rows(summarize(make_clusters(), None), None)
    assert names_in(html) == ["row 0", "row 1", "row 2", "row 7", "row 6", "row 5"]
    doubtful = html.partition("Most doubtful rows")[2]
    assert re.findall(r"row \d+", doubtful)[:2] == ["row 7", "row 6"]
    first = re.search(r"row 7.*?</tr>", doubtful).group()
    assert "0.55" in first
    assert "0.45" in first


def test_a_small_cluster_names_each_row_once():
    assert names_in(telling_rows(summarize(make_clusters(3), None), None)) == ["row 0", "row 1", "row 2"]


def test_of_equally_sure_rows_the_least_outlying_is_typical():
    clusters = make_clusters(outlier_scores=np.linspace(3, 1, 8))
    clusters.probabilities[:] = 0.8, 0.2, 0
    assert names_in(telling_rows(summarize(clusters, None), None))[:2] == ["row 7", "row 6"]


def test_of_equally_sure_rows_one_among_other_clusters_is_doubtful_and_only_rows_of_the_map_are_listed():
    clusters = Clusters(np.array([0, 0, 0, 0, 1, 1]), np.eye(2)[[0, 0, 0, 0, 1, 1]])
    neighbors = np.array([[1, 3], [0, 3], [3, 4], [1, 0], [2, 3]])
    html = telling_rows(summarize(clusters, None), Placement(np.arange(5), neighbors, np.zeros((5, 2))))
    assert names_in(html) == ["row 0", "row 1", "row 2", "row 3", "row 4"]
    assert re.findall(r"row \d+", html.partition("Most doubtful rows")[2])[:2] == ["row 4", "row 2"]


def test_rows_have_the_names_of_their_files_without_folders():
    html = telling_rows(
        summarize(make_clusters(paths=np.array([f"/home/ann/{row}.txt" for row in range(8)])), None), None
    )
    assert "0.txt" in html
    assert "ann" not in html


def test_names_of_rows_come_before_their_paths():
    clusters = make_clusters(paths=np.array([f"{row}.txt" for row in range(8)]))
    clusters.names = np.array([f"cell/{row}" for row in range(7)] + [""])
    html = telling_rows(summarize(clusters, None), None)
    assert "cell/0" in html
    assert "row 7" in html
    assert "0.txt" not in html


def test_without_probabilities_nothing_is_typical():
    assert telling_rows(summarize(Clusters(np.zeros(5, int)), None), None) == ""


def test_many_clusters_are_folded():
    clusters = Clusters(np.arange(60) % 20, np.eye(20)[np.arange(60) % 20])
    html = telling_rows(summarize(clusters, None), None)
    assert "<summary>Typical and doubtful rows of 20 clusters</summary>" in html
