"""Figures are shown if they are known, and as large as they are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cceclust.report.drawing import CHART
from cceclust.report.figures import cluster_sizes, key_figures, numbers_of_clusters
from cceclust.report.summary import summarize


def test_known_figures_have_a_tile_and_unknown_ones_none(clustering):
    assert "Modularity" not in key_figures(summarize(clustering))
    clustering.diagnostics["modularity"] = 0.812
    html = key_figures(summarize(clustering))
    assert "<h3>Modularity</h3><b>0.812</b>" in html
    assert "Against the true labels" in html
    clustering.true_labels = None
    assert "Against the true labels" not in key_figures(summarize(clustering))


def test_every_cluster_has_a_bar_as_long_as_it_is_large(clustering):
    summary = summarize(clustering)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", cluster_sizes(summary))]
    assert widths == pytest.approx(100 * summary.sizes / summary.sizes.max(), abs=0.06)


def test_numbers_of_clusters_are_a_curve_with_the_chosen_one_and_those_about_as_good(clustering):
    card = numbers_of_clusters(summarize(clustering))
    width, height = CHART
    x = {count: f"{width * count / 8:.1f}" for count in (2, 4, 5, 8)}
    # Of two clusterings with 5 clusters, the better one counts.
    curve = " ".join(f"{x[count]},{height * (1 - y):.1f}" for count, y in ((2, 0.3), (4, 0.8), (5, 0.9), (8, 0.5)))
    assert f'd="M{curve}" class="curve"' in card
    assert f'd="M{x[5]},0V{height}" class="chosen"' in card
    assert f'd="M{x[4]},0H{x[5]}V{height}H{x[4]}z" class="band"' in card
    assert "the chosen number, 5. Numbers from 4 to 5 (shaded)" in card
    assert "stands out" not in card


@pytest.mark.parametrize("facts", [None, "5 clusters", {}, {"chosen": "5", "low": np.nan, "high": True}])
def test_without_the_facts_about_the_number_the_page_is_whole(clustering, facts):
    clustering.diagnostics["number_of_clusters"] = facts
    card = numbers_of_clusters(summarize(clustering))
    assert "nan" not in card
    clustering.levels = None
    assert numbers_of_clusters(summarize(clustering)) == ""
