"""``cceclust bench noisy-labels``: Figure 2 of the paper on any labelled feature file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.options import (
    LARGEST_FIRST_SEED,
    OUTPUT_PANEL,
    DatasetOption,
    FeaturesArgument,
    ForceOption,
    JsonOption,
    LabelsDatasetOption,
    QuietOption,
)

if TYPE_CHECKING:
    from cceclust.bench.noisy_labels import NoiseResult


def noisy_labels(
    file: FeaturesArgument,
    noise: Annotated[
        list[float] | None,
        typer.Option(min=0, max=0.99, help="Part of random labels; may be repeated. By default: 0, 0.1, …, 0.9."),
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(min=0, help="Weight decay of the head. By default: what suits the features.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of held-out rows and of noise.")] = 5,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first draw.")] = 0,
    dataset: DatasetOption = None,
    labels_dataset: LabelsDatasetOption = None,
    output: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The figure: .png, .svg or .pdf.", metavar="FILE", rich_help_panel=OUTPUT_PANEL
        ),
    ] = Path("noisy-labels.png"),
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train on noisy labels by collision cross-entropy and by Shannon's: Figure 2 of the paper.

    Both learn the same soft targets from four fifths of the rows; accuracy is that on the others.
    """
    from cceclust.bench.figures import check_figure_target
    from cceclust.bench.files import read_labelled
    from cceclust.bench.noisy_labels import LOSSES, NOISES, compare_losses, draw_noise_curves

    check_figure_target(output, force=force)
    noises = noise or list(NOISES)
    settings: dict[str, Any] = {} if weight_decay is None else {"weight_decay": weight_decay}
    matrix, labels = read_labelled(file, dataset=dataset, labels_dataset=labels_dataset)
    with task_progress(quiet=quiet or as_json, unit="fits") as bar:
        task = bar.add_task("Learning", total=len(noises) * draws * len(LOSSES), detail="")
        outcomes = compare_losses(
            matrix,
            labels,
            noises=noises,
            n_draws=draws,
            seed=seed,
            on_fit=lambda text: bar.update(task, advance=1, detail=text),
            **settings,
        )
    draw_noise_curves(outcomes, output, force=force)
    if as_json:
        print_json(outcomes)
    elif not quiet:
        print_noise(outcomes, f"{file.name}: accuracy on held-out rows, {draws} draws")
        results().print(f"wrote {output}", markup=False, soft_wrap=True)


def print_noise(outcomes: list[NoiseResult], title: str) -> None:
    """Print a row a level of noise."""
    table = plain_table(title, "noise", "collision", "Shannon")
    for outcome in outcomes:
        table.add_row(f"{outcome.noise:g}", mean_and_deviation(outcome.cce), mean_and_deviation(outcome.ce))
    results().print(table)
