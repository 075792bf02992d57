"""Short versions of the campaigns in ``benchmarks/reliability``, always with the same cases."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills and limits processes as Linux does")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reliability"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Return a function that imports a driver."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Doubtful clusters of a few rows are no news.
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    return importlib.import_module


def outcomes(driver, name: str, count: int, **options: float) -> Counter[str]:  # type: ignore[no-untyped-def]
    module: ModuleType = driver(name)
    return Counter(driver("cases").run_cases(module.case, count, **options))


def test_damaged_files_are_only_refused(driver) -> None:  # type: ignore[no-untyped-def]
    counts = outcomes(driver, "fuzz", 250, hang=20)
    # HDF5's own library loops for ever on a rare damaged file.
    assert set(counts) <= {"ok", "hang"}
    assert counts["hang"] <= 1


@pytest.mark.filterwarnings("ignore")
def test_forged_files_are_only_refused(driver) -> None:  # type: ignore[no-untyped-def]
    assert outcomes(driver, "forge", 40, hang=60) == {"ok": 40}


@pytest.mark.filterwarnings("ignore")
def test_fitted_numbers_are_finite(driver) -> None:  # type: ignore[no-untyped-def]
    assert outcomes(driver, "numeric", 30, hang=120) == {"ok": 30}


@pytest.mark.filterwarnings("ignore")
def test_interrupted_commands_leave_nothing(driver, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    kill = driver("kill")
    monkeypatch.setattr(kill, "NAMES", ["predict", "export"])
    assert outcomes(driver, "kill", 5, hang=120) == {"ok": 5}


@pytest.mark.filterwarnings("ignore")
def test_full_disks_are_one_line(driver, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    disk = driver("disk")
    monkeypatch.setattr(disk, "NAMES", ["predict", "export"])
    assert outcomes(driver, "disk", 5, hang=120) == {"ok": 5}


def test_the_drivers_notice_what_goes_wrong(driver) -> None:  # type: ignore[no-untyped-def]
    import os
    import time

    def case(generator, folder):  # type: ignore[no-untyped-def]
        number = case.number = getattr(case, "number", -1) + 1
        if number == 1:
            raise ValueError("foreign")
        if number == 2:
            os.abort()
        return "ok"

    found = list(driver("cases").run_cases(case, 3, hang=60))
    assert [word.split(":")[0] for word in found] == ["ok", "traceback", "crash"]
    assert list(driver("cases").run_cases(lambda *_: time.sleep(60), 1, hang=0.5)) == ["hang"]
