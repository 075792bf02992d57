import os
import subprocess
import sys
from pathlib import Path

import pytest

from cceclust.errors import FileError, InputError, TargetExistsError
from cceclust.io.atomic import check_targets, replacing


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
        check_targets([tmp_path], force=True)


def test_device_as_target_survives_force() -> None:
    with pytest.raises(FileError, match="it is a directory or a device"):
        check_targets(["/dev/null"], force=True)
    assert not Path("/dev/null").is_file()


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"there is no directory .*nowhere; create it first"):
        check_targets([tmp_path / "nowhere" / "x.h5"], force=False)


def test_read_only_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permission bits do not bind root, who may be running this.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="is not writable"):
        check_targets([tmp_path / "x.h5"], force=False)


def test_system_errors_name_the_target(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match=r"cannot write .*x\.txt: No space left on device"),
        replacing(tmp_path / "x.txt"),
    ):
        Path("/dev/full").write_text("x")
    with pytest.raises(FileError, match="File name too long"):
        check_targets([tmp_path / ("x" * 300)], force=False)


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
            with pytest.raises(InputError, match="is one of the files to read; name another to write"):
                check_targets([tmp_path / "other.txt", written], inputs=inputs, force=True)
    check_targets([tmp_path / "other.txt"], inputs=[target, tmp_path / "absent.txt"])


def test_a_file_is_not_written_twice_in_one_go(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    with pytest.raises(InputError, match="would be written twice"):
        check_targets([tmp_path / "a.txt", tmp_path / "below" / ".." / "a.txt"])


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom cceclust.io.atomic import replacing\n"
        "with replacing(sys.argv[1]) as part:\n    part.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    target = tmp_path / "x.h5"
    subprocess.run([sys.executable, "-c", script, target], timeout=60)
    assert len(names(tmp_path)) == 1
    kept = ["x.h5.part", ".x.h5.1.0a.part", ".x.h5.txt", f".x.h5.another-machine.{os.getpid()}.0a.part"]
    for name in kept:
        (tmp_path / name).write_text("left")
    with replacing(target) as part:
        part.write_text("new")
    assert names(tmp_path) == sorted(["x.h5", *kept])


def test_of_two_writers_the_last_wins_with_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "x.h5"
    with replacing(target, force=True) as first:
        first.write_text("first")
        script = (
            f"from cceclust.io.atomic import replacing\nwith replacing({str(target)!r}) as p: p.write_text('second')"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
        assert target.read_text() == "second"
        assert first.read_text() == "first"
    assert target.read_text() == "first"
    assert names(tmp_path) == ["x.h5"]
