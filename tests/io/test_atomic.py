import os
import subprocess
import sys
from pathlib import Path

import pytest

from cceclust.errors import FileError, InputError, TargetExistsError
from cceclust.io.atomic import claiming, refuse_to_overwrite, replacing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_target_appears_only_when_whole(tmp_path: Path) -> None:
    target = tmp_path / "numbers.txt"
    with replacing(target) as part:
        part.write_text("half")
        assert not target.exists()
        assert part.parent == target.parent
        part.write_text("whole")
    assert target.read_text() == "whole"
    assert names(tmp_path) == ["numbers.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "numbers.txt"
    target.write_text("old")
    with pytest.raises(error), replacing(target, force=True) as part:  # noqa: PT012 (the body is what fails)
        part.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["numbers.txt"]


@pytest.mark.skipif(os.name == "nt", reason="modes of Unix")
def test_permissions_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "secret.txt"
    target.write_text("old")
    target.chmod(0o600)
    with replacing(target, force=True) as part:
        part.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    target = tmp_path / "numbers.txt"
    target.write_text("old")
    with pytest.raises(TargetExistsError, match=r"numbers\.txt exists already; use --force"), replacing(target):
        pytest.fail("the work must not start")
    with replacing(target, force=True) as part:
        part.write_text("new")
    assert target.read_text() == "new"


def test_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "numbers.txt"
    with pytest.raises(TargetExistsError), replacing(target) as part:  # noqa: PT012 (leaving it is what fails)
        part.write_text("ours")
        target.write_text("another's")
    assert target.read_text() == "another's"


def test_directory_as_target(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="it is a directory or a device"):
        refuse_to_overwrite(tmp_path, force=True)


def test_device_as_target_survives_force() -> None:
    with pytest.raises(FileError, match="it is a directory or a device"):
        refuse_to_overwrite("/dev/null", force=True)
    assert not Path("/dev/null").is_file()


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no directory .*nowhere; create it first"):
        refuse_to_overwrite(tmp_path / "nowhere" / "x.h5", force=False)


def test_read_only_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permission bits do not bind root, who may be running this.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="is not writable"):
        refuse_to_overwrite(tmp_path / "x.h5", force=False)


def test_system_errors_name_the_target(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match=r"cannot write .*x\.txt: No space left on device"),
        replacing(tmp_path / "x.txt"),
    ):
        Path("/dev/full").write_text("x")
    with pytest.raises(FileError, match="File name too long"):
        refuse_to_overwrite(tmp_path / ("x" * 300), force=False)


def spellings(folder: Path) -> list[Path]:
    """Return other names of the file ``numbers.txt``."""
    target = folder / "numbers.txt"
    (folder / "below").mkdir()
    (folder / "symbolic.txt").symlink_to(target)
    (folder / "chain.txt").symlink_to("symbolic.txt")
    (folder / "linked").symlink_to(folder, target_is_directory=True)
    (folder / "hard.txt").hardlink_to(target)
    names = ["numbers.txt", "below/../numbers.txt", "symbolic.txt", "chain.txt", "linked/numbers.txt", "hard.txt"]
    return [folder / name for name in names]


def test_an_input_is_no_target_by_any_name(tmp_path: Path) -> None:
    target = tmp_path / "numbers.txt"
    target.write_text("old")
    for name in spellings(tmp_path):
        for inputs, written in (([target], name), ([name], target)):
            with (
                pytest.raises(InputError, match="is one of the files to read; name another to write"),
                claiming([tmp_path / "other.txt", written], inputs=inputs, force=True),
            ):
                pytest.fail(f"{name} may be written")
    with claiming([tmp_path / "other.txt"], inputs=[target, tmp_path / "absent.txt"]):
        pass


def test_one_file_is_not_claimed_twice_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    with (
        pytest.raises(InputError, match="would be written twice"),
        claiming([tmp_path / "a.txt", tmp_path / "below" / ".." / "a.txt"]),
    ):
        pytest.fail("claimed")


def test_claims_end_and_leave_nothing(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with claiming([target, tmp_path / "b.txt"]):
        assert names(tmp_path) == [".a.txt.lock", ".b.txt.lock"]
        with pytest.raises(FileError, match="is writing"), claiming([target]):
            pytest.fail("claimed twice")
        with replacing(target) as part:
            part.write_text("written within the claim")
    assert names(tmp_path) == ["a.txt"]


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    kept = ["x.h5.part", ".x.h5.1.0a.part", ".x.h5.txt", ".y.h5.0a.part", ".x.h5..part", ".xyh5.0a.part"]
    for name in [".x.h5.4711.part", ".x.h5.00ff00ff.part", ".x.h5.lock", *kept]:
        (tmp_path / name).write_text("left")
    with replacing(tmp_path / "x.h5") as part:
        part.write_text("new")
    assert names(tmp_path) == sorted(["x.h5", *kept])


def test_parts_of_a_living_writer_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "x.h5"
    with replacing(target) as part:
        part.write_text("first")
        script = f"from cceclust.io.atomic import replacing\nwith replacing({str(target)!r}): pass"
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert f"process {os.getpid()} on" in result.stderr
        assert part.read_text() == "first"
    assert target.read_text() == "first"
