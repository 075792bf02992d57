"""The map puts every point where it belongs, in the colour of its group."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
from PIL import Image

from cceclust.report import point_map as module
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR, rgb
from cceclust.report.pictures import ImageFinder, Pictures
from cceclust.report.placement import Placement
from cceclust.report.point_map import (
    HEIGHT,
    WIDTH,
    beside_small_groups,
    codes_of_classes,
    dense_places,
    map_data,
    name_places,
    point_map,
    render,
    short_names,
)
from cceclust.report.summary import summarize

from .conftest import make_clustering


def test_points_are_drawn_at_their_places_in_their_colours():
    places = np.array([[0.25, 0.5], [0.75, 0.5], [0.5, 0.1]])
    picture = Image.open(io.BytesIO(render(places, np.array([0, 1, 12])))).convert("RGBA")
    assert picture.size == (WIDTH, HEIGHT)
    for (x, y), colour in zip(places, (*CLUSTER_COLOURS[:2], NO_CLUSTER_COLOUR), strict=True):
        red, green, blue, opacity = picture.getpixel((int(x * WIDTH), int(y * HEIGHT)))
        assert (red, green, blue) == rgb(colour)
        assert opacity > 150
    assert picture.getpixel((WIDTH // 2, HEIGHT // 2))[3] == 0


def test_where_points_lie_on_each_other_the_majority_gives_the_colour():
    places = np.full((5, 2), 0.5)
    picture = Image.open(io.BytesIO(render(places, np.array([3, 3, 1, 3, 1])))).convert("RGBA")
    assert picture.getpixel((WIDTH // 2, HEIGHT // 2))[:3] == rgb(CLUSTER_COLOURS[3])


def test_a_class_has_the_colour_of_its_cluster():
    clusters = make_clustering(300, 4)
    clusters.true_labels = np.array([f"class {(label + 1) % 4}" for label in clusters.true_labels])
    clusters.true_labels[0] = ""
    summary = summarize(clusters, None)
    codes, names = codes_of_classes(summary, clusters.true_labels)
    assert names == ["class 1", "class 2", "class 3", "class 0"]
    assert codes[0] == -1
    assert all(names[code] == label for code, label in zip(codes[1:], clusters.true_labels[1:], strict=True))


def test_a_name_is_where_most_points_of_its_group_are():
    generator = np.random.default_rng(0)
    crowd, others = generator.normal((0.7, 0.3), 0.01, (40, 2)), generator.uniform(0.1, 0.6, (60, 2))
    dense = dense_places(np.vstack([others, crowd]), np.repeat([0, 2], [0, 100]), 3)
    assert np.abs(dense[2] - (0.7, 0.3)).max() < 0.03
    assert np.isnan(dense[:2]).all()
    corners = np.array([[0.01, 0.01], [0.99, 0.99]])
    assert np.array_equal(dense_places(corners, np.arange(2), 2), corners)


def boxes_of(named, names, kind):
    letter, height, _ = module.NAME_SIZES[kind]
    chosen = [entry for entry in named if kind == "wide" or entry[3] == "narrow"]
    return [(x, y, letter * (len(names[code]) + 1.5), height) for code, x, y, _ in chosen]


def test_names_do_not_overlap_on_any_width():
    generator = np.random.default_rng(0)
    names = [f"cluster {code}" for code in range(60)]
    named = name_places(generator.uniform(0.02, 0.98, (60, 2)), generator.integers(1, 90, 60), names)
    assert len(named) > 30
    for kind in ("narrow", "wide"):
        boxes = boxes_of(named, names, kind)
        assert len(boxes) > 8
        for first in range(len(boxes)):
            for x, y, width, height in boxes[:first]:
                left, top, other_width, _ = boxes[first]
                assert abs(x - left) >= (width + other_width) / 2 or abs(y - top) >= 0.999 * height


def test_names_stand_beside_small_groups_and_in_large_ones():
    generator = np.random.default_rng(0)
    small, at_the_top = np.tile([[0.5, 0.5], [0.2, 0.01]], (20, 1)).reshape(20, 2, 2).transpose(1, 0, 2)
    places = np.vstack([small, at_the_top, generator.uniform(0.6, 0.9, (100, 2))])
    codes = np.repeat([0, 1, 2], [20, 20, 100])
    dense = np.array([[0.5, 0.5], [0.2, 0.01], [0.75, 0.75]])
    above, below, inside = beside_small_groups(dense, places, codes) - dense
    assert above[1] < 0 < below[1]
    assert not np.any(inside)
    assert above[0] == below[0] == 0


def test_empty_groups_and_groups_without_a_name_are_not_named():
    assert name_places(np.full((3, 2), 0.5), np.array([0, 5, 9]), ["a", "", "c"])[0][0] == 2
    assert len(name_places(np.full((3, 2), 0.5), np.array([0, 5, 9]), ["a", "", "c"])) == 1


def placement_of(n_rows):
    places = np.random.default_rng(0).uniform(size=(n_rows, 2))
    return Placement(np.arange(n_rows), np.zeros((n_rows, 1), int), places)


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_script_gets_every_point():
    clusters = make_clustering(50, 3, paths=np.array([f"{row}.txt" for row in range(50)]))
    summary, placement = summarize(clusters, None), placement_of(50)
    data = json.loads(map_data(summary, placement, None, None))
    assert np.abs(unpacked(data["x"], "<u2") / 65535 - placement.places[:, 0]).max() < 1e-5
    assert unpacked(data["clusters"], "<u2").tolist() == summary.codes.tolist()
    assert np.abs(unpacked(data["confidence"], "<u2") / 1000 - summary.confidence).max() < 1e-3
    assert data["names"][7] == "7.txt"
    assert data["titles"] == [summary.title(position) for position in range(3)]


def test_points_all_over_the_map_have_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_PICTURED", 100)
    summary, placement = summarize(make_clustering(3000, 3), None), placement_of(3000)
    pictures = Pictures(
        lambda row: np.full((9, 9, 3), row % 7, np.uint8) if row % 2 else None, "", ImageFinder(tmp_path)
    )
    data = json.loads(map_data(summary, placement, None, pictures))
    points = unpacked(data["pictured"], "<u4")
    assert (points % 2 == 1).all()
    assert 200 < len(points) <= 36 * 27
    assert len(np.unique((placement.places[points] * 6).astype(int), axis=0)) == 36
    sheet = Image.open(io.BytesIO(base64.b64decode(data["sheet"].partition(",")[2])))
    assert sheet.width == data["sheetColumns"] * data["sheetSide"] == data["sheetColumns"] * 9


def test_long_names_lose_their_beginning_and_stay_in_the_budget(monkeypatch):
    assert short_names(["a" * 64, "b" * 65 + ".png"]) == ["a" * 64, "…" + "b" * 59 + ".png"]
    monkeypatch.setattr(module, "MOST_BYTES_OF_NAMES", 1000)
    assert sum(len(name.encode()) for name in short_names(["é" * 50] * 20)) <= 1000


def test_without_a_placement_the_page_says_why():
    summary = summarize(make_clustering(20, 2), None)
    assert "features are missing" in point_map(summary, None, None, "features are missing")
    assert point_map(summary, None, None, "") == ""
