"""The Python code in docs/deep.md runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/deep.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_two_examples() -> None:
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("code", BLOCKS, ids=["trainer", "loss"])
def test_examples_run(code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(compile(code, "docs/deep.md", "exec"), names)
    assert "clusters" not in names or len(names["clusters"]) == 40  # type: ignore[arg-type]
