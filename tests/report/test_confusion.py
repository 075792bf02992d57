"""Matrices count neighbours and classes, and name the largest mistakes first."""

from __future__ import annotations

import re

import numpy as np
from report_samples import make_clustering

from cceclust.io import Clusters
from cceclust.report.confusion import class_confusion, neighbor_confusion, neighbor_shares
from cceclust.report.placement import Placement
from cceclust.report.summary import summarize

CODES = np.array([0, 0, 0, 1, 1, 2, -1])
NEIGHBORS = np.array([[1, 2], [0, 3], [3, 4], [4, 2], [3, 2], [6, 6], [0, 1]])


def summary_of(codes, neighbors, **fields):
    placed = Placement(np.arange(len(codes)), neighbors, np.zeros((len(codes), 2)))
    return summarize(Clusters(codes, **fields), placement=placed)


def test_shares_are_those_of_a_loop():
    expected = np.zeros((3, 3))
    for row, code in enumerate(CODES):
        for other in CODES[NEIGHBORS[row]]:
            if code >= 0 and other >= 0:
                expected[code, other] += 1
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1)
    assert np.array_equal(neighbor_shares(CODES, NEIGHBORS, 3), expected)


def test_the_closest_pair_comes_first_and_cells_have_per_cent():
    html = neighbor_confusion(summary_of(CODES, NEIGHBORS, probabilities=np.full((7, 3), 1 / 3)))
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html)[:6] == ["50", "50", "·", "50", "50", "·"]
    pair = re.search(r'class="pair">.*?</tr>', html).group()
    assert re.findall(r"</i>(\d)", pair) == ["0", "1"]


def test_the_matrix_of_classes_has_their_counts_and_a_list_beside_a_picture():
    summary = summarize(make_clustering(300, 5))
    html = class_confusion(summary)
    counts = summary.scores.confusion
    assert re.findall(r"<td[^>]*>([^<]*)</td>", html) == [str(count) if count else "·" for count in counts.ravel()]
    large = summarize(make_clustering(3000, 30))
    mistakes = large.scores.confusion.copy()
    np.fill_diagonal(mistakes, 0)
    listed = re.findall(r"<td>(\d+)</td></tr>", class_confusion(large))
    assert int(listed[0]) == mistakes.max()
    summary = summarize(make_clustering(20, 2, true_labels=None))
    assert class_confusion(summary) == ""
