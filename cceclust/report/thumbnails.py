"""The images with the highest and lowest confidence in each cluster."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileError, MissingExtraError
from cceclust.files.images import ImageCollection, open_images
from cceclust.files.images.decoding import IMAGE_SUFFIXES, decode
from cceclust.report.markup import Html, card, data_uri, element
from cceclust.report.palette import cluster_colour
from cceclust.report.summary import Summary

__all__ = ["ImageFinder", "thumbnails"]

SIDE = 80
# Smaller images, such as those of MNIST, are kept as they are and enlarged without blurring.
SMALL_SIDE = 40
MOST_CLUSTERS = 60
MOST_IMAGES = 480
MOST_IMAGES_A_ROW = 8
TRIES_FOR_AN_IMAGE = 3


class ImageFinder:
    """Finds images by the paths in a file, which may come from somebody else.

    Only regular files inside one folder are opened, wherever links lead: a report is meant to be shared and must not
    show files that its reader may not see.

    Parameters
    ----------
    root : Path
        The folder or archive that images are read from.
    bases : sequence of Path
        The folders that paths may be relative to.

    Attributes
    ----------
    n_outside : int
        Number of images that were not opened because they lie outside `root`.
    """

    def __init__(self, root: Path, bases: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self.n_outside = 0
        self._bases = [root, *bases]
        self._archives: dict[Path, tuple[ImageCollection, dict[str, int]]] = {}

    def read(self, path: str) -> NDArray[np.uint8] | None:
        """Return the pixels of an image file or of a member of an archive; None if it cannot be read."""
        is_outside = False
        try:
            for base in self._bases:
                place = (base / path).resolve()
                file = next((parent for parent in (place, *place.parents) if parent.is_file()), None)
                if file is not None and file.is_relative_to(self.root):
                    return decode(file, file.name) if file == place else self._read_member(file, place)
                is_outside = is_outside or file is not None
        except MissingExtraError:
            raise
        # ValueError: the path has a null byte; RuntimeError: links that lead to themselves.
        except (FileError, OSError, ValueError, RuntimeError):
            return None
        self.n_outside += is_outside
        return None

    def _read_member(self, archive: Path, place: Path) -> NDArray[np.uint8] | None:
        # Only archives: a list of paths could lead out of the folder again.
        if archive.suffix.lower() not in (".zip", ".tar"):
            return None
        if archive not in self._archives:
            images = open_images(archive)
            names = [] if images.paths is None else images.paths.tolist()
            self._archives[archive] = images, {name: index for index, name in enumerate(names)}
        images, index_of = self._archives[archive]
        name = place.as_posix()
        return images.read(index_of[name]) if name in index_of else None


def thumbnails(summary: Summary, finder: ImageFinder) -> Html:
    """Show images of every cluster, if the rows came from images that can still be found."""
    paths = summary.clusters.paths
    if paths is None or not any(str(path).lower().endswith(IMAGE_SUFFIXES) for path in paths[:100]):
        return Html("")
    shown = [int(position) for position in np.argsort(-summary.sizes, kind="stable") if summary.sizes[position]]
    shown = sorted(shown[:MOST_CLUSTERS])
    try:
        groups = [cluster_images(summary, position, finder, images_a_row(len(shown))) for position in shown]
    except MissingExtraError:
        note = "Not shown, because reading images needs Pillow: pip install 'cceclust[report]'"
        return card("Images", note=note, wide=True, anchor="images")
    found = [group for group in groups if group]
    outside = ""
    if finder.n_outside:
        outside = (
            f" {finder.n_outside:,} images were not opened, because they lie outside of the folder {finder.root.name}; "
            "cceclust report --images FOLDER shows those of another."
        )
    if not found:
        note = f"None of the images could be opened; the first should be {paths[0]}."
        return card("Images", note=note + outside, wide=True, anchor="images")
    note = "Images that the head is surest and least sure about; the number is the confidence."
    if summary.confidence is None:
        note = "The first images of every cluster."
    if len(shown) < np.count_nonzero(summary.sizes):
        note += f" The {len(shown)} largest clusters are shown."
    note += outside
    return card("Images", element("div", *found, class_="galleries"), note=note, wide=True, anchor="images")


def images_a_row(n_clusters: int) -> int:
    """Return the number of images of each kind per cluster that keeps the page small."""
    return max(3, min(MOST_IMAGES_A_ROW, MOST_IMAGES // (2 * max(1, n_clusters))))


def cluster_images(summary: Summary, position: int, finder: ImageFinder, n_images: int) -> Html:
    """Show the images of one cluster; nothing if none can be opened."""
    rows = np.flatnonzero(summary.codes == position)
    if summary.confidence is None:
        kinds = {"first": rows}
    else:
        order = rows[np.argsort(-summary.confidence[rows], kind="stable")]
        # A small cluster shows each of its images once.
        half = (len(order) + 1) // 2
        kinds = {"most confident": order[:half], "least confident": order[: half - 1 : -1]}
    strips = [strip(kind, summary, ordered, finder, n_images) for kind, ordered in kinds.items()]
    if not any(strips):
        return Html("")
    swatch = element("i", class_="swatch", style=f"background:{cluster_colour(position)}")
    heading = element("h3", swatch, f"Cluster {summary.title(position)}")
    return element("article", heading, *strips, class_="gallery")


def strip(kind: str, summary: Summary, rows: Iterable[int], finder: ImageFinder, n_images: int) -> Html:
    """Return a row of images under a heading for their kind."""
    images = list(first_images(summary, rows, finder, n_images))
    if not images:
        return Html("")
    return element("div", element("h4", kind), element("div", *images, class_="strip"))


def first_images(summary: Summary, rows: Iterable[int], finder: ImageFinder, n_images: int) -> Iterator[Html]:
    """Yield the first images that can be opened, and give up after a few failures."""
    paths = summary.clusters.paths
    assert paths is not None, "without paths there is nothing to show"
    remaining = n_images
    for row in list(rows)[: TRIES_FOR_AN_IMAGE * n_images]:
        pixels = finder.read(str(paths[row])) if remaining else None
        if pixels is not None:
            remaining -= 1
            yield thumbnail(pixels, Path(str(paths[row])).name, summary, row)


def thumbnail(pixels: NDArray[np.uint8], name: str, summary: Summary, row: int) -> Html:
    """Return a small image with its confidence below."""
    details = [name]
    if summary.clusters.true_labels is not None:
        details.append(f"class {summary.clusters.true_labels[row]}")
    sure = None if summary.confidence is None else f"{summary.confidence[row]:.2f}"
    if sure is not None:
        details.append(f"confidence {sure}")
    is_small = max(pixels.shape[:2]) <= SMALL_SIDE
    text = ", ".join(details)
    picture = element(
        "img",
        src=data_uri(shrink(pixels), "image/webp"),
        alt=text,
        title=text,
        class_="pixelated" if is_small else None,
    )
    return element("figure", picture, element("figcaption", sure or ""))


def shrink(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an image as a small WebP."""
    from PIL import Image

    image = Image.fromarray(pixels)
    is_small = max(image.size) <= SMALL_SIDE
    image.thumbnail((SIDE, SIDE))
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", lossless=is_small, quality=72, method=4)
    return encoded.getvalue()
