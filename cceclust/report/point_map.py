"""The map: all points on the first two principal components, coloured by cluster and by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from cceclust.files.features import FeatureFile
from cceclust.report.markup import Html, card, data_uri, element, percent
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR, rgb
from cceclust.report.png import encode_png
from cceclust.report.summary import Summary
from cceclust.scoring import is_missing

__all__ = ["point_map"]

WIDTH, HEIGHT = 1120, 840
MARGIN = 0.03
MOST_POINTS = 100_000
MOST_POINTS_OF_FEATURES = 10_000
# Far smaller probabilities only stretch the map without saying more about a point; larger limits draw streaks into it.
SMALLEST_PROBABILITY = 1e-12
OPACITY_LEVELS = 18
MOST_NAMES = 40
# Width of a letter and height of a line, as fractions of the picture.
LETTER_WIDTH, NAME_HEIGHT = 0.016, 0.05
NAME_SHIFTS = (0.0, 0.05, -0.05, 0.1, -0.1, 0.15, -0.15)


@dataclass(frozen=True)
class Projection:
    """Points on a plane.

    Attributes
    ----------
    rows : ndarray of shape (n_points,)
        Which rows are shown.
    places : ndarray of shape (n_points, 2)
        Their coordinates, from 0 to 1; the second runs downwards.
    origin : str
        What was projected, in words.
    """

    rows: NDArray[np.intp]
    places: NDArray[np.float64]
    origin: str


def point_map(summary: Summary, features: FeatureFile | None) -> Html:
    """Draw all points coloured by cluster and, where true labels are known, by class beside it."""
    projection = project(summary, features)
    if projection is None:
        return Html("")
    codes = summary.codes[projection.rows]
    shown, total = len(projection.rows), len(summary.codes)
    how_many = f"{shown:,} points" if shown == total else f"{shown:,} of {total:,} points, drawn at random"
    maps = [one_map("Clusters", projection, codes, summary.names, f"Map of {how_many} coloured by cluster")]
    note = f"{how_many[0].upper()}{how_many[1:]}; {projection.origin}"
    if summary.scores is not None and summary.clusters.true_labels is not None:
        class_codes, class_names = codes_of_classes(summary, summary.clusters.true_labels[projection.rows])
        maps.append(
            one_map("True classes", projection, class_codes, class_names, f"Map of {how_many} coloured by true class")
        )
        note += " A class has the colour of the cluster that stands for it: where the maps differ, so do they."
    return card("Map", element("div", *maps, class_="maps"), note=note, wide=True, anchor="map")


def project(summary: Summary, features: FeatureFile | None) -> Projection | None:
    """Place the points by PCA of the head's logits, or of the features if there are no logits."""
    probabilities, n_rows = summary.clusters.probabilities, len(summary.codes)
    if probabilities is not None and probabilities.shape[1] > 1:
        rows = sample_rows(n_rows, MOST_POINTS)
        matrix = np.log(np.clip(np.nan_to_num(probabilities[rows]), SMALLEST_PROBABILITY, 1))
        matrix -= matrix.mean(axis=1, keepdims=True)
        what = "the head's logits"
    elif features is not None and features.n_features > 1:
        rows = sample_rows(n_rows, MOST_POINTS_OF_FEATURES)
        matrix = np.nan_to_num(features.read(rows).astype(np.float32))
        what = "the features"
    else:
        return None
    if len(rows) < 3:
        return None
    analysis = PCA(2, svd_solver="randomized", random_state=0)
    places = analysis.fit_transform(matrix).astype(np.float64)
    explained = percent(float(np.nan_to_num(analysis.explained_variance_ratio_).sum()))
    origin = f"the first two principal components of {what} ({explained} of their variance)."
    if np.ptp(places[:, 1]) < 1e-6 * np.ptp(places[:, 0]):
        places[:, 1] = np.random.default_rng(0).uniform(size=len(rows))
        origin = f"from left to right the only principal component of {what}; the height is random."
    return Projection(rows, to_unit_square(places), origin)


def sample_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return all rows, or a fixed random choice of them."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def to_unit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale places to the picture with a margin, and flip them, since pictures count rows from the top."""
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    unit = (places - low) / np.where(extent > 0, extent, 1.0)
    unit[:, 1] = 1 - unit[:, 1]
    return np.asarray(MARGIN + (1 - 2 * MARGIN) * unit)


