"""The map: points laid out by their neighbours, coloured by cluster and by class, with names on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.report.drawing import Html, card, data_uri, drawing, element, folded
from cceclust.report.palette import CLUSTER_COLOURS, NO_CLUSTER_COLOUR
from cceclust.report.pictures import Pictures, shrink
from cceclust.report.placement import Placement
from cceclust.report.summary import Summary
from cceclust.scoring import is_missing
from cceclust.text import printable

NO_FEATURES = (
    "The map and the table of confused clusters need the features of at least three points, which are not beside the "
    "clusters. Name their file with: cceclust report CLUSTERS --features FILE"
)
SIZE = (2240, 1680)
# Dots are drawn in so many layers of all colours, so that no group covers another.
LAYERS = 8
# A name would hide a group whose points are this close to it, across and down; it is written this much above them.
HIDDEN, ABOVE = (0.02, 0.02), 0.035
# One point in each of so many cells across and down has a picture, which is small.
PICTURE_GRID, PICTURE_SIDE = (36, 27), 32
# The number of no cluster and of no class in the page's script.
NO_GROUP = 65535
MOST_LETTERS, MOST_BYTES_OF_NAMES = 64, 600_000


def point_map(summary: Summary, pictures: Pictures | None) -> Html:
    """Draw points coloured by cluster and, where true labels are known, by class beside it; or say what is missing."""
    placement = summary.placement
    if placement is None:
        return card("Map", note=NO_FEATURES, anchor="map")
    shown, total = len(placement.rows), len(summary.codes)
    how_many = f"{shown:,} points" if shown == total else f"{shown:,} of {total:,} points"
    note = f"{how_many}. Nearest neighbours in the features lie close together; distances between groups mean little."
    if shown < total:
        note += " Points far from all others are left out, and of very many points some are chosen at random."
    codes, is_many = summary.codes[placement.rows], len(summary.names) > len(CLUSTER_COLOURS)
    description = f"Map of {how_many} coloured by cluster"
    maps = [one_map("Clusters", placement, codes, summary.names, summary.colours, description)]
    classes = None
    if summary.scores is not None and summary.clusters.true_labels is not None:
        classes = codes_of_classes(summary, summary.clusters.true_labels[placement.rows])
        class_codes, class_names = classes
        colours = np.append(summary.colours, np.arange(len(summary.colours), len(class_names)) % len(CLUSTER_COLOURS))
        description = f"Map of {how_many} coloured by true class"
        other = one_map("True classes", placement, class_codes, class_names, colours, description)
        # Many clusters need the whole width; where there is room, the maps lie side by side.
        maps.append(folded("True classes", other) if is_many else other)
        note += " A class has the colour of the cluster that stands for it, so the maps differ where the clusters err."
    hint = element("p", "Point at the map to see a row; click to keep it and to see its whole cluster.", class_="hint")
    data = element("script", map_data(summary, placement, classes, pictures), type="application/json", id="map-data")
    frames = element("div", *maps, class_="maps stacked" if is_many else "maps")
    return card("Map", hint, frames, data, note=note, anchor="map")


def codes_of_classes(summary: Summary, labels: NDArray[Any]) -> tuple[NDArray[np.intp], list[str]]:
    """Number the true classes so that each has the number, and so the colour, of the cluster that stands for it."""
    values, positions = np.unique(labels, return_inverse=True)
    classes = ["" if missing else str(value) for value, missing in zip(values, is_missing(values), strict=True)]
    names = list(summary.classes or [])
    names += [name for name in classes if name and name not in names]
    return np.array([names.index(name) if name else -1 for name in classes])[positions], names


def one_map(
    title: str,
    placement: Placement,
    codes: NDArray[np.intp],
    names: Sequence[str],
    colours: NDArray[np.intp],
    description: str,
) -> Html:
    """Draw one map with the names of its groups, the largest first; the page's script hides those without room."""
    shades = np.array([*CLUSTER_COLOURS, NO_CLUSTER_COLOUR])
    dots = dots_of(placement.places, shades[np.where(codes < 0, -1, colours[np.maximum(codes, 0)])])
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    places = places_of_names(placement, codes, len(names))
    labels = []
    for code in np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)].tolist():
        x, y = places[code]
        style = f"left:{100 * x:.1f}%;top:{100 * y:.1f}%"
        labels.append(element("span", names[code], style=style, data_group=code, aria_hidden="true"))
    picture = drawing(dots, size=SIZE, description=description)
    frame = element("div", picture, *labels, class_="map many" if len(names) > len(CLUSTER_COLOURS) else "map")
    return element("figure", element("figcaption", title), frame)


