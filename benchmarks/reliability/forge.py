"""Well-formed files that lie: other shapes, types, numbers and texts than the contract has. Commands refuse them."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from cases import campaign
from safetensors.numpy import load_file, save_file
from samples import CLUSTERS, ROWS, command, samples

TEXTS = [
    "",
    "x",
    "\x1b[2J",
    "</script>",
    "=1+1",
    "\u202e",
    "a" * 5000,
    "../../../etc/passwd",
    "/dev/zero",
    "NaN",
    "-1",
    "ü\n",
]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    0.5,
    float("nan"),
    float("inf"),
    [],
    {},
    [[1], [2, 3]],
    {"a": {"b": [1]}},
]


def value(generator: random.Random) -> Any:
    """Return a value that nobody expects."""
    return generator.choice([*TEXTS, *VALUES])


def array(generator: random.Random) -> Any:
    """Return an array of some shape and type."""
    shape = generator.choice(
        [(), (0,), (1,), (ROWS,), (ROWS, 1), (ROWS, CLUSTERS), (CLUSTERS,), (ROWS - 1,), (2, 3, 4)]
    )
    kind = generator.choice(["f2", "f4", "f8", "i1", "i8", "u8", "?", "c8", "S3", "text"])
    if kind == "text":
        return np.array(
            [generator.choice(TEXTS).replace("\0", "") for _ in range(int(np.prod(shape)))], object
        ).reshape(shape)
    numbers = np.random.default_rng(generator.randrange(2**32)).normal(0, generator.choice([1, 1e30]), shape)
    numbers = np.where(numbers > 1, generator.choice([np.nan, np.inf, 0.0, 1.0]), numbers)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(numbers).astype(kind)


def forge_hdf5(path: Path, generator: random.Random) -> None:
    """Replace, add or remove datasets and attributes."""
    with h5py.File(path, "r+") as file:
        for _ in range(generator.choice((1, 1, 2, 3))):
            name = generator.choice([*file, "labels", "probabilities", "levels", "paths", "outlier_scores", "skipped"])
            if name in file and generator.random() < 0.9:
                del file[name]
            if name not in file and generator.random() < 0.8:
                data = array(generator)
                kind = h5py.string_dtype() if data.dtype == object else data.dtype
                file.create_dataset(name, data=data, dtype=kind)
            if generator.random() < 0.5:
                forge_attribute(file, generator)


def forge_attribute(file: h5py.File, generator: random.Random) -> None:
    """Change what a file says about itself."""
    name = generator.choice([*file.attrs, "format", "format_version", "complete", "parameters", "diagnostics", "new"])
    if generator.random() < 0.3:
        file.attrs.pop(name, None)
    elif name in ("parameters", "diagnostics", "provenance") and generator.random() < 0.9:
        entry = generator.choice(
            ["classes", "warnings", "number_of_clusters", "candidates", "features", "dataset", "method"]
        )
        file.attrs[name] = json.dumps({entry: value(generator), "other": value(generator)})
    else:
        data = value(generator)
        is_plain = isinstance(data, str | float) or (isinstance(data, int) and abs(data) < 2**62)
        file.attrs[name] = data if is_plain else json.dumps(data)


def forge_model(path: Path, generator: random.Random) -> None:
    """Change tensors and metadata."""
    tensors = load_file(path)
    for name in ("coef", "intercept"):
        data = array(generator)
        if generator.random() < 0.6 and data.dtype.kind in "fiub" and data.dtype.itemsize > 1:
            tensors[name] = np.ascontiguousarray(data)
        if generator.random() < 0.1:
            tensors.pop(name)
    metadata = {"format": "cceclust-model", "format_version": "1"}
    if generator.random() < 0.6:
        metadata[generator.choice([*metadata, "parameters", "provenance"])] = json.dumps({"classes": value(generator)})
    save_file(tensors, path, metadata)


def forge_table(path: Path, generator: random.Random) -> None:
    """Change cells and lines."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    for _ in range(generator.choice((1, 3, 10))):
        line = generator.choice(lines)
        how = generator.random()
        if how < 0.7:
            line[generator.randrange(len(line))] = generator.choice(TEXTS)
        elif how < 0.85:
            line.append("more")
        else:
            line.pop()
        if not line:
            line.append("")
    path.write_text("\n".join(",".join(line) for line in lines), errors="surrogateescape")


