"""Clusters that share a colour lie apart."""

from __future__ import annotations

import numpy as np

from cceclust.report.palette import colours_apart


def closest_of_one_colour(places, colours):
    distances = np.linalg.norm(places[:, None] - places, axis=-1)
    return distances[(colours[:, None] == colours) & ~np.eye(len(places), dtype=bool)].min()


def test_few_clusters_have_the_colours_in_order_and_those_of_many_that_share_one_lie_apart():
    places = np.random.default_rng(0).uniform(size=(100, 2))
    assert colours_apart(places[:12], np.arange(12)).tolist() == list(range(12))
    # One of them is empty, and lies nowhere.
    places[3] = np.nan
    colours, in_order = colours_apart(places, np.arange(100)), np.arange(100) % 12
    assert np.bincount(colours, minlength=12).min() > 2
    there = np.arange(100) != 3
    apart = closest_of_one_colour(places[there], colours[there])
    assert apart > 0.15 > 5 * closest_of_one_colour(places[there], in_order[there])
