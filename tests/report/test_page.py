"""The report shows what is known, leaves out what is not, and stays small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.files import Clusters, open_features, write_clusters
from cceclust.report import write_report

from .conftest import HOSTILE, make_clustering

VOID = ("meta", "link", "img", "col")


class Outline(HTMLParser):
    """Collects ids and checks that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(path: Path) -> Outline:
    """Parse a page."""
    parser = Outline()
    parser.feed(path.read_text("utf-8"))
    assert parser.open == []
    return parser


def test_a_full_clustering_shows_every_part_in_order(rich_clusters, tmp_path):
    write_report(rich_clusters, tmp_path / "report.html")
    page = outline(tmp_path / "report.html")
    assert page.ids == ["loss", "confidence", "map", "clusters", "classes", "confusion", "images", "origins"]


def test_labels_alone_make_a_page_too(tmp_path):
    write_report(Clusters(np.array(["b", "a", "", "a"])), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert outline(tmp_path / "report.html").ids == ["clusters"]
    assert "3 points in 2 clusters" in text
    assert "1 points have no cluster" in text


def test_nothing_from_a_file_becomes_markup(rich_clusters, tmp_path):
    write_report(rich_clusters, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert "script" not in outline(tmp_path / "report.html").tags


def test_fifty_thousand_points_stay_below_three_megabytes(tmp_path):
    write_report(make_clustering(50_000, 10), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("n_clusters", [1, 2, 13, 120])
def test_any_number_of_clusters_can_be_shown(tmp_path, n_clusters):
    write_report(make_clustering(400, n_clusters), tmp_path / "report.html")
    ids = outline(tmp_path / "report.html").ids
    assert {"clusters", "classes", "confusion"} <= set(ids)
    assert ("map" in ids) == (n_clusters > 1)


def test_empty_clusters_are_shown(tmp_path):
    probabilities = np.tile(np.float32([0.6, 0.3, 0.1]), (50, 1))
    write_report(Clusters(np.zeros(50, int), probabilities), tmp_path / "report.html")
    assert "50 points in 3 clusters, 2 of them empty" in (tmp_path / "report.html").read_text("utf-8")


def test_diverged_restarts_do_not_hide_the_others(tmp_path, clustering):
    clustering.losses = np.array([np.nan, 0.7, 0.4, np.inf])
    clustering.loss_curves[0] = np.nan
    write_report(clustering, tmp_path / "report.html")
    assert "Restart 3 (thick)" in (tmp_path / "report.html").read_text("utf-8")


def test_unlabelled_truth_gives_a_page_without_scores(tmp_path, clustering):
    clustering.true_labels = np.full(300, -1)
    write_report(clustering, tmp_path / "report.html")
    assert "confusion" not in outline(tmp_path / "report.html").ids


def test_the_same_clustering_gives_the_same_page(tmp_path, clustering):
    write_report(clustering, tmp_path / "first.html")
    write_report(clustering, tmp_path / "second.html")
    first, second = (tmp_path / name for name in ("first.html", "second.html"))
    assert first.read_bytes() == second.read_bytes()


def test_open_features_give_silhouette_map_and_paths(small_features, tmp_path):
    with open_features(small_features) as features:
        write_report(Clusters(features.labels), tmp_path / "report.html", features=features)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Silhouette" in text
    assert "principal components of the features" in text
    assert "None of the images could be opened" in text


def test_features_of_other_rows_are_refused(small_features, tmp_path, clustering):
    with open_features(small_features) as features, pytest.raises(InputError, match="120 rows, the clustering 300"):
        write_report(clustering, tmp_path / "report.html", features=features)
    assert not (tmp_path / "report.html").exists()


def test_nothing_is_overwritten_unless_forced(tmp_path, clustering):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(TargetExistsError):
        write_report(clustering, target)
    assert target.read_text() == "mine"
    write_report(clustering, target, force=True)
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_a_feature_file_is_not_taken_for_clusters(small_features, tmp_path):
    with pytest.raises(FileContentError, match="not a clusters file"):
        write_report(small_features, tmp_path / "report.html")


def test_columns_of_different_lengths_are_refused(tmp_path, clustering):
    clustering.true_labels = clustering.true_labels[:-1]
    with pytest.raises(InputError, match="299"):
        write_clusters(tmp_path / "damaged.h5", clustering)
    with pytest.raises(InputError, match="299"):
        write_report(clustering, tmp_path / "report.html")


HOSTILE_TEXTS = [
    "</script><script>alert(1)</script>",
    '" onerror="alert(1)',
    "' onload='alert(1)",
    "<img src=x onerror=alert(1)>",
    "<!-- ",
    "]]>",
    "&lt;b&gt;",
    "\x1b[2J\x1b]0;title\x07",
    "\x00\x08\x7f\x85\x9b31m",
    "\u202egpj.exe\u202c \u2066x\u2069 \u200f \u061c",
    "line\u2028separator\u2029",
    "half \udce9 of a character",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_of_others_is_only_shown(tmp_path, clustering, text):
    clustering.true_labels = np.array([text, "cat", "dog", "owl", "cow"])[clustering.true_labels]
    clustering.paths = np.array([f"{text}/{row}.png" for row in range(300)])
    clustering.parameters = {"method": text, text: text, "nested": [{text: text}]}
    clustering.diagnostics = {"warnings": [text], text: 1}
    clustering.provenance = {"features": text, "backbone": text}
    write_report(clustering, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", page)
    reader = HTMLParser()
    tags, attributes = set(), set()

    def note(tag, pairs):
        tags.add(tag)
        attributes.update(name for name, _ in pairs)

    reader.handle_starttag = note
    reader.feed(page)
    assert tags.isdisjoint({"script", "iframe", "object", "embed", "base", "form"})
    assert not [name for name in attributes if name.startswith("on")]


def test_machine_paths_stay_at_home_unless_asked(tmp_path, clustering):
    clustering.parameters = {"init": "/home/ann/secret project/weights.pth", "run": "C:\\Users\\ann\\run"}
    clustering.provenance = {"features": "/home/ann/secret project/x.h5", "images": ["/home/ann/photos"]}
    write_report(clustering, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "/home" not in page
    assert "Users" not in page
    assert "weights.pth" in page
    write_report(clustering, tmp_path / "report.html", force=True, full_paths=True)
    assert "/home/ann/secret project/weights.pth" in (tmp_path / "report.html").read_text("utf-8")
    write_clusters(tmp_path / "c.h5", clustering)
    assert b"/home" not in (tmp_path / "c.h5").read_bytes()
    write_clusters(tmp_path / "c.h5", clustering, force=True, full_paths=True)
    assert b"/home/ann/photos" in (tmp_path / "c.h5").read_bytes()