def forge_sparse(path: Path, generator: random.Random) -> None:
    """Change the parts, the shape or the format of a sparse matrix of AnnData, or its observations."""
    with h5py.File(path, "r+") as file:
        for _ in range(generator.choice((1, 1, 2, 3))):
            name = generator.choice(
                ["X/data", "X/indices", "X/indptr", "obs/_index", "obs/kind/codes", "obs/kind/categories"]
            )
            how = generator.random()
            if how < 0.2:
                name, attribute = generator.choice(
                    [("X", "shape"), ("X", "encoding-type"), ("obs", "_index"), ("obs", "column-order")]
                )
                data = value(generator)
                file[name].attrs[attribute] = data if isinstance(data, str | float) else json.dumps(data)
            elif how < 0.4:
                file["X"].attrs["shape"] = generator.choice(
                    [(ROWS, 3), (3, 5), (10**9, 5), (ROWS, 10**12), (0, 0), (-1, 5)]
                )
            elif how < 0.6 and name in file:
                stored = file[name]
                if stored.dtype.kind in "if" and stored.ndim == 1 and len(stored):
                    stored[generator.randrange(len(stored))] = generator.choice([-1, 127, 0])
            else:
                data = array(generator)
                del file[name]
                kind = h5py.string_dtype() if data.dtype == object else data.dtype
                file.create_dataset(name, data=data, dtype=kind)


def forge_arrow(path: Path, generator: random.Random) -> None:
    """Write a table with columns of other types, names and lengths of lists."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    n_rows = generator.choice([0, 1, ROWS])
    makers = [
        lambda: np.full(n_rows, generator.choice([0.0, np.nan, np.inf, 1e300])),
        lambda: [generator.choice([None, 1, 2**62]) for _ in range(n_rows)],
        lambda: [generator.choice([None, *TEXTS]) for _ in range(n_rows)],
        lambda: pa.array([generator.choice([None, *TEXTS]) for _ in range(n_rows)], pa.string()).dictionary_encode(),
        lambda: [[1.0] * generator.choice([2, 2, 3]) for _ in range(n_rows)],
        lambda: [{"a": 1} for _ in range(n_rows)],
        lambda: [b"bytes" for _ in range(n_rows)],
        lambda: pa.nulls(n_rows),
        lambda: pa.array(range(n_rows), pa.timestamp("us")),
    ]
    names = [
        generator.choice(["id", "label", "path", "x", "y", "", *TEXTS]) for _ in range(generator.choice([0, 1, 2, 4]))
    ]
    table = pa.table([pa.array(generator.choice(makers)()) for _ in names], names=names)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)


def case(generator: random.Random, folder: Path) -> str:
    """Forge one file and give it to a command that reads such files."""
    forgers: dict[str, Callable[[Path, random.Random], None]] = {
        "features.h5": forge_hdf5,
        "clusters.h5": forge_hdf5,
        "model.safetensors": forge_model,
        "clusters.csv": forge_table,
        "table.csv": forge_table,
        "table.parquet": forge_arrow,
        "table.feather": forge_arrow,
        "sparse.h5ad": forge_sparse,
    }
    for name in forgers:
        (folder / name).write_bytes(samples()[name])
    shutil.copy(folder / "model.safetensors", folder / "clusters.model.safetensors")
    name = generator.choice(list(forgers))
    forgers[name](folder / name, generator)
    commands: dict[str, list[list[Any]]] = {
        "features.h5": [["info"], ["score"], ["predict", folder / "model.safetensors"]],
        "clusters.h5": [["info"], ["score"], ["score", "--json"], ["report", "-f", "-o", folder / "report.html"]],
        "model.safetensors": [["info"], ["predict"]],
        "clusters.csv": [["score"], ["info"]],
        "table.csv": [["info"], ["score"], ["predict", folder / "model.safetensors"]],
        "table.parquet": [["info"], ["score"], ["predict", folder / "model.safetensors", "--keep", "x"]],
        "table.feather": [["info"], ["score"], ["predict", folder / "model.safetensors", "--id", "x"]],
        "sparse.h5ad": [["info"], ["predict", folder / "model.safetensors", "--write-obs"], ["score"]],
    }
    arguments = generator.choice(commands[name])
    last = [folder / name]
    if arguments == ["predict"]:
        last = [folder / name, folder / "features.h5", "-o", folder / "new.h5"]
    elif arguments[0] == "predict":
        last = [folder / name, "-o", folder / generator.choice(["new.h5", "new.csv", "new.parquet"])]
    return command(*arguments, *last)


if __name__ == "__main__":
    campaign(case, __doc__)
