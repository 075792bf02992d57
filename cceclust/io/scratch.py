"""Arrays that do not fit into memory, in files that nobody can forget to remove."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust.errors import FileError

__all__ = ["scratch_array"]


def scratch_array(shape: tuple[int, ...], dtype: np.dtype[Any], *, folder: Path) -> NDArray[Any]:
    """Return an array, not yet filled, that is mapped to a file without a name in a folder.

    The system frees the file with the array, or when the process ends, however it ends: nothing is left of it.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    dtype : dtype
        Its type.
    folder : Path
        Should be on a disk; in some systems, the usual folder for temporary files is in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from cceclust.io.scratch import scratch_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     array = scratch_array((2, 3), np.dtype("float32"), folder=Path(folder))
    ...     array[:] = 1
    ...     array.sum(), list(Path(folder).iterdir())
    (np.float32(6.0), [])
    """
    n_bytes = math.prod(shape) * dtype.itemsize
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                # Writing to a map of a file that the disk has no room for would end the process.
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise FileError(
            f"cannot write a scratch file of {n_bytes:,} bytes to {folder}: {error.strerror or error}; "
            "allow more memory, or name an output in another folder"
        ) from error
