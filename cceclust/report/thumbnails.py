"""The images with the highest and lowest confidence in each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import MissingExtraError
from cceclust.report.markup import Html, card, data_uri, element
from cceclust.report.pictures import SMALL_SIDE, Pictures, shrink
from cceclust.report.summary import Summary

__all__ = ["thumbnails"]

MOST_CLUSTERS = 60
MOST_IMAGES = 480
MOST_IMAGES_A_ROW = 8
TRIES_FOR_AN_IMAGE = 3


def thumbnails(summary: Summary, pictures: Pictures) -> Html:
    """Show images of every cluster; if none can be read, say so."""
    shown = [int(position) for position in np.argsort(-summary.sizes, kind="stable") if summary.sizes[position]]
    shown = sorted(shown[:MOST_CLUSTERS])
    try:
        groups = [cluster_images(summary, position, pictures, images_a_row(len(shown))) for position in shown]
    except MissingExtraError as error:
        return card("Images", note=f"Not shown: {error}", wide=True, anchor="images")
    found = [group for group in groups if group]
    outside, finder = "", pictures.finder
    if finder.n_outside:
        outside = (
            f" {finder.n_outside:,} images were not opened, because they lie outside of the folder {finder.root.name}; "
            "cceclust report --images FOLDER shows those of another."
        )
    if not found:
        note = f"None of the images could be opened; {pictures.described}."
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


def cluster_images(summary: Summary, position: int, pictures: Pictures, n_images: int) -> Html:
    """Show the images of one cluster; nothing if none can be opened."""
    rows = np.flatnonzero(summary.codes == position)
    if summary.confidence is None:
        kinds = {"first": rows}
    else:
        order = rows[np.argsort(-summary.confidence[rows], kind="stable")]
        # A small cluster shows each of its images once.
        half = (len(order) + 1) // 2
        kinds = {"most confident": order[:half], "least confident": order[: half - 1 : -1]}
    strips = [strip(kind, summary, ordered, pictures, n_images) for kind, ordered in kinds.items()]
    if not any(strips):
        return Html("")
    swatch = element("i", class_="swatch", style=f"background:{summary.colour(position)}")
    stands_for = summary.classes[position] if summary.classes else ""
    name = f"Cluster {summary.names[position]}" + (f" · class {stands_for}" if stands_for else "")
    heading = element("h3", swatch, name)
    return element("article", heading, *strips, class_="gallery")


def strip(kind: str, summary: Summary, rows: Iterable[int], pictures: Pictures, n_images: int) -> Html:
    """Return a row of images under a heading for their kind."""
    images = list(first_images(summary, rows, pictures, n_images))
    if not images:
        return Html("")
    return element("div", element("h4", kind), element("div", *images, class_="strip"))


def first_images(summary: Summary, rows: Iterable[int], pictures: Pictures, n_images: int) -> Iterator[Html]:
    """Yield the first images that can be opened, and give up after a few failures."""
    remaining = n_images
    for row in list(rows)[: TRIES_FOR_AN_IMAGE * n_images]:
        pixels = pictures.read(int(row)) if remaining else None
        if pixels is not None:
            remaining -= 1
            yield thumbnail(pixels, summary.row_name(int(row)), summary, row)


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
