"""Figure 1: what its curves must show, and the file it is drawn to."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.bench.loss_curves import loss_curves
from cceclust.cli.main import run


def test_collision_is_bounded_where_shannon_is_not():
    for curve in loss_curves():
        assert np.isfinite(curve.collision).all()
        assert np.isinf(curve.shannon[[0, -1]]).all()


def test_lowest_prediction_is_certain_for_collision_and_a_copy_of_the_label_for_shannon():
    for curve in loss_curves([0.9, 0.7]):
        assert curve.x[curve.collision.argmin()] == 1
        assert curve.x[curve.shannon.argmin()] == pytest.approx(curve.label, abs=0.003)


@pytest.mark.parametrize(("name", "start"), [("curves.png", b"\x89PNG"), ("curves.svg", b"<?xml")])
def test_command_draws_the_figure(tmp_path, capsys, name, start):
    target = tmp_path / name
    assert run(["bench", "loss-curves", "--out", str(target)]) == 0
    assert target.read_bytes().startswith(start)
    assert name in capsys.readouterr().out.replace("\n", "")
    assert run(["bench", "loss-curves", "--out", str(target)]) == 1
    assert "--force" in capsys.readouterr().err


def test_unknown_format_is_refused(tmp_path, capsys):
    assert run(["bench", "loss-curves", "--out", str(tmp_path / "curves.txt")]) == 1
    assert "curves.txt" in capsys.readouterr().err
