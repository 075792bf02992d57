"""The map: points laid out by their neighbours, coloured by cluster and by class, with names on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve

from cceclust.errors import MissingExtraError
from cceclust.report.markup import Html, card, data_block, data_uri, element
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR, rgb
from cceclust.report.pictures import Pictures
from cceclust.report.placement import Placement
from cceclust.report.png import encode_png
from cceclust.report.summary import Summary
from cceclust.scoring import is_missing
from cceclust.text import printable

__all__ = ["dense_places", "point_map"]

WIDTH, HEIGHT = 1120, 840
OPACITY_LEVELS = 18
# Cells across and down in which points are counted to find the densest place.
GRID = (32, 24)
# Width of a letter and height of a line, as fractions of a map on a phone and of one on a screen; and by how many
# lines a name may be shifted.
NAME_SIZES = {"narrow": (0.022, 0.065, (0.0,)), "wide": (0.0125, 0.034, (0.0, -1.0, 1.0))}
MOST_NAMES = 250
# A name would hide a group whose points are this close to it, across and down; it is written this much above them.
HIDDEN, ABOVE = (0.02, 0.02), 0.035
# Up to this many points, all have a picture; beyond, one point in each of so many cells across and down.
MOST_PICTURED, PICTURE_GRID = 2000, (36, 27)
NO_GROUP = 65535
MOST_LETTERS, MOST_BYTES_OF_NAMES = 64, 600_000


def point_map(summary: Summary, placement: Placement | None, pictures: Pictures | None, missing: str) -> Html:
    """Draw points coloured by cluster and, where true labels are known, by class beside it; or say what is missing."""
    if placement is None:
        return card("Map", note=missing, wide=True, anchor="map") if missing else Html("")
    codes = summary.codes[placement.rows]
    shown, total = len(placement.rows), len(summary.codes)
    how_many = f"{shown:,} points" if shown == total else f"{shown:,} of {total:,} points, drawn at random"
    description = f"Map of {how_many} coloured by cluster"
    maps = [one_map("Clusters", placement, codes, summary.names, summary.colours, description)]
    note = (
        f"{how_many[0].upper()}{how_many[1:]}. Points lie close together where they are nearest neighbours in the "
        "features; directions, and distances between groups, mean little."
    )
    classes = None
    if summary.scores is not None and summary.clusters.true_labels is not None:
        class_codes, class_names = classes = codes_of_classes(summary, summary.clusters.true_labels[placement.rows])
        colours = np.append(summary.colours, np.arange(len(summary.colours), len(class_names)) % len(CLUSTER_COLOURS))
        description = f"Map of {how_many} coloured by true class"
        other = one_map("True classes", placement, class_codes, class_names, colours, description)
        # Many clusters need the whole width; where there is room, the maps lie side by side.
        maps.append(element("details", element("summary", "True classes"), other) if is_many(summary.names) else other)
        note += " A class has the colour of the cluster that stands for it: where the maps differ, so do they."
    hint = element("p", "Point at the map to see a row; click to keep it and to see its whole cluster.", class_="hint")
    data = data_block("map-data", map_data(summary, placement, classes, pictures))
    frames = element("div", *maps, class_="maps stacked" if is_many(summary.names) else "maps")
    return card("Map", hint, frames, data, note=note, wide=True, anchor="map")


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
    title: str,
    placement: Placement,
    codes: NDArray[np.intp],
    names: Sequence[str],
    colours: NDArray[np.intp],
    description: str,
) -> Html:
    """Draw one map, with the name of each group at its densest place, or above a group that the name would hide."""
    drawn = render(placement.places, np.where(codes < 0, len(CLUSTER_COLOURS), colours[np.maximum(codes, 0)]))
    picture = element("img", src=data_uri(drawn, "image/png"), alt=description, width=WIDTH, height=HEIGHT)
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    dense = beside_small_groups(dense_places(placement.places, codes, len(names)), placement.places, codes)
    labels = [
        element(
            "span",
            names[code],
            style=f"left:{100 * x:.1f}%;top:{100 * y:.1f}%",
            class_=None if kind == "narrow" else kind,
            data_group=code,
            aria_hidden="true",
        )
        for code, x, y, kind in name_places(dense, sizes, names)
    ]
    frame = element("div", picture, *labels, class_="map many" if is_many(names) else "map")
    return element("figure", element("figcaption", title), frame)


def is_many(names: Sequence[str]) -> bool:
    """Tell whether there are more groups than colours."""
    return len(names) > len(CLUSTER_COLOURS)


def dense_places(places: NDArray[np.float64], codes: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
    """Return the densest place of each group; NaN for a group without points."""
    cells = np.minimum((places * GRID).astype(np.intp), np.array(GRID) - 1)
    dense = np.full((n_groups, 2), np.nan)
    for code in np.unique(codes[codes >= 0]):
        members = np.flatnonzero(codes == code)
        counts = np.zeros(GRID, np.intp)
        np.add.at(counts, tuple(cells[members].T), 1)
        # Neighbouring cells count as well, so that the border between two does not matter.
        around = convolve(counts, np.ones((3, 3), np.intp), mode="constant")
        peak = np.unravel_index(np.argmax(around), GRID)
        near = members[(np.abs(cells[members] - peak) <= 1).all(axis=1)]
        dense[code] = places[near].mean(axis=0)
    return dense


def beside_small_groups(
    dense: NDArray[np.float64], places: NDArray[np.float64], codes: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the places for names: the densest ones, but above a small group, or below it at the upper edge."""
    moved = dense.copy()
    for code in np.unique(codes[codes >= 0]):
        distances = np.abs(places[codes == code] - dense[code])
        if (np.quantile(distances, 0.9, axis=0) < HIDDEN).all():
            moved[code, 1] += -ABOVE if dense[code, 1] > 2 * ABOVE else ABOVE
    return moved


