"""Everything that needs Dask: rows that are spread over many machines, and shards of features that workers read."""

from __future__ import annotations

try:
    import dask.array as _dask
    import distributed as _distributed
except ImportError as error:
    from cceclust.errors import MissingExtraError

    raise MissingExtraError('cceclust.dask needs Dask; install it with: pip install "cceclust[dask]"') from error

from cceclust.dask.arrays import as_dask_array, lazy_results
from cceclust.dask.rows import DaskRows

del _dask, _distributed

__all__ = ["DaskRows", "as_dask_array", "lazy_results"]
