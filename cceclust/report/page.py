"""The whole page."""

from __future__ import annotations

import json
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

from cceclust.files.atomic import refuse_inputs, refuse_to_overwrite, replacing
from cceclust.files.clusters import Clusters, read_clusters
from cceclust.files.features import FeatureFile
from cceclust.files.pairs import warn_of_another_pair
from cceclust.files.run_folders import clusters_of
from cceclust.files.scores import open_features_of
from cceclust.report.charts import cluster_sizes, confidence_histogram, loss_curves, numbers_of_clusters
from cceclust.report.confusion import class_scores, confusion_matrix
from cceclust.report.figures import key_figures
from cceclust.report.markup import Html, card, element, facts_table, number, percent
from cceclust.report.point_map import point_map
from cceclust.report.summary import Summary, summarize
from cceclust.report.thumbnails import ImageFinder, thumbnails
from cceclust.text import without_folders
from cceclust.version import __version__

__all__ = ["write_report"]

# The page needs no network and runs no script; this makes the browser enforce it, whatever a label contains.
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
    >>> from cceclust.files import Clusters
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
        html = page(summarize(clusters, features), source, features, finder, full_paths=full_paths)
        with replacing(target, force=force) as part:
            part.write_text(html, encoding="utf-8")


def page(
    summary: Summary, source: Path | None, features: FeatureFile | None, finder: ImageFinder, *, full_paths: bool
) -> str:
    """Return the whole page."""
    parts = [
        key_figures(summary),
        warnings_of(summary),
        numbers_of_clusters(summary),
        element("div", loss_curves(summary), confidence_histogram(summary), class_="columns"),
        point_map(summary, features),
        element("div", cluster_sizes(summary), class_scores(summary), class_="columns"),
        confusion_matrix(summary),
        thumbnails(summary, finder),
        origins(summary.clusters, full_paths=full_paths),
    ]
    name = Path(str(summary.clusters.provenance.get("features") or source or "")).name
    title = f"Clusters of {name}" if name else "Clusters"
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=CONTENT_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(files("cceclust.report").joinpath("report.css").read_text("utf-8"))),
    ]
    heading = element("header", element("h1", title), element("p", in_one_sentence(summary), class_="lead"))
    footer = element("footer", f"Written by cceclust {__version__}.")
    body = element("body", heading, element("main", *parts), footer)
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


def origins(clusters: Clusters, *, full_paths: bool) -> Html:
    """Tabulate how the clustering was made."""
    # Warnings are already at the top of the page, and the running time is not part of the result.
    diagnostics = {name: value for name, value in clusters.diagnostics.items() if name not in ("warnings", "seconds")}
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