def places_of_names(placement: Placement, codes: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
    """Return the densest place of each group, but one above a small group, or below it at the upper edge."""
    dense = placement.dense(codes, n_groups)
    moved = dense.copy()
    for code in np.unique(codes[codes >= 0]):
        distances = np.abs(placement.places[codes == code] - dense[code])
        if (np.quantile(distances, 0.9, axis=0) < HIDDEN).all():
            moved[code, 1] += -ABOVE if dense[code, 1] > 2 * ABOVE else ABOVE
    return moved


def dots_of(places: NDArray[np.float64], colours: NDArray[np.str_]) -> Html:
    """Draw points as round dots, in layers of a random part of them each; the more points, the smaller and fainter."""
    radius = 2 * float(np.clip(6.0 * (1000 / len(places)) ** 0.32, 1.3, 7.0))
    opacity = 1 - np.exp(-1.6 * float(np.clip((5000 / len(places)) ** 0.25, 0.4, 1.0)))
    layer = np.random.default_rng(0).integers(0, LAYERS, len(places))
    centres = np.rint(places * SIZE).astype(np.intp)
    dots = []
    for number in range(LAYERS):
        for colour in np.unique(colours[layer == number]):
            drawn = centres[(layer == number) & (colours == colour)]
            # A line of no length with round ends is a dot.
            dots.append(element("path", d="".join(f"M{x} {y}h0" for x, y in drawn), stroke=str(colour)))
    return element("g", *dots, class_="dots", stroke_width=f"{2 * radius:.1f}", stroke_opacity=f"{opacity:.2f}")


def map_data(
    summary: Summary,
    placement: Placement,
    classes: tuple[NDArray[np.intp], list[str]] | None,
    pictures: Pictures | None,
) -> Html:
    """Return what the page's script shows about each point, as JSON; numbers are packed in base64."""
    rows, codes = placement.rows, summary.codes[placement.rows]
    data: dict[str, Any] = {
        "x": packed(np.rint(placement.places[:, 0] * 65535), "<u2"),
        "y": packed(np.rint(placement.places[:, 1] * 65535), "<u2"),
        "rows": packed(rows, "<u4"),
        "clusters": packed(np.where(codes < 0, NO_GROUP, codes), "<u2"),
        "titles": [printable(summary.title(position)) for position in range(len(summary.names))],
        "colours": [summary.colour(position) for position in range(len(summary.names))],
    }
    if summary.confidence is not None:
        data["confidence"] = packed(np.rint(1000 * np.nan_to_num(summary.confidence[rows])), "<u2")
    if classes is not None:
        data["classes"] = packed(np.where(classes[0] < 0, NO_GROUP, classes[0]), "<u2")
        data["classNames"] = [printable(name) for name in classes[1]]
    if summary.clusters.names is not None or summary.clusters.paths is not None:
        data["names"] = short_names([printable(summary.row_name(row)) for row in rows])
    if pictures is not None:
        data["pictures"] = pictures_of(placement, pictures)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # No text can end the block.
    return Html(text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))


def pictures_of(placement: Placement, pictures: Pictures) -> dict[int, str]:
    """Return pictures of points all over the map: one in each cell of a grid."""
    cells = np.minimum((placement.places * PICTURE_GRID).astype(np.intp), np.array(PICTURE_GRID) - 1)
    points = np.unique(cells @ [PICTURE_GRID[1], 1], return_index=True)[1].tolist()
    found = {point: pictures(int(placement.rows[point])) for point in points}
    return {point: shrink(pixels, PICTURE_SIDE) for point, pixels in found.items() if pixels is not None}


def packed(values: NDArray[Any], dtype: str) -> str:
    """Return numbers as base64 of integers."""
    return data_uri(values.astype(dtype).tobytes(), "").partition(",")[2]


def short_names(names: list[str]) -> list[str]:
    """Cut long names at their beginning, where those of files are most alike, so that the page stays small."""
    most = MOST_LETTERS
    # A letter that is not ASCII takes up to four bytes.
    while sum(min(len(name), most) * (1 if name.isascii() else 4) for name in names) > MOST_BYTES_OF_NAMES:
        most //= 2
    return [name if len(name) <= most else f"…{name[len(name) - most + 1 :]}" for name in names]
