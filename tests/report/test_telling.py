"""The most confident rows come first, the least confident last, and each is shown once."""

from __future__ import annotations

import re

import numpy as np

from cceclust.io import Clusters
from cceclust.report.summary import summarize
from cceclust.report.telling import telling_images, telling_rows


def make_clusters(n_rows=8, **columns):
    confidence = np.linspace(0.9, 0.55, n_rows)
    return Clusters(np.zeros(n_rows, int), np.stack([confidence, 1 - confidence, 0 * confidence], axis=1), **columns)


def names_in(html):
    return re.findall(r"row \d+", html.partition("Least confident rows of all")[0])


def test_the_most_and_the_least_confident_are_listed():
    html = telling_rows(summarize(make_clusters()))
    assert names_in(html) == ["row 0", "row 1", "row 2", "row 7", "row 6", "row 5"]
    doubtful = html.partition("Least confident rows of all")[2]
    assert re.findall(r"row \d+", doubtful)[:2] == ["row 7", "row 6"]
    first = re.search(r"row 7.*?</tr>", doubtful).group()
    assert "0.55" in first
    assert "0.45" in first


def test_rows_have_their_names_or_those_of_their_files_without_folders():
    clusters = make_clusters(paths=np.array([f"/home/ann/{row}.txt" for row in range(8)]))
    html = telling_rows(summarize(clusters))
    assert "0.txt" in html
    assert "ann" not in html
    clusters.names = np.array([f"cell/{row}" for row in range(7)] + [""])
    html = telling_rows(summarize(clusters))
    assert "cell/0" in html
    assert "row 7" in html
    assert "0.txt" not in html


def shown_in(html):
    return re.findall(r'alt="row (\d+)', html)


def test_each_image_is_shown_once_and_missing_ones_are_passed_over():
    pixels = np.zeros((64, 48, 3), np.uint8)
    summary = summarize(make_clusters(6))
    html = telling_images(summary, lambda row: None if row == 5 else pixels)
    assert shown_in(html) == ["0", "1", "2", "4", "3"]
    assert 'title="row 0, confidence 0.90"' in html
