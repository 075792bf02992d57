import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cceclust.errors import FileError
from cceclust.io.locks import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks of Unix")

HOLDER = """
import sys, time
from pathlib import Path
from cceclust.io.locks import locked
with locked(Path(sys.argv[1]), Path("target")):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(lock: Path) -> "subprocess.Popen[str]":
    """Start another process that holds a lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_other_is_named_and_a_kill_frees_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    process = holder(lock)
    try:
        expected = rf"^process {process.pid} on \S+ is writing target just now"
        with pytest.raises(FileError, match=expected), locked(lock, Path("target")):
            pytest.fail("two hold it")
    finally:
        process.kill()
        process.communicate()
    assert lock.exists()
    with locked(lock, Path("target")) as is_new:
        assert is_new
    assert not lock.exists()


def test_a_thread_may_hold_it_twice_only_if_it_says_so(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock, Path("target")):
        with locked(lock, Path("target"), held_is_fine=True) as is_new:
            assert not is_new
        assert lock.exists()
        with pytest.raises(FileError, match=f"process {os.getpid()} on"), locked(lock, Path("target")):
            pytest.fail("held twice")


def test_another_thread_may_not(tmp_path: Path) -> None:
    lock, refused = tmp_path / "lock", []

    def try_to_take() -> None:
        try:
            with locked(lock, Path("target"), held_is_fine=True):
                pass
        except FileError as error:
            refused.append(error)

    with locked(lock, Path("target")):
        thread = threading.Thread(target=try_to_take)
        thread.start()
        thread.join()
    assert len(refused) == 1


def take_often(lock: str, log: str) -> None:
    for _ in range(200):
        try:
            with locked(Path(lock), Path("target")):
                descriptor = os.open(log, os.O_CREAT | os.O_EXCL)
                os.close(descriptor)
                os.unlink(log)  # noqa: PTH108 (a second owner must not be slowed down)
        except FileError:
            pass


def test_never_two_owners_though_the_file_comes_and_goes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    arguments = (str(tmp_path / "lock"), str(tmp_path / "alone"))
    processes = [context.Process(target=take_often, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_does_not_stop_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locked(tmp_path / "lock", Path("target")) as is_new:
        assert not is_new
    assert list(tmp_path.iterdir()) == []


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"), locked(tmp_path / "lock", Path("target")):
        pytest.fail("taken through a link")
    assert victim.read_text() == "precious"


def test_terminated_owners_remove_the_file(tmp_path: Path) -> None:
    process = holder(tmp_path / "lock")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert list(tmp_path.iterdir()) == []
