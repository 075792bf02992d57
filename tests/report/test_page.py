"""The report shows what is known, leaves out what is not, stays small, and trusts no text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report_samples import HOSTILE, make_clustering

from cceclust.errors import InputError, TargetExistsError
from cceclust.io import Clusters, open_features, write_clusters, write_features
from cceclust.report import write_report
from cceclust.report.placement import Placement

VOID = ("meta", "link", "img")


class Outline(HTMLParser):
    """Collects ids, tags and attributes, and checks that every element is closed."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page.read_text("utf-8"))
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def target(tmp_path):
    return tmp_path / "report.html"


def test_a_full_clustering_shows_every_part_in_order(rich_clusters, target):
    write_report(rich_clusters, target)
    first = ["map", "map-data", "images", "clusters", "classes", "neighbours", "confusion"]
    assert Outline(target).ids == [*first, "number-of-clusters", "confidence", "origins"]
    text = target.read_text("utf-8")
    assert HOSTILE not in text
    assert text.count("<script") == 2
    assert text.index("graph</th><td>0.812") < text.index("K-means</th><td>0.7")


def test_labels_alone_make_a_page_too(target):
    write_report(Clusters(np.array(["b", "a", "", "a"])), target)
    text = target.read_text("utf-8")
    assert Outline(target).ids == ["map", "clusters"]
    assert "--features FILE" in text
    assert "3 points in 2 clusters" in text
    assert "Points without a cluster are left out: 1." in text


def test_many_points_with_long_names_and_images_stay_below_three_megabytes(target, tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    # Smooth patches, as in photographs.
    coarse = generator.integers(0, 255, (50, 6, 6, 3)).astype(np.uint8)
    patches = [np.asarray(Image.fromarray(patch).resize((80, 80))) for patch in coarse]
    placed = Placement(np.arange(20_000), np.zeros((20_000, 15), np.int32), generator.uniform(size=(20_000, 2)))
    monkeypatch.setattr("cceclust.report.page.place_rows", lambda *_, **__: placed)
    monkeypatch.setattr("cceclust.report.page.find_pictures", lambda *_: lambda row: patches[row % 50])
    names = np.array([f"{row}{'é' * 90}" for row in range(20_001)])
    write_features(tmp_path / "x.h5", generator.normal(size=(20_001, 2)).astype(np.float32))
    write_report(make_clustering(20_001, 60, paths=names), target, features=tmp_path / "x.h5")
    text = target.read_text("utf-8")
    assert "20,000 of 20,001 points" in text
    assert '"pictures":' in text
    assert 1_000_000 < target.stat().st_size < 3_000_000


@pytest.mark.parametrize("n_clusters", [1, 2, 13, 120])
def test_any_number_of_clusters_can_be_shown(tmp_path, target, n_clusters):
    clusters = make_clustering(400, n_clusters, provenance={"features": "x.h5"})
    write_features(tmp_path / "x.h5", np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32))
    write_clusters(tmp_path / "x.clusters.h5", clusters)
    write_report(tmp_path / "x.clusters.h5", target)
    ids = Outline(target).ids
    assert {"map", "rows", "clusters", "classes", "confusion"} <= set(ids)
    assert ("neighbours" in ids) == (n_clusters > 1)


def test_empty_clusters_are_shown_and_unknown_truth_is_not_scored(target):
    probabilities = np.tile(np.float32([0.6, 0.3, 0.1]), (50, 1))
    write_report(Clusters(np.zeros(50, int), probabilities, true_labels=np.full(50, -1)), target)
    assert "50 points in 3 clusters, 2 of them empty" in target.read_text("utf-8")
    assert "confusion" not in Outline(target).ids


def test_open_features_give_silhouette_map_modularity_and_paths(small_features, target):
    with open_features(small_features) as features:
        write_report(Clusters(features.labels), target, features=features)
    text = target.read_text("utf-8")
    assert "Silhouette" in text
    assert "Modularity" in text
    assert "120 points. Nearest neighbours" in text
    assert "None of the images could be opened" in text


def test_features_of_other_rows_are_refused(small_features, target, clustering):
    with open_features(small_features) as features, pytest.raises(InputError, match="120 rows, the clustering 300"):
        write_report(clustering, target, features=features)
    assert not target.exists()


def test_features_are_only_looked_for_in_the_folder_of_the_clusters(small_features, target, clustering):
    (target.parent / "elsewhere").mkdir()
    for stated in (str(small_features), "../small.h5", "..", 7, None):
        clustering.provenance = {"features": stated}
        write_report(clustering, target.parent / "elsewhere" / "report.html", force=True)
        assert "--features FILE" in (target.parent / "elsewhere" / "report.html").read_text("utf-8")


def test_only_the_pages_own_script_may_run(target, clustering):
    write_report(clustering, target)
    text = target.read_text("utf-8")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert re.search(r'Content-Security-Policy" content="(.*?)"', text).group(1) == (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    )


def test_nothing_is_overwritten_unless_forced_and_an_input_never(tmp_path, target, clustering):
    target.write_text("mine")
    with pytest.raises(TargetExistsError):
        write_report(clustering, target)
    assert target.read_text() == "mine"
    write_report(clustering, target, force=True)
    assert target.read_text("utf-8").startswith("<!doctype html>")
    write_clusters(tmp_path / "c.h5", clustering)
    with pytest.raises(InputError, match="is one of the files to read"):
        write_report(tmp_path / "c.h5", tmp_path / "c.h5", force=True)


HOSTILE_TEXTS = [
    "</script><script>alert(1)</script>",
    '" onerror="alert(1)',
    "' onload='alert(1)",
    "<img src=x onerror=alert(1)>",
    "<!-- ",
    "]]>",
    "&lt;b&gt; $title ${parts}",
    "\x1b[2J\x1b]0;title\x07",
    "\x00\x08\x7f\x85\x9b31m",
    "\u202egpj.exe\u202c \u2066x\u2069 \u200f \u061c",
    "line\u2028separator\u2029",
    "half \udce9 of a character",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_text_of_others_is_only_shown(target, clustering, text):
    clustering.true_labels = np.array([text, "cat", "dog", "owl", "cow"])[clustering.true_labels]
    clustering.paths = np.array([f"{text}/{row}.png" for row in range(300)])
    clustering.parameters = {"method": text, text: text, "nested": [{text: text}]}
    clustering.diagnostics = {"warnings": [text], text: 1, "candidates": {text: 0.5, "b": 0.4}, "reason": text}
    clustering.provenance = {"features": text, "backbone": text}
    write_report(clustering, target)
    page = target.read_text("utf-8")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", page)
    outline = Outline(target)
    assert page.count("<script") == page.count("</script") == 1
    assert outline.tags.isdisjoint({"iframe", "object", "embed", "base", "form"})
    assert not [name for name in outline.attributes if name.startswith("on")]


def test_machine_paths_stay_at_home(target, clustering):
    clustering.parameters = {"init": "/home/ann/secret project/weights.pth", "run": "C:\\Users\\ann\\run"}
    clustering.provenance = {"features": "/home/ann/secret project/x.h5", "images": ["/home/ann/photos"]}
    write_report(clustering, target)
    page = target.read_text("utf-8")
    assert "/home" not in page
    assert "Users" not in page
    assert "weights.pth" in page
