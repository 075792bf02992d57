"""The report shows what is known, leaves out what is not, and stays small."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cceclust.errors import FileContentError, InputError, TargetExistsError
from cceclust.io import Clusters, open_features, write_clusters, write_features
from cceclust.report import write_report
from cceclust.report.pictures import ImageFinder, Pictures
from cceclust.report.placement import Placement

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
    assert page.ids == [
        *(
            "map",
            "map-data",
            "images",
            "clusters",
            "classes",
            "neighbours",
            "confusion",
            "confidence",
            "loss",
            "origins",
        )
    ]


def test_labels_alone_make_a_page_too(tmp_path):
    write_report(Clusters(np.array(["b", "a", "", "a"])), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert outline(tmp_path / "report.html").ids == ["map", "clusters"]
    assert "--features FILE" in text
    assert "3 points in 2 clusters" in text
    assert "1 points have no cluster" in text


def test_nothing_from_a_file_becomes_markup(rich_clusters, tmp_path):
    write_report(rich_clusters, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    assert text.count("<script") == 2


def test_many_points_with_long_names_and_images_stay_below_three_megabytes(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    # Smooth patches, as in photographs.
    coarse = generator.integers(0, 255, (50, 6, 6, 3)).astype(np.uint8)
    patches = [np.asarray(Image.fromarray(patch).resize((80, 80))) for patch in coarse]
    pictures = Pictures(lambda row: patches[row % 50], "", ImageFinder(tmp_path))
    places = generator.uniform(size=(20_000, 2))
    placed = Placement(np.arange(20_000), np.zeros((20_000, 15), int), places)
    monkeypatch.setattr("cceclust.report.page.place_rows", lambda *_: placed)
    monkeypatch.setattr("cceclust.report.page.find_pictures", lambda *_: pictures)
    names = np.array([f"{row}{'é' * 90}" for row in range(20_001)])
    clusters = make_clustering(20_001, 60, paths=names, true_labels=None, diagnostics={"modularity": 0.5})
    write_features(tmp_path / "x.h5", generator.normal(size=(20_001, 2)).astype(np.float32))
    with open_features(tmp_path / "x.h5") as features:
        write_report(clusters, tmp_path / "report.html", features=features)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "20,000 of 20,001 points, drawn at random" in text
    assert '"sheet":' in text
    assert 1_000_000 < (tmp_path / "report.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("n_clusters", [1, 2, 13, 120])
def test_any_number_of_clusters_can_be_shown(tmp_path, n_clusters):
    clusters = make_clustering(400, n_clusters)
    clusters.provenance = {"features": "x.h5"}
    write_features(tmp_path / "x.h5", np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32))
    write_clusters(tmp_path / "x.clusters.h5", clusters)
    write_report(tmp_path / "x.clusters.h5", tmp_path / "report.html")
    ids = outline(tmp_path / "report.html").ids
    assert {"map", "rows", "clusters", "classes", "confusion"} <= set(ids)
    assert ("neighbours" in ids) == (n_clusters > 1)


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
    assert "120 points. Points lie close together" in text
    assert "None of the images could be opened" in text


def test_features_of_other_rows_are_refused(small_features, tmp_path, clustering):
    with open_features(small_features) as features, pytest.raises(InputError, match="120 rows, the clustering 300"):
        write_report(clustering, tmp_path / "report.html", features=features)
    assert not (tmp_path / "report.html").exists()


def test_the_judges_figure_stands_for_quality_and_agreement_leaves_out_the_chosen_one(tmp_path, clustering):
    clustering.diagnostics |= {
        "modularity": 0.812,
        "loss": 0.4321,
        "candidates": {"head 1": 0.812, "head 2": 0.7, HOSTILE: 0.5, "head 4": float("nan")},
        "chosen": "head 1",
        "agreeing_restarts": 1,
    }
    write_report(clustering, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<h3>Modularity</h3><b>0.812</b>" in text
    assert "<h3>Loss</h3>" not in text
    assert "0 of the other 2 found nearly the same clusters" in text
    assert "agreeing" not in text
    assert text.index("head 1 (chosen)") < text.index("head 2")


def test_restarts_that_agree_are_counted_without_the_chosen_one(tmp_path, clustering):
    clustering.diagnostics["agreeing_restarts"] = 3
    write_report(clustering, tmp_path / "report.html")
    assert "2 of the other 3 found nearly the same" in (tmp_path / "report.html").read_text("utf-8")


def test_only_the_pages_own_script_may_run(tmp_path, clustering):
    write_report(clustering, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text).group(1)
    assert html.unescape(policy) == (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    )


def test_nothing_is_overwritten_unless_forced(tmp_path, clustering):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(TargetExistsError):
        write_report(clustering, target)
    assert target.read_text() == "mine"
    write_report(clustering, target, force=True)
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_a_feature_file_is_not_taken_for_clusters(small_features, tmp_path):
    with pytest.raises(FileContentError, match="is a feature file; expected a cluster file"):
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
    assert page.count("<script") == page.count("</script") == 1
    assert tags.isdisjoint({"iframe", "object", "embed", "base", "form"})
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
