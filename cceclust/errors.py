"""Every exception that cceclust raises on purpose.

::

    CceclustError
    ├── InputError (ValueError)          a parameter or an array that cannot be used
    ├── FileError (OSError)              a file that cannot be read or written
    │   ├── FileContentError             … because of what is in it
    │   └── TargetExistsError            … because it is there already
    ├── MissingExtraError (ImportError)  an optional package that is not installed
    └── RankError (RuntimeError)         another process of the same command that has ended

The command line prints each of them as one line and exits with 1, so a message says what was expected,
what came, and what to do about it.
"""

from __future__ import annotations

from typing import Self

__all__ = [
    "CceclustError",
    "ClusteringWarning",
    "FileContentError",
    "FileError",
    "InputError",
    "MissingExtraError",
    "RankError",
    "TargetExistsError",
]


class CceclustError(Exception):
    """Base of all errors that cceclust raises on purpose."""


class InputError(CceclustError, ValueError):
    """A parameter or an array that cannot be used."""


class FileError(CceclustError, OSError):
    """A file that cannot be read or written."""


class FileContentError(FileError, ValueError):
    """A file that does not hold what was expected of it."""


class TargetExistsError(FileError):
    """A file that would have been overwritten."""


class MissingExtraError(CceclustError, ImportError):
    """An optional package that is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> Self:
        """Say that something needs a package, and the extra of cceclust to install for it.

        Examples
        --------
        >>> print(MissingExtraError.of("reading images", "Pillow", "torch"))
        reading images needs Pillow; in a clone of cceclust: pip install -c constraints.txt ".[torch]"
        """
        return cls(f'{what} needs {package}; in a clone of cceclust: pip install -c constraints.txt ".[{extra}]"')


class RankError(CceclustError, RuntimeError):
    """Another process of the same command that has ended."""


class ClusteringWarning(UserWarning):
    """A clustering that ran but should not be trusted as it is."""
