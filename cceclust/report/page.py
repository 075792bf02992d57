"""The whole page."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from cceclust.errors import InputError
from cceclust.io import Clusters, FeatureFile, read_clusters
from cceclust.io.atomic import check_targets, replacing
from cceclust.io.clustered import clustered_features
from cceclust.report.confusion import class_confusion, neighbor_confusion
from cceclust.report.drawing import Html, element, escape, number, percent, table
from cceclust.report.figures import class_scores, cluster_sizes, confidence_histogram, key_figures, numbers_of_clusters
from cceclust.report.pictures import Pictures, find_pictures
from cceclust.report.placement import place_rows
from cceclust.report.point_map import point_map
from cceclust.report.summary import Summary, is_number, summarize
from cceclust.report.telling import telling_images, telling_rows
from cceclust.text import without_folders
from cceclust.version import __version__

# What other parts of the page say; the running time is not part of the result.
SHOWN_ELSEWHERE = ("warnings", "seconds", "modularity", "number_of_clusters")


def write_report(
    clusters: Clusters | str | Path,
    path: str | Path,
    *,
    force: bool = False,
    features: FeatureFile | str | Path | None = None,
    images: str | Path | None = None,
) -> None:
    """Write a report on a clustering: one static HTML file that needs no other file and no network.

    Parameters
    ----------
    clusters : Clusters, str or Path
        The clustering, or the file it is in.
    path : str or Path
        The HTML file to write.
    force : bool
        Overwrite an existing file.
    features : FeatureFile, str or Path, optional
        The features that were clustered, for the map and the silhouette. By default they are looked for beside the
        clusters.
    images : str or Path, optional
        The folder, archive or file of an array that images are read from; by default the folder of the clusters. Images
        elsewhere are never opened, wherever paths and links lead.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cceclust.io import Clusters
    >>> from cceclust.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Clusters(labels=np.array([0, 0, 1])), Path(folder, "report.html"))
    ...     Path(folder, "report.html").read_text("utf-8")[:15]
    '<!doctype html>'
    """
    path, source = Path(path), None
    if not isinstance(clusters, Clusters):
        source = Path(clusters)
        clusters = read_clusters(source)
    folder = (source or path).parent
    opened: AbstractContextManager[FeatureFile | None]
    if isinstance(features, FeatureFile):
        opened = nullcontext(features)
    else:
        opened = clustered_features(clusters, source or path, features)
    with opened as rows:
        inputs = [source, None if rows is None else rows.path]
        check_targets([path], inputs=[file for file in inputs if file is not None], force=force)
        placement = None
        if rows is not None:
            clusters = with_names(clusters, rows)
            placement = place_rows(rows, columns_scaled=clusters.diagnostics.get("columns_scaled") is True)
        summary = summarize(clusters, rows, placement)
        pictures = find_pictures(clusters, rows, folder, None if images is None else Path(images))
        name = Path(str(clusters.provenance.get("features") or source or "")).name
        title = f"Clusters of {name}" if name else "Clusters"
        html = page(title, in_one_sentence(summary), parts_of(summary, pictures))
        with replacing(path, force=force) as part:
            part.write_text(html, encoding="utf-8")


def with_names(clusters: Clusters, features: FeatureFile) -> Clusters:
    """Return clusters with the names and paths of their features, if they have none; refuse features of other rows."""
    if features.n_samples != len(clusters.labels):
        raise InputError(
            f"{features.path} has {features.n_samples:,} rows, the clustering {len(clusters.labels):,}; give the "
            "features that were clustered"
        )
    paths = features.paths if clusters.paths is None else clusters.paths
    return replace(clusters, paths=paths, names=features.names if clusters.names is None else clusters.names)


def parts_of(summary: Summary, pictures: Pictures | None) -> list[Html]:
    """Return the parts of the page from top to bottom: what was found, how good it is, how it was made."""
    return [
        key_figures(summary),
        warnings_of(summary),
        point_map(summary, pictures),
        telling_rows(summary) if pictures is None else telling_images(summary, pictures),
        element("div", cluster_sizes(summary), class_scores(summary), class_="columns"),
        neighbor_confusion(summary),
        class_confusion(summary),
        element("div", numbers_of_clusters(summary), confidence_histogram(summary), class_="columns"),
        how_it_was_made(summary.clusters),
    ]


def page(title: str, lead: str, parts: list[Html]) -> str:
    """Return the whole page."""
    room = files("cceclust.report")
    html, style, script = (room.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    return Template(html).substitute(
        digest=b64encode(sha256(script.encode()).digest()).decode("ascii"),
        style=style,
        script=script,
        title=escape(title),
        lead=escape(lead),
        parts="".join(parts),
        version=__version__,
    )


def in_one_sentence(summary: Summary) -> str:
    """Summarise the clustering."""
    facts = summary.label_free
    sentence = f"{facts.n_samples:,} points in {facts.n_clusters:,} clusters"
    if facts.n_empty:
        sentence += f", {facts.n_empty:,} of them empty"
    if summary.scores is not None:
        sentence += f"; {percent(summary.scores.accuracy)} of the points are in the cluster that stands for their class"
    return sentence + "."


def warnings_of(summary: Summary) -> Html:
    """Repeat the warnings of the fit, and list what was left out."""
    listed = summary.clusters.diagnostics.get("warnings")
    items = [element("li", str(message)) for message in listed] if isinstance(listed, list) else []
    unclustered = len(summary.codes) - summary.label_free.n_samples
    if unclustered:
        items.append(element("li", f"Points without a cluster are left out: {unclustered:,}."))
    if summary.scores is not None and summary.scores.n_without_label:
        items.append(element("li", f"Points without a true label are not scored: {summary.scores.n_without_label:,}."))
    return element("ul", *items, class_="warnings", role="note") if items else Html("")


def how_it_was_made(clusters: Clusters) -> Html:
    """Tabulate candidates, parameters, diagnostics and provenance, to unfold."""
    diagnostics = {name: value for name, value in clusters.diagnostics.items() if name not in SHOWN_ELSEWHERE}
    tried = diagnostics.pop("candidates", None)
    scores = {str(name): score for name, score in tried.items() if is_number(score)} if isinstance(tried, dict) else {}
    groups = {
        "Candidates and their modularity": dict(sorted(scores.items(), key=lambda entry: -entry[1])),
        "Parameters": clusters.parameters,
        "Diagnostics": diagnostics,
        "Provenance": clusters.provenance,
    }
    tables = []
    for title, facts in without_folders(groups).items():
        rows = [(name.replace("_", " "), as_text(value)) for name, value in facts.items() if value is not None]
        if rows:
            tables.append(table([], rows, caption=title, class_="facts"))
    heading, parts = (
        element("summary", element("h2", "How it was made")),
        element("div", *tables, class_="side-by-side"),
    )
    return element("details", heading, parts, class_="card", id="origins") if tables else Html("")


def as_text(value: Any) -> str:
    """Format a parameter for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)
