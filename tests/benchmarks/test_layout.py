"""The comparison of layouts measures the plane of principal components and the report's layout alike."""

from __future__ import annotations

from pathlib import Path

import layout
import pytest

from cceclust.bench.files import read_labelled


def test_layouts_are_measured(
    small_features: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    plane, own = outcomes = layout.compare_layouts(*read_labelled(small_features))
    assert plane.voted == own.voted == 1.0
    assert 0.2 < plane.kept < own.kept < 1
    layout.print_layouts(outcomes, "title")
    assert "two principal components" in capsys.readouterr().out
