"""``cceclust bench defaults``: candidates for the defaults, ranked over several files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from cceclust.bench.defaults import CandidateOnFile


def defaults(
    files: Annotated[list[Path], typer.Argument(help="Labelled feature files.", metavar="FEATURES…")],
    candidate: Annotated[
        list[str] | None, typer.Option(help="Candidate to try, by name; may be repeated. By default: all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Fits of each candidate to each file.")] = 3,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rank candidates for the defaults over several labelled files and seeds.

    Accuracies are those of the restart that was chosen without labels. Defaults are chosen by mean rank and by the
    worst case.
    """
    from cceclust.bench.defaults import CANDIDATES, compare_defaults, rank
    from cceclust.bench.files import read_labelled

    for name in candidate or []:
        if name not in CANDIDATES:
            raise typer.BadParameter(f"{name!r} is none of: {'; '.join(CANDIDATES)}", param_hint="--candidate")
    chosen = {name: CANDIDATES[name] for name in candidate or CANDIDATES}
    data = {path.stem: read_labelled(path) for path in files}
    with task_progress(quiet=quiet or as_json, unit="candidates") as bar:
        task = bar.add_task("Comparing", total=len(data) * (len(chosen) + 1), detail="")
        outcomes = compare_defaults(
            data,
            candidates=chosen,
            n_seeds=seeds,
            on_fit=lambda name, file: bar.update(task, advance=1, detail=f"{name} on {file}"),
        )
    if as_json:
        print_json({"outcomes": outcomes, "ranking": rank(outcomes)})
    elif not quiet:
        print_outcomes(outcomes, seeds)


def print_outcomes(outcomes: list[CandidateOnFile], seeds: int) -> None:
    """Print a row a candidate, the best first, and a column a file."""
    from cceclust.bench.defaults import rank

    files = list(dict.fromkeys(outcome.file for outcome in outcomes))
    cells = {(outcome.candidate, outcome.file): mean_and_deviation(outcome.accuracies) for outcome in outcomes}
    title = f"ACC over {seeds} seeds"
    table = plain_table(title, "candidate", "mean rank", "mean ACC", "worst lead over K-means", *files)
    for ranking in rank(outcomes):
        table.add_row(
            ranking.candidate,
            f"{ranking.mean_rank:.2f}",
            f"{ranking.mean_accuracy:.4f}",
            f"{ranking.worst_against_kmeans:+.3f}",
            *(cells[ranking.candidate, file] for file in files),
        )
    results().print(table)
