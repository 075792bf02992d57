"""``cceclust bench noisy-labels``: Figure 2 of the paper on any labelled features, or on any labelled images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cceclust.cli.bench.tables import mean_and_deviation, plain_table
from cceclust.cli.bench.weak import refuse_given
from cceclust.cli.console import print_json, results, task_progress
from cceclust.cli.deep import given
from cceclust.cli.options import (
    INPUT_PANEL,
    LARGEST_FIRST_SEED,
    OUTPUT_PANEL,
    ForceOption,
    JsonOption,
    LabelsDatasetOption,
    LimitOption,
    QuietOption,
    SplitOption,
    check_above_zero,
)

if TYPE_CHECKING:
    from cceclust.bench.noisy_labels import NoiseResult


DEEP_PANEL = "With --deep"


def deep_option(**settings: Any) -> Any:
    """Return an option of the help panel on networks."""
    return typer.Option(rich_help_panel=DEEP_PANEL, **settings)


def noisy_labels(
    file: Annotated[
        Path,
        typer.Argument(
            help="Labelled features, as in [bold]cceclust fit[/]; with --deep labelled images, as in "
            "[bold]cceclust deep[/].",
            metavar="FILE",
        ),
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Train a ResNet-18 on images from scratch.")] = False,
    noise: Annotated[
        list[float] | None,
        typer.Option(min=0, max=0.99, help="Fraction of random labels; may be repeated. By default: 0, 0.1, …, 0.9."),
    ] = None,
    weight_decay: Annotated[
        float | None,
        typer.Option(min=0, help="Weight decay of the head, on features. By default: what suits the features."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Number of draws of held-out rows and noise.")] = 5,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_FIRST_SEED, help="Seed of the first draw.")] = 0,
    size: Annotated[int | None, deep_option(min=32, help="Side length of the images in pixels; 32 by default.")] = None,
    epochs: Annotated[int | None, deep_option(min=1, help="Epochs per network; 10 by default.")] = None,
    learning_rate: Annotated[
        float | None, deep_option(callback=check_above_zero, help="Learning rate of Adam; 0.001 by default.")
    ] = None,
    device: Annotated[str | None, deep_option(help="auto (the default), cpu, mps, cuda or cuda:N.")] = None,
    split: SplitOption = None,
    limit: LimitOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Name of the features, or of the images, inside the file.", rich_help_panel=INPUT_PANEL),
    ] = None,
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
    """Train on noisy labels with collision cross-entropy and with Shannon's: Figure 2 of the paper.

    Both learn the same soft targets from four fifths of the rows; accuracy is measured on the rest. With --deep, rows
    are images, and every fit trains a network.
    """
    from cceclust.bench.figures import check_figure_target
    from cceclust.bench.noisy_labels import LOSSES, NOISES, compare_losses, draw_noise_curves

    check_figure_target(output, force=force)
    noises = noise or list(NOISES)
    settings: dict[str, Any] = {"noises": noises, "n_draws": draws, "seed": seed}
    compare: Callable[..., list[NoiseResult]]
    if deep:
        refuse_given({"--weight-decay": weight_decay}, "has no meaning with --deep")
        from cceclust.bench.noisy_images import compare_losses_on_images
        from cceclust.files.images import open_images

        images = open_images(file, split=split, limit=limit, dataset=dataset, labels_dataset=labels_dataset)
        compare = partial(compare_losses_on_images, images)
        settings |= given(size=size, n_epochs=epochs, learning_rate=learning_rate, device=device)
    else:
        of_deep = {"--size": size, "--epochs": epochs, "--learning-rate": learning_rate, "--device": device}
        refuse_given(of_deep | {"--split": split, "--limit": limit}, "needs --deep")
        from cceclust.bench.files import read_labelled

        compare = partial(compare_losses, *read_labelled(file, dataset=dataset, labels_dataset=labels_dataset))
        settings |= given(weight_decay=weight_decay)
    with task_progress(quiet=quiet or as_json, unit="fits") as bar:
        task = bar.add_task("Learning", total=len(noises) * draws * len(LOSSES), detail="")
        outcomes = compare(on_fit=lambda text: bar.update(task, advance=1, detail=text), **settings)
    draw_noise_curves(outcomes, output, force=force)
    if as_json:
        print_json(outcomes)
    elif not quiet:
        rows = "images" if deep else "rows"
        print_noise(outcomes, f"{file.name}: accuracy on held-out {rows}, {draws} draws")
        results().print(f"wrote {output}", markup=False, soft_wrap=True)


def print_noise(outcomes: list[NoiseResult], title: str) -> None:
    """Print one row per level of noise."""
    table = plain_table(title, "noise", "collision", "Shannon")
    for outcome in outcomes:
        table.add_row(f"{outcome.noise:g}", mean_and_deviation(outcome.cce), mean_and_deviation(outcome.ce))
    results().print(table)
