"""``cceclust neighbors``: find nearest neighbours once and keep them in the feature file."""

from __future__ import annotations

from typing import Annotated

import typer

from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import LARGEST_SEED, DatasetOption, FeaturesArgument, ForceOption, JsonOption, QuietOption


def neighbors(
    features: FeaturesArgument,
    n_neighbors: Annotated[
        int, typer.Option("--neighbors", "-n", min=1, help="Number of neighbours of each row.")
    ] = 10,
    components: Annotated[
        int,
        typer.Option(min=1, help="Project rows with more features onto this many principal components for the search."),
    ] = 256,
    seed: Annotated[
        int,
        typer.Option(min=0, max=LARGEST_SEED, help="Seed of the row samples that components and cells are found on."),
    ] = 0,
    dataset: DatasetOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find nearest neighbours and write them into the feature file.

    [bold]fit[/] uses the neighbours it finds in a file instead of searching for them again.
    Of more than 10,000 rows not all pairs are compared; then it says how many of the nearest were found.
    """
    from cceclust.io.reading import refuse_what_is_no_file

    refuse_what_is_no_file(features)
    from cceclust.clustering import find_neighbors

    with task_progress(quiet=quiet or as_json, unit="rows") as bar:
        task = bar.add_task("Neighbours", total=None, detail="")
        graph, recall = find_neighbors(
            features,
            n_neighbors,
            dataset=dataset,
            n_components=components,
            seed=seed,
            force=force,
            on_block=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        print_json({"file": str(features), "rows": len(graph), "neighbors": graph.shape[1], "recall": recall})
    elif not quiet:
        text = f"Wrote {graph.shape[1]} neighbours for each of {len(graph):,} rows into {features}"
        # Only a sample of rows is compared with all, so that further digits would mean nothing.
        doubt = f": about {recall:.2f} of the nearest" if recall < 1 else ""
        results().print(text + doubt, markup=False, soft_wrap=True)
