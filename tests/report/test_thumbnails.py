"""Images are found where they may lie, shown once, kept small, and missed without harm."""

from __future__ import annotations

import os
import re
import zipfile

import numpy as np
import pytest
from PIL import Image

from cceclust.io import Clusters
from cceclust.report.pictures import ImageFinder, find_pictures, shrink
from cceclust.report.summary import summarize
from cceclust.report.thumbnails import images_a_row, thumbnails


@pytest.fixture
def image_clusters(tmp_path) -> Clusters:
    """Return clusters of six images, of which the last is missing."""
    for row in range(5):
        Image.new("RGB", (64, 48), (40 * row, 0, 0)).save(tmp_path / f"{row}.png")
    confidence = np.array([0.9, 0.8, 0.7, 0.6, 0.55, 0.99])
    return Clusters(
        np.zeros(6, int),
        np.stack([confidence, 1 - confidence], axis=1),
        paths=np.array([f"{row}.png" for row in range(6)]),
    )


def gallery(clusters, finder):
    return thumbnails(summarize(clusters, None), find_pictures(clusters, None, finder, None))


def test_each_image_is_shown_once_and_missing_ones_are_passed_over(image_clusters, tmp_path):
    html = gallery(image_clusters, ImageFinder(tmp_path))
    assert [html.count(f'alt="{row}.png') for row in range(6)] == [1, 1, 1, 1, 1, 0]
    assert html.index('alt="0.png') < html.index('alt="1.png') < html.index('alt="4.png') < html.index('alt="3.png')


def test_paths_that_name_no_images_have_no_pictures(image_clusters, tmp_path):
    image_clusters.paths = np.array([f"document {row}" for row in range(6)])
    assert find_pictures(image_clusters, None, ImageFinder(tmp_path), None) is None


def test_without_probabilities_the_first_images_are_shown(image_clusters, tmp_path):
    image_clusters.probabilities = None
    html = gallery(image_clusters, ImageFinder(tmp_path))
    assert html.count("<img") == 5


def test_damaged_and_impossible_paths_are_missing(tmp_path):
    (tmp_path / "damaged.png").write_bytes(b"no image")
    finder = ImageFinder(tmp_path)
    assert finder.read("damaged.png") is None
    assert finder.read("null\0byte.png") is None
    assert finder.read("absent.png") is None


def test_members_of_archives_are_found(image_clusters, tmp_path):
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.write(tmp_path / "2.png", "folder/2.png")
    finder = ImageFinder(tmp_path)
    assert finder.read("images.zip/folder/2.png")[0, 0].tolist() == [80, 0, 0]
    assert finder.read("images.zip/folder/3.png") is None


def test_small_images_keep_every_pixel_and_large_ones_shrink():
    import io

    small = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8)
    large = np.zeros((600, 300, 3), np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(shrink(small)))), small)
    assert Image.open(io.BytesIO(shrink(large))).size == (40, 80)


def test_many_clusters_share_the_room():
    assert images_a_row(1) == 8
    assert images_a_row(60) == 4
    assert images_a_row(40) * 2 * 40 <= 480


def test_images_outside_of_the_folder_are_counted_and_not_opened(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    for folder in (inside, outside):
        Image.new("RGB", (9, 9), (80, 0, 0)).save(folder / "image.png")
        with zipfile.ZipFile(folder / "images.zip", "w") as archive:
            archive.write(folder / "image.png", "image.png")
    (inside / "link.png").symlink_to(outside / "image.png")
    (inside / "linked").symlink_to(outside, target_is_directory=True)
    (inside / "loop.png").symlink_to("loop.png")
    (inside / "list.txt").write_text(f"{outside / 'image.png'}\n")
    finder = ImageFinder(inside)
    for path in ("image.png", "images.zip/image.png", "linked/../inside/image.png", str(inside / "image.png")):
        assert finder.read(path) is not None, path
    assert finder.n_outside == 0
    elsewhere = [
        "../outside/image.png",
        str(outside / "image.png"),
        "link.png",
        "linked/image.png",
        "../outside/images.zip/image.png",
        str(outside / "images.zip" / "image.png"),
    ]
    for path in elsewhere:
        assert finder.read(path) is None, path
    assert finder.n_outside == len(elsewhere)
    for path in ("loop.png", f"list.txt{outside}/image.png", "/dev/zero", "/proc/self/environ", "/dev/fd/0"):
        assert finder.read(path) is None, path
    assert ImageFinder(outside, [inside]).read("link.png") is not None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_pipes_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    assert ImageFinder(tmp_path).read("pipe.png") is None


def test_the_page_says_how_many_were_not_opened(image_clusters, tmp_path):
    (tmp_path / "empty").mkdir()
    html = gallery(image_clusters, ImageFinder(tmp_path / "empty", [tmp_path]))
    assert "<img" not in html
    assert re.search(r"\d+ images were not opened, because they lie outside of the folder empty", html)
