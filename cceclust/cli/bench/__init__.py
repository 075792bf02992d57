"""``cceclust bench …``: the paper's tables and figures, rerun on any data; one file for each command."""

from __future__ import annotations

import typer

from cceclust.cli.bench import (
    deep,
    features,
    loss_curves,
    noisy_labels,
    solver,
    weak,
)

__all__ = ["app"]

app = typer.Typer(
    help="Rerun the paper's tables and figures on your data.",
    no_args_is_help=True,
)
app.command("solver")(solver.solver)
app.command("loss-curves")(loss_curves.loss_curves)
app.command("features")(features.features)
app.command("deep")(deep.deep)
app.command("weak")(weak.weak)
app.command("noisy-labels")(noisy_labels.noisy_labels)
