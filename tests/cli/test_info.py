import json
from pathlib import Path

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import write_features


def test_json_is_what_the_library_says(small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "--json", str(small_features)]) == 0
    description = json.loads(capsys.readouterr().out)
    assert description["kind"] == "features"
    assert description["facts"]["shape"] == [120, 6]
    assert description["facts"]["classes"] == 3
    assert description["provenance"]["backbone"] == "none"


def test_what_files_say_is_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "[bold]x[red] :boom:.h5"
    write_features(path, np.eye(2), attributes={"backbone": "[red]resnet[/red] :boom:"})
    assert run(["info", str(path)]) == 0
    out = "".join(capsys.readouterr().out.split())
    assert "[bold]x[red]:boom:.h5" in out
    assert "[red]resnet[/red]:boom:" in out