def name_places(
    dense: NDArray[np.float64], sizes: NDArray[np.intp], names: Sequence[str]
) -> list[tuple[int, float, float, str]]:
    """Return where to write names, the largest groups first; those that only a wide map has room for are marked so.

    A group without room gets no name: far from its points a name would mislead.
    """
    order = [int(code) for code in np.argsort(-sizes, kind="stable") if sizes[code] and names[code]][:MOST_NAMES]
    named: list[tuple[int, float, float, str]] = []
    for kind, (letter, height, shifts) in NAME_SIZES.items():
        taken = {code for code, *_ in named}
        for code in order:
            if code in taken:
                continue
            width = letter * (len(names[code]) + 1.5)
            x = float(np.clip(dense[code, 0], width / 2, 1 - width / 2)) if width < 1 else 0.5
            for shift in shifts:
                y = float(np.clip(dense[code, 1] + shift * height, height / 2, 1 - height / 2))
                if not any(
                    abs(x - left) < (width + letter * (len(names[other]) + 1.5)) / 2 and abs(y - top) < height
                    for other, left, top, _ in named
                ):
                    named.append((code, x, y, kind))
                    break
    return named


def render(places: NDArray[np.float64], colours: NDArray[np.intp]) -> bytes:
    """Draw points as a PNG on a transparent background; each pixel has the colour of most points that touch it."""
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


def map_data(
    summary: Summary,
    placement: Placement,
    classes: tuple[NDArray[np.intp], list[str]] | None,
    pictures: Pictures | None,
) -> str:
    """Return what the page's script shows about each point, as JSON; numbers are packed in base64."""
    rows, codes = placement.rows, summary.codes[placement.rows]
    data: dict[str, Any] = {
        "x": packed(np.rint(placement.places[:, 0] * 65535), np.uint16),
        "y": packed(np.rint(placement.places[:, 1] * 65535), np.uint16),
        "rows": packed(rows, np.uint32),
        "clusters": packed(np.where(codes < 0, NO_GROUP, codes), np.uint16),
        "titles": [printable(summary.title(position)) for position in range(len(summary.names))],
        "colours": [summary.colour(position) for position in range(len(summary.names))],
    }
    if summary.confidence is not None:
        data["confidence"] = packed(np.rint(1000 * np.nan_to_num(summary.confidence[rows])), np.uint16)
    if classes is not None:
        data["classes"] = packed(np.where(classes[0] < 0, NO_GROUP, classes[0]), np.uint16)
        data["classNames"] = [printable(name) for name in classes[1]]
    if summary.row_names is not None:
        data["names"] = short_names([printable(summary.row_name(row)) for row in rows])
    if pictures is not None:
        data |= picture_data(placement, pictures)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def picture_data(placement: Placement, pictures: Pictures) -> dict[str, Any]:
    """Return pictures of points all over the map, side by side in one image."""
    points = np.arange(len(placement.rows))
    if len(points) > MOST_PICTURED:
        cells = (placement.places * PICTURE_GRID).astype(np.intp)
        points = np.unique(cells @ [PICTURE_GRID[1], 1], return_index=True)[1]
    try:
        sheet, shown, columns, side = pictures.sheet(placement.rows[points])
    except MissingExtraError:
        # The part with the images says what to install.
        return {}
    if not shown:
        return {}
    return {
        "sheet": data_uri(sheet, "image/webp"),
        "pictured": packed(points[shown], np.uint32),
        "sheetColumns": columns,
        "sheetSide": side,
    }


def packed(values: NDArray[Any], dtype: type[np.unsignedinteger[Any]]) -> str:
    """Return numbers as base64 of little-endian integers."""
    return data_uri(values.astype(np.dtype(dtype).newbyteorder("<")).tobytes(), "").partition(",")[2]


def short_names(names: list[str]) -> list[str]:
    """Cut long names at their beginning, where those of files are most alike, so that the page stays small."""
    most = MOST_LETTERS
    while sum(min(len(name), most) * 4 if not name.isascii() else min(len(name), most) for name in names) > (
        MOST_BYTES_OF_NAMES
    ):
        most //= 2
    return [name if len(name) <= most else f"…{name[len(name) - most + 1 :]}" for name in names]
