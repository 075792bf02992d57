"""Imports point downwards: every module has a layer and imports only from lower ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cceclust

ROOT = Path(cceclust.__file__).parent

# From the top down. A module or subpackage imports itself and what stands below it, never its own row.
LAYERS = (
    {"__init__", "__main__"},
    {"cli"},
    {"clustering"},
    {"estimators", "report", "torch"},
    {"dask"},
    {"io"},
    {"fit"},
    {"pseudo_labels", "scoring"},
    {"objective", "validation"},
    {"compiled", "errors", "presets", "progress", "text", "version", "workers"},
)
LEVELS = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}


def part_of(path: Path) -> str:
    """Return the module or subpackage of cceclust that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports_of(source: str, *, types: bool) -> Iterator[str]:
    """Yield the full names that a file imports anywhere, functions included; perhaps those for type checkers, too."""
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            nodes.extend(node.orelse)
        else:
            nodes.extend(ast.iter_child_nodes(node))


def imported_parts(source: str, *, types: bool = False) -> set[str]:
    """Return the modules and subpackages of cceclust that a file imports; the package itself is ``__init__``."""
    parts = set()
    for name in imports_of(source, types=types):
        package, _, rest = name.partition(".")
        if package == "cceclust":
            part = rest.split(".")[0]
            parts.add(part if part in LEVELS else "__init__")
    return parts


def upward_imports(part: str, source: str) -> set[str]:
    """Return what a file of a part imports from its own layer or from above."""
    return {other for other in imported_parts(source) - {part} if LEVELS[other] >= LEVELS[part]}


def sources() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the part and the text of every file."""
    for path in sorted(ROOT.rglob("*.py")):
        yield str(path.relative_to(ROOT)), part_of(path), path.read_text(encoding="utf-8")


def test_every_module_has_one_layer() -> None:
    assert {part for _, part, _ in sources()} == set(LEVELS)
    assert len(LEVELS) == sum(map(len, LAYERS))


def test_imports_point_downwards() -> None:
    wrong = {place: upward for place, part, source in sources() if (upward := upward_imports(part, source))}
    assert wrong == {}


def test_nothing_imports_the_command_line() -> None:
    importers = {part for _, part, source in sources() if "cli" in imported_parts(source, types=True)}
    assert importers == {"cli", "__main__"}


@pytest.mark.parametrize(("part", "packages"), [("torch", {"torch"}), ("dask", {"dask", "distributed"})])
def test_only_its_own_part_imports_a_large_package(part: str, packages: set[str]) -> None:
    importers = {
        importer
        for _, importer, source in sources()
        if any(name.split(".")[0] in packages for name in imports_of(source, types=True))
    }
    assert importers == {part}


def test_imports_are_found_wherever_they_are() -> None:
    source = """
if TYPE_CHECKING:
    from cceclust.cli.main import run
else:
    import cceclust.report
def work():
    if True:
        from cceclust import clustering, CCEClusterer
    from cceclust.errors import InputError
"""
    assert imported_parts(source) == {"report", "clustering", "__init__", "errors"}
    assert imported_parts(source, types=True) == {"report", "clustering", "__init__", "errors", "cli"}
    assert upward_imports("clustering", source) == {"__init__"}
    assert upward_imports("report", source) == {"clustering", "__init__"}
    assert upward_imports("torch", source) == {"report", "clustering", "__init__"}
