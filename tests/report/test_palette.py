"""The colours can be told apart, whatever the eyes and the page."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cceclust.report.palette import CLUSTER_COLOURS, colours_apart

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
# Ottosson (2020), "A perceptual color space for image processing".
TO_CONES = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
TO_OKLAB = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.808675766]]  # fmt: skip


def linear(colours):
    values = np.array([[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in colours]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("sight", SIGHTS)
def test_no_two_colours_look_alike(sight):
    seen = np.clip(linear(CLUSTER_COLOURS) @ np.array(SIGHTS[sight]).T, 0, 1)
    oklab = np.cbrt(seen @ np.array(TO_CONES).T) @ np.array(TO_OKLAB).T
    closest = min(np.linalg.norm(first - second) for first, second in itertools.combinations(oklab, 2))
    # The usual palettes of ten reach 0.01 to 0.05 here.
    assert closest > 0.11


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
