"""The map puts every point where it belongs, in the colour of its group."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from cceclust.report.palette import cluster_colour, rgb
from cceclust.report.point_map import HEIGHT, WIDTH, codes_of_classes, name_places, project, render
from cceclust.report.summary import summarize

from .conftest import make_clustering


def test_points_are_drawn_at_their_places_in_their_colours():
    places = np.array([[0.25, 0.5], [0.75, 0.5], [0.5, 0.1]])
    picture = Image.open(io.BytesIO(render(places, np.array([0, 1, -1])))).convert("RGBA")
    assert picture.size == (WIDTH, HEIGHT)
    for (x, y), position in zip(places, (0, 1, -1), strict=True):
        red, green, blue, opacity = picture.getpixel((int(x * WIDTH), int(y * HEIGHT)))
        assert (red, green, blue) == rgb(cluster_colour(position))
        assert opacity > 150
    assert picture.getpixel((WIDTH // 2, HEIGHT // 2))[3] == 0


def test_where_points_lie_on_each_other_the_majority_gives_the_colour():
    places = np.full((5, 2), 0.5)
    picture = Image.open(io.BytesIO(render(places, np.array([3, 3, 1, 3, 1])))).convert("RGBA")
    assert picture.getpixel((WIDTH // 2, HEIGHT // 2))[:3] == rgb(cluster_colour(3))


def test_every_place_is_inside_the_picture_and_clusters_lie_apart():
    summary = summarize(make_clustering(500, 3), None)
    projection = project(summary, None)
    assert projection is not None
    assert projection.places.min() > 0
    assert projection.places.max() < 1
    centres = np.array([projection.places[summary.codes == code].mean(axis=0) for code in range(3)])
    assert min(np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2))) > 0.2


def test_two_clusters_have_one_component_and_the_caption_says_so():
    projection = project(summarize(make_clustering(100, 2), None), None)
    assert projection is not None
    assert "the height is random" in projection.origin
    assert np.ptp(projection.places[:, 1]) > 0.5


def test_a_class_has_the_colour_of_its_cluster():
    clusters = make_clustering(300, 4)
    clusters.true_labels = np.array([f"class {(label + 1) % 4}" for label in clusters.true_labels])
    clusters.true_labels[0] = ""
    summary = summarize(clusters, None)
    codes, names = codes_of_classes(summary, clusters.true_labels)
    assert names == ["class 1", "class 2", "class 3", "class 0"]
    assert codes[0] == -1
    assert all(names[code] == label for code, label in zip(codes[1:], clusters.true_labels[1:], strict=True))


def test_names_do_not_overlap():
    places = np.random.default_rng(0).uniform(0.4, 0.6, (600, 2))
    named = name_places(places, np.arange(600) % 6, longest=12)
    assert len(named) >= 4
    tops = sorted(top for _, _, top in named)
    assert min(np.diff(tops)) > 0.03
