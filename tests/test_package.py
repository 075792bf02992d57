import importlib
import inspect
import re
from importlib.resources import files
from pathlib import Path

import pytest

import cceclust
from cceclust import errors

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", cceclust.__all__)
def test_public_names_are_there(name: str) -> None:
    assert getattr(cceclust, name) is not None
    assert name in dir(cceclust)


def test_all_public_names_are_listed() -> None:
    assert set(cceclust.__all__) == {*cceclust.HOMES, "__version__"}
    assert list(cceclust.__all__) == sorted(cceclust.__all__)


@pytest.mark.parametrize(("name", "home"), cceclust.HOMES.items())
def test_public_names_are_documented_with_an_example(name: str, home: str) -> None:
    assert name in importlib.import_module(home).__all__
    documentation = inspect.getdoc(getattr(cceclust, name))
    assert documentation is not None
    assert ">>> " in documentation


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'cceclust' has no attribute 'KMeens'"):
        cceclust.KMeens  # noqa: B018


def test_types_are_shipped() -> None:
    assert files("cceclust").joinpath("py.typed").is_file()


def test_errors_are_what_callers_expect() -> None:
    assert issubclass(errors.InputError, ValueError)
    assert issubclass(errors.FileError, OSError)
    assert issubclass(errors.FileContentError, errors.FileError)
    assert issubclass(errors.TargetExistsError, errors.FileError)
    assert issubclass(errors.MissingExtraError, ImportError)
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, errors.CceclustError | Warning)
        assert name in (errors.__doc__ or "") or issubclass(kind, Warning)


def test_changelog_and_citation_state_this_version_and_its_day() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert released[0][0] == cceclust.__version__
    assert f"\nversion: {released[0][0]}\n" in citation
    assert f'\ndate-released: "{released[0][1]}"\n' in citation
