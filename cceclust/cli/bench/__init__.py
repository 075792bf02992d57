"""``cceclust bench …``: the paper's tables and our own measurements, rerun; one file a command."""

from __future__ import annotations

import typer

from cceclust.cli.bench import (
    deep,
    defaults,
    extract,
    features,
    loss_curves,
    neighbors,
    noisy_labels,
    solver,
    speed,
    weak,
)

__all__ = ["app"]

app = typer.Typer(
    help="Rerun the paper's tables and figures, and measure this tool, on your data and machine.",
    no_args_is_help=True,
)
app.command("solver")(solver.solver)
app.command("loss-curves")(loss_curves.loss_curves)
app.command("features")(features.features)
app.command("deep")(deep.deep)
app.command("speed")(speed.speed)
app.command("neighbors")(neighbors.neighbors)
app.command("defaults")(defaults.defaults)
app.command("extract")(extract.extract)
app.command("weak")(weak.weak)
app.command("noisy-labels")(noisy_labels.noisy_labels)
