import os
import signal
import sys
from pathlib import Path

import pytest

from cceclust.errors import FileContentError
from cceclust.io.guarded_reading import let_a_child_read_first

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a safe fork")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.h5"
    path.write_bytes(b"x")
    return path


def crash(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def loop(_: Path) -> None:
    while True:
        pass


def fill_the_memory(_: Path) -> None:
    bytearray(1 << 31)


@pytest.mark.parametrize(
    ("read", "reason"), [(crash, "crashes"), (loop, "takes too long"), (fill_the_memory, "fills the memory")]
)
def test_what_kills_the_child_is_an_error(file: Path, read, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FileContentError, match=f"is damaged: reading it {reason}"):
        let_a_child_read_first(file, read)


def test_what_it_raises_is_left_to_the_parent(file: Path) -> None:
    let_a_child_read_first(file, lambda path: path.joinpath("nothing").read_bytes())


def test_each_state_of_a_file_is_tried_once(file: Path) -> None:
    let_a_child_read_first(file, lambda _: None)
    let_a_child_read_first(file, crash)
    file.write_bytes(b"changed")
    with pytest.raises(FileContentError, match="crashes"):
        let_a_child_read_first(file, crash)


def children() -> set[str]:
    """Return the processes that this one has started and not yet waited for."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


def test_no_child_is_left(file: Path) -> None:
    # Other tests in the same process may have started some that live on.
    before = children()
    let_a_child_read_first(file, lambda _: None)
    assert children() <= before
