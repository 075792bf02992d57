"""The whole page."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.io.atomic import refuse_inputs, refuse_to_overwrite, replacing
from cceclust.io.clusters import Clusters, read_clusters
from cceclust.io.features import FeatureFile
from cceclust.io.pairs import warn_of_another_pair
from cceclust.io.run_folders import clusters_of
from cceclust.io.scores import open_features_of
from cceclust.report.charts import candidates, cluster_sizes, confidence_histogram, loss_curves, numbers_of_clusters
from cceclust.report.confusion import class_scores, confusion_matrix
from cceclust.report.figures import key_figures
from cceclust.report.markup import Html, card, element, facts_table, number, percent
from cceclust.report.neighbor_confusion import neighbor_confusion
from cceclust.report.palette import colours_apart
from cceclust.report.pictures import ImageFinder, Pictures, find_pictures
from cceclust.report.placement import Placement, place_rows
from cceclust.report.point_map import dense_places, point_map
from cceclust.report.summary import Summary, summarize
from cceclust.report.telling_rows import telling_rows
from cceclust.report.thumbnails import thumbnails
from cceclust.text import without_folders
from cceclust.version import __version__

__all__ = ["write_report"]

# The page needs no network and runs no script but its own, which the browser knows by its digest; this makes the
# browser enforce it, whatever a label contains.
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def write_report(
    clusters: Clusters | str | Path,
    target: str | Path,
    *,
    force: bool = False,
    features: FeatureFile | None = None,
    images: str | Path | None = None,
    full_paths: bool = False,
) -> None:
    """Write a report on a clustering: one static HTML file that needs no other file and no network.

    Parameters
    ----------
    clusters : Clusters, str or Path
        The clustering, the file it is in, or the folder of a run of ``cceclust deep``.
    target : str or Path
        The HTML file to write.
    force : bool
        Overwrite an existing file.
    features : FeatureFile, optional
        The features that were clustered, for the silhouette and the paths of their images. By default they are looked
        for beside the clusters.
    images : str or Path, optional
        The folder or archive that images are read from; by default the folder of the clusters. Images elsewhere are
        counted but never opened, wherever paths and links lead.
    full_paths : bool
        Show absolute paths of this machine, not only names.

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
    target = Path(target)
    refuse_to_overwrite(target, force=force)
    source = None
    if not isinstance(clusters, Clusters):
        source = clusters_of(clusters)
        clusters = read_clusters(source)
        warn_of_another_pair(source, clusters.model_id)
    with ExitStack() as files:
        if features is None:
            features = open_features_of(clusters, source or target)
            files.callback(features.close if features is not None else lambda: None)
        inputs = [source, None if features is None else features.path]
        refuse_inputs([target], [path for path in inputs if path is not None])
        folder = (source or target).parent
        finder = ImageFinder(folder if images is None else Path(images), [folder, Path()])
        summary = summarize(clusters, features)
        placement = None if features is None else place_rows(summary.clusters, features)
        if placement is not None:
            summary = replace(summary, colours=map_colours(summary, placement))
        pictures = find_pictures(summary.clusters, features, finder, None if images is None else Path(images))
        missing = what_is_missing(clusters) if features is None else ""
        parts = parts_of(summary, placement, pictures, missing, full_paths=full_paths)
        html = page(page_title(summary, source), in_one_sentence(summary), parts)
        with replacing(target, force=force) as part:
            part.write_text(html, encoding="utf-8")


def map_colours(summary: Summary, placement: Placement) -> NDArray[np.intp]:
    """Return a colour for each cluster, by its place on the map."""
    places = dense_places(placement.places, summary.codes[placement.rows], len(summary.names))
    return colours_apart(places, summary.sizes)


def what_is_missing(clusters: Clusters) -> str:
    """Say why there is no map."""
    stated = clusters.provenance.get("features")
    name = f" ({Path(stated).name})" if isinstance(stated, str) else ""
    return (
        f"Not drawn, because the features{name} were not found beside the clusters: the map, and the table of confused "
        "clusters, need them. Give them by: cceclust report CLUSTERS --features FILE"
    )