def codes_of_classes(summary: Summary, labels: NDArray[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """Number the true classes so that each has the number, and so the colour, of the cluster that stands for it."""
    names = list(summary.classes or [])
    values, positions = np.unique(labels, return_inverse=True)
    number_of = {name: position for position, name in enumerate(names) if name}
    numbers = []
    for value, missing in zip(values.tolist(), is_missing(values), strict=True):
        if not missing and str(value) not in number_of:
            number_of[str(value)] = len(names)
            names.append(str(value))
        numbers.append(-1 if missing else number_of[str(value)])
    return np.array(numbers, np.intp)[positions], names


def one_map(
    title: str, projection: Projection, codes: NDArray[np.intp], names: Sequence[str], description: str
) -> Html:
    """Draw one map, with names at the medians of the groups."""
    picture = element(
        "img", src=data_uri(render(projection.places, codes), "image/png"), alt=description, width=WIDTH, height=HEIGHT
    )
    labels = [
        element("span", names[code], style=f"left:{100 * x:.1f}%;top:{100 * y:.1f}%", aria_hidden="true")
        for code, x, y in name_places(projection.places, codes, max(map(len, names), default=0))
    ]
    frame = element("div", picture, *labels, class_="map")
    return element("figure", element("figcaption", title), frame)


def name_places(places: NDArray[np.float64], codes: NDArray[np.intp], longest: int) -> list[tuple[int, float, float]]:
    """Return where to write the names of the largest groups; a group without room gets no name."""
    present, sizes = np.unique(codes[codes >= 0], return_counts=True)
    width = LETTER_WIDTH * (longest + 2)
    named: list[tuple[int, float, float]] = []
    for code in present[np.argsort(-sizes, kind="stable")][:MOST_NAMES]:
        x, y = np.median(places[codes == code], axis=0)
        # Take the nearest free height only if it is close: far from its points a name would mislead.
        for shift in NAME_SHIFTS:
            if not any(abs(x - left) < width and abs(y + shift - top) < NAME_HEIGHT for _, left, top in named):
                named.append((int(code), float(x), float(y + shift)))
                break
    return named


def render(places: NDArray[np.float64], codes: NDArray[np.intp]) -> bytes:
    """Draw points as a PNG on a transparent background; each pixel has the colour of most points that touch it."""
    colours = np.where(codes < 0, len(CLUSTER_COLOURS), codes % len(CLUSTER_COLOURS))
    centres = np.floor(places * (WIDTH, HEIGHT)).astype(np.intp)
    shifts, coverage = disc(len(places))
    total, most = np.zeros((2, HEIGHT * WIDTH))
    winner = np.zeros(HEIGHT * WIDTH, np.intp)
    for colour in np.unique(colours):
        touched = (centres[colours == colour, None, :] + shifts).reshape(-1, 2)
        touched = np.clip(touched, 0, (WIDTH - 1, HEIGHT - 1))
        weights = np.tile(coverage, int((colours == colour).sum()))
        density = np.bincount(touched[:, 1] * WIDTH + touched[:, 0], weights, HEIGHT * WIDTH)
        winner[density > most] = colour
        np.maximum(most, density, out=most)
        total += density
    level = np.rint((1 - np.exp(-1.6 * total)) * OPACITY_LEVELS).astype(np.intp)
    pixels = np.where(level > 0, 1 + winner * OPACITY_LEVELS + level - 1, 0)
    return encode_png(pixels.reshape(HEIGHT, WIDTH).astype(np.uint8), palette_with_opacities())


def disc(n_points: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the pixels of a point and how much of each it covers: the more points, the smaller and fainter."""
    radius = float(np.clip(6.0 * (1000 / n_points) ** 0.32, 1.3, 7.0))
    opacity = float(np.clip((5000 / n_points) ** 0.25, 0.4, 1.0))
    reach = int(np.ceil(radius))
    shifts = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 2), axis=-1).reshape(-1, 2)
    coverage = opacity * np.clip(radius + 0.5 - np.hypot(*shifts.T), 0, 1)
    return shifts[coverage > 0], coverage[coverage > 0]


def palette_with_opacities() -> NDArray[np.uint8]:
    """Return the palette: transparent, then every colour from faint to opaque."""
    levels = np.arange(1, OPACITY_LEVELS + 1) * 255 // OPACITY_LEVELS
    entries = [(*rgb(colour), level) for colour in (*CLUSTER_COLOURS, NO_CLUSTER_COLOUR) for level in levels]
    return np.array([(0, 0, 0, 0), *entries], np.uint8)
