"""Imports point one way, and every room stays within its size."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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
    {"labels", "objective", "validation"},
    {"compiled", "errors", "progress", "text", "version"},
)
LEVELS = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}
# Most lines of each room; growth beyond them wants a reason, and less elsewhere.
MOST_LINES = {
    "fit": 3800,
    "io": 2900,
    "torch": 2200,
    "pseudo_labels": 2000,
    "report": 1400,
    "cli": 1400,
    "estimators": 1200,
    "scoring": 250,
}
MOST_LINES_IN_ALL = 16_000


def part_of(path: Path) -> str:
    """Return the module or subpackage of cceclust that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def module_of(path: Path) -> str:
    """Return the full name of a file's module."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
MODULES = {module_of(path) for path in SOURCES}


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
    names = [name.split(".") for name in imports_of(source, types=types)]
    return {name[1] if len(name) > 1 and name[1] in LEVELS else "__init__" for name in names if name[0] == "cceclust"}


def imported_modules(source: str) -> set[str]:
    """Return the full names of the modules of cceclust that a file imports something from."""
    names = imports_of(source, types=False)
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & MODULES


def upward_imports(part: str, source: str) -> set[str]:
    """Return what a file of a part imports from its own layer or from above."""
    return {other for other in imported_parts(source) - {part} if LEVELS[other] >= LEVELS[part]}


def test_every_module_has_one_layer() -> None:
    assert {part_of(path) for path in SOURCES} == set(LEVELS)
    assert len(LEVELS) == sum(map(len, LAYERS))


def test_imports_point_downwards() -> None:
    upward = {module_of(path): upward_imports(part_of(path), source) for path, source in SOURCES.items()}
    assert {module: names for module, names in upward.items() if names} == {}


def test_modules_of_a_room_import_one_way() -> None:
    imports = {module_of(path): imported_modules(source) - {module_of(path)} for path, source in SOURCES.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_nothing_imports_the_command_line() -> None:
    importers = {part_of(path) for path, source in SOURCES.items() if "cli" in imported_parts(source, types=True)}
    assert importers == {"cli", "__main__"}


@pytest.mark.parametrize(("part", "packages"), [("torch", {"torch"}), ("dask", {"dask", "distributed"})])
def test_only_its_own_part_imports_a_large_package(part: str, packages: set[str]) -> None:
    importers = {
        part_of(path)
        for path, source in SOURCES.items()
        if any(name.split(".")[0] in packages for name in imports_of(source, types=True))
    }
    assert importers == {part}


def test_rooms_stay_within_their_size() -> None:
    lines: Counter[str] = Counter()
    for path, source in SOURCES.items():
        lines[part_of(path)] += source.count("\n")
    for part, count in lines.most_common():
        print(f"{part:15} {count:6,} of {MOST_LINES.get(part, count):,}")
    assert {part: count for part, count in lines.items() if count > MOST_LINES.get(part, count)} == {}
    assert lines.total() <= MOST_LINES_IN_ALL


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
    assert imported_modules(source) == {"cceclust", "cceclust.report", "cceclust.clustering", "cceclust.errors"}
    assert upward_imports("clustering", source) == {"__init__"}
    assert upward_imports("report", source) == {"clustering", "__init__"}