def parts_of(
    summary: Summary, placement: Placement | None, pictures: Pictures | None, missing: str, *, full_paths: bool
) -> list[Html]:
    """Return the parts of the page from top to bottom: what was found, how good it is, how it was made."""
    return [
        key_figures(summary),
        warnings_of(summary),
        point_map(summary, placement, pictures, missing),
        telling_rows(summary, placement) if pictures is None else thumbnails(summary, pictures),
        element("div", cluster_sizes(summary), class_scores(summary), class_="columns"),
        neighbor_confusion(summary, placement),
        confusion_matrix(summary),
        numbers_of_clusters(summary),
        how_it_went(summary),
        origins(summary.clusters, full_paths=full_paths),
    ]


def how_it_went(summary: Summary) -> Html:
    """Return confidence, training and candidates; the list of candidates is as long as the other two together."""
    first, second = confidence_histogram(summary), loss_curves(summary)
    tried = candidates(summary)
    return (
        element("div", element("div", first, second), tried, class_="columns")
        if tried
        else (element("div", first, second, class_="columns"))
    )


def page_title(summary: Summary, source: Path | None) -> str:
    """Return the title of the page."""
    name = Path(str(summary.clusters.provenance.get("features") or source or "")).name
    return f"Clusters of {name}" if name else "Clusters"


def page(title: str, lead: str, parts: list[Html]) -> str:
    """Return the whole page."""
    style, script = (files("cceclust.report").joinpath(name).read_text("utf-8") for name in ("report.css", "report.js"))
    digest = b64encode(sha256(script.encode()).digest()).decode("ascii")
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=CONTENT_POLICY.format(digest=digest)),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(style)),
    ]
    heading = element("header", element("h1", title), element("p", lead, class_="lead"))
    footer = element("footer", f"Written by cceclust {__version__}.")
    body = element("body", heading, element("main", *parts), footer, element("script", Html(script)))
    return "<!doctype html>\n" + element("html", element("head", *head), body, lang="en") + "\n"


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
    diagnostics, facts = summary.clusters.diagnostics, summary.label_free
    listed = diagnostics.get("warnings")
    messages = [str(message) for message in listed] if isinstance(listed, list) else []
    if diagnostics.get("converged") is False and not messages:
        messages.append("The fit stopped before it converged; more epochs may change the clusters.")
    unclustered = len(summary.codes) - facts.n_samples
    if unclustered:
        messages.append(f"{unclustered:,} points have no cluster and are left out.")
    if summary.scores is not None and summary.scores.n_without_label:
        messages.append(f"{summary.scores.n_without_label:,} points have no true label; the scores leave them out.")
    if not messages:
        return Html("")
    return element("ul", *(element("li", message) for message in messages), class_="warnings", role="note")


# Observations of the fit that other parts show in words; the running time is not part of the result.
SHOWN_ELSEWHERE = (
    "warnings",
    "seconds",
    "candidates",
    "modularity",
    "best_restart",
    "restart_agreement",
    "agreeing_restarts",
)


def origins(clusters: Clusters, *, full_paths: bool) -> Html:
    """Tabulate how the clustering was made."""
    diagnostics = {name: value for name, value in clusters.diagnostics.items() if name not in SHOWN_ELSEWHERE}
    groups = {"Parameters": clusters.parameters, "Diagnostics": diagnostics, "Provenance": clusters.provenance}
    if not full_paths:
        groups = without_folders(groups)
    tables = [
        facts_table(
            title, {name.replace("_", " "): as_text(value) for name, value in facts.items() if value is not None}
        )
        for title, facts in groups.items()
        if facts
    ]
    if not tables:
        return Html("")
    return card("How it was made", element("div", *tables, class_="side-by-side"), wide=True, anchor="origins")


def as_text(value: Any) -> str:
    """Format a parameter for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
