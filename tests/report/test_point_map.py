"""The map puts every point where it belongs, in the colour of its group."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
from report_samples import HOSTILE, make_clustering

from cceclust.report import point_map as module
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR
from cceclust.report.placement import Placement
from cceclust.report.point_map import SIZE, codes_of_classes, dots_of, map_data, short_names
from cceclust.report.summary import summarize


def placement_of(n_rows):
    places = np.random.default_rng(0).uniform(size=(n_rows, 2))
    return Placement(np.arange(n_rows), np.zeros((n_rows, 1), np.int32), places)


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_every_point_is_drawn_once_at_its_place_in_its_colour():
    generator = np.random.default_rng(0)
    places, colours = generator.uniform(size=(50, 2)), generator.choice([*CLUSTER_COLOURS, NO_CLUSTER_COLOUR], 50)
    found = [
        (int(x), int(y), colour)
        for path, colour in re.findall(r'<path d="([^"]*)" stroke="([^"]*)"', dots_of(places, colours))
        for x, y in re.findall(r"M(\d+) (\d+)h0", path)
    ]
    expected = [
        (round(x * SIZE[0]), round(y * SIZE[1]), colour) for (x, y), colour in zip(places, colours, strict=True)
    ]
    assert sorted(found) == sorted(expected)


def test_a_class_has_the_colour_of_its_cluster():
    clusters = make_clustering(300, 4)
    clusters.true_labels = np.array([f"class {(label + 1) % 4}" for label in clusters.true_labels])
    clusters.true_labels[0] = ""
    codes, names = codes_of_classes(summarize(clusters), clusters.true_labels)
    assert names == ["class 1", "class 2", "class 3", "class 0"]
    assert codes[0] == -1
    assert all(names[code] == label for code, label in zip(codes[1:], clusters.true_labels[1:], strict=True))


def test_the_script_gets_every_point():
    clusters = make_clustering(50, 3, paths=np.array([f"{HOSTILE}{row}.txt" for row in range(50)]))
    placement = placement_of(50)
    summary = summarize(clusters, placement=placement)
    text = map_data(summary, placement, None, None)
    assert "<" not in text
    data = json.loads(text)
    assert np.abs(unpacked(data["x"], "<u2") / 65535 - placement.places[:, 0]).max() < 1e-5
    assert unpacked(data["clusters"], "<u2").tolist() == summary.codes.tolist()
    assert np.abs(unpacked(data["confidence"], "<u2") / 1000 - summary.confidence).max() < 1e-3
    assert data["names"][7] == "script>7.txt"
    assert data["titles"] == [summary.title(position) for position in range(3)]


def test_points_all_over_the_map_have_pictures():
    placement = placement_of(3000)
    summary = summarize(make_clustering(3000, 3), placement=placement)

    def picture_of(row):
        return np.full((9, 9, 3), row % 7, np.uint8) if row % 2 else None

    pictures = json.loads(map_data(summary, placement, None, picture_of))["pictures"]
    points = np.array([int(point) for point in pictures])
    assert (points % 2 == 1).all()
    assert 200 < len(points) <= 36 * 27
    assert len(np.unique((placement.places[points] * 6).astype(int), axis=0)) == 36
    assert all(picture.startswith("data:image/webp;base64,") for picture in pictures.values())


def test_long_names_lose_their_beginning_and_stay_in_the_budget(monkeypatch):
    assert short_names(["a" * 64, "b" * 65 + ".png"]) == ["a" * 64, "…" + "b" * 59 + ".png"]
    monkeypatch.setattr(module, "MOST_BYTES_OF_NAMES", 1000)
    assert sum(len(name.encode()) for name in short_names(["é" * 50] * 20)) <= 1000
