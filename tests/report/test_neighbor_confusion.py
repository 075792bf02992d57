"""The table of confused clusters counts neighbours, and names the closest pairs first."""

from __future__ import annotations

import re

import numpy as np

from cceclust.io import Clusters
from cceclust.report.neighbor_confusion import neighbor_confusion, neighbor_shares
from cceclust.report.placement import Placement
from cceclust.report.summary import summarize

CODES = np.array([0, 0, 0, 1, 1, 2, -1])
NEIGHBORS = np.array([[1, 2], [0, 3], [3, 4], [4, 2], [3, 2], [6, 6], [0, 1]])


def test_shares_are_those_of_a_loop():
    expected = np.zeros((3, 3))
    for row, code in enumerate(CODES):
        for other in CODES[NEIGHBORS[row]]:
            if code >= 0 and other >= 0:
                expected[code, other] += 1
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1)
    assert np.array_equal(neighbor_shares(CODES, NEIGHBORS, 3), expected)


def test_the_closest_pair_comes_first_and_cells_have_per_cent():
    summary = summarize(Clusters(CODES, np.full((7, 3), 1 / 3)), None)
    html = neighbor_confusion(summary, Placement(np.arange(7), NEIGHBORS, np.zeros((7, 2))))
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html)[:6] == ["50", "50", "·", "50", "50", "·"]
    pair = re.search(r'class="pair">.*?</tr>', html).group()
    assert re.findall(r"</i>(\d)", pair) == ["0", "1"]


def test_one_cluster_or_no_graph_gives_no_table():
    summary = summarize(Clusters(CODES), None)
    assert neighbor_confusion(summary, None) == ""
    single = summarize(Clusters(np.zeros(7, int)), None)
    assert neighbor_confusion(single, Placement(np.arange(7), NEIGHBORS, np.zeros((7, 2)))) == ""


def test_many_clusters_become_a_picture():
    codes = np.arange(90) % 30
    neighbors = (np.arange(90)[:, None] + [30, 60]) % 90
    summary = summarize(Clusters(codes), None)
    html = neighbor_confusion(summary, Placement(np.arange(90), neighbors, np.zeros((90, 2))))
    assert "of 30 clusters, as a picture" in html
    assert "No two clusters share more than 1 % of their neighbours" in html
