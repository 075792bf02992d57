"""Axes have round numbers and curves keep to the chart."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cceclust.io import KTable
from cceclust.report.charts import (
    HEIGHT,
    WIDTH,
    cluster_sizes,
    confidence_histogram,
    curve_path,
    loss_curves,
    numbers_of_clusters,
    ticks,
)
from cceclust.report.summary import summarize


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_ordered_and_inside(low, extent):
    chosen = ticks(low, low + extent)
    assert 2 <= len(chosen) <= 7
    assert chosen == sorted(chosen)
    slack = 1e-6 * max(1, abs(low), extent)
    assert all(low - slack <= tick <= low + extent + slack for tick in chosen)


def test_an_interrupted_curve_ends_where_it_stopped_and_stays_inside():
    path = curve_path(np.array([2.0, 1.0, np.nan, np.nan]), (1, 4), (1, 2))
    places = [tuple(map(float, pair.split(","))) for pair in path[1:].split()]
    assert places == [(0, 0), (pytest.approx(WIDTH / 3, abs=0.1), HEIGHT)]


def test_long_curves_are_thinned_but_keep_their_ends():
    path = curve_path(np.linspace(2, 1, 5000), (1, 5000), (1, 2))
    assert path.count(",") == 300
    assert path.startswith("M0.0,0.0")
    assert path.endswith(f"{WIDTH:.1f},{HEIGHT:.1f}")


def test_what_is_not_known_is_not_drawn(clustering):
    clustering.loss_curves = clustering.losses = clustering.probabilities = None
    summary = summarize(clustering, None)
    assert loss_curves(summary) == confidence_histogram(summary) == ""


def test_every_cluster_has_a_bar_as_long_as_it_is_large(clustering):
    summary = summarize(clustering, None)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", cluster_sizes(summary))]
    assert widths == pytest.approx(100 * summary.sizes / summary.sizes.max(), abs=0.06)


def test_numbers_of_clusters_are_drawn_with_the_chosen_one_marked(clustering):
    assert numbers_of_clusters(summarize(clustering, None)) == ""
    clustering.k_search = KTable(
        ks=np.array([3, 5, 7]),
        scores=np.array([0.2, 0.4, 0.0]),
        saved=np.zeros(3),
        levels=np.array([3, 5]),
        # A coarser level: clusters 0 to 2 are one part, the others one each.
        level_labels=np.array([np.maximum(clustering.labels - 2, 0), clustering.labels]),
        level_rows=np.arange(300),
    )
    clustering.diagnostics["number_of_clusters"] = "5 clusters (score 0.400)"
    card = numbers_of_clusters(summarize(clustering, None))
    assert "Chosen: 5 clusters (score 0.400)." in card
    assert f'd="M0.0,{HEIGHT / 2:.1f} {WIDTH / 2:.1f},0.0 {WIDTH:.1f},{HEIGHT:.1f}" class="curve"' in card
    assert f'd="M{WIDTH / 2:.1f},0V{HEIGHT}" class="chosen"' in card
    rows = re.findall(r"<tr><th scope=\"row\">part (\d)</th><td>([\d,]+)</td><td>(.*?)</td>", card)
    sizes = np.bincount(clustering.labels)
    assert [int(size) for _, size, _ in rows] == [sizes[:3].sum(), sizes[3], sizes[4]]
    assert [listed.count("%") for *_, listed in rows] == [3, 1, 1]
