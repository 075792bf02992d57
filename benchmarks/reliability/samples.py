"""Small files of every kind that cceclust reads, and its commands inside this process."""

from __future__ import annotations

import contextlib
import io
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import h5py
import numpy as np
from scipy import sparse

from cceclust.cli.main import run
from cceclust.io import Clusters, Model, write_clusters, write_features, write_model

ROWS, COLUMNS, CLUSTERS = 40, 5, 3


@cache
def samples() -> dict[str, bytes]:
    """Return the contents of valid files by name."""
    generator = np.random.default_rng(0)
    folder = Path(mkdtemp(prefix="samples-"))
    labels = generator.integers(0, CLUSTERS, ROWS)
    features = (generator.normal(size=(ROWS, COLUMNS)) + 6 * np.eye(CLUSTERS, COLUMNS)[labels]).astype(np.float32)
    chances = generator.dirichlet(np.ones(CLUSTERS), ROWS).astype(np.float32)
    paths = [f"images/{row}.png" for row in range(ROWS)]
    write_features(folder / "features.h5", features, labels=labels, paths=paths, attributes={"backbone": "none"})
    with h5py.File(folder / "compressed.h5", "w") as file:
        file.create_dataset("features", data=features, chunks=(8, COLUMNS), compression="gzip", shuffle=True)
        file["labels"] = [f"class {label}" for label in labels]
    clusters = Clusters(
        chances.argmax(axis=1),
        chances,
        true_labels=labels,
        paths=np.array(paths),
        outlier_scores=generator.random(ROWS),
        levels=np.array([[2, 0.3], [3, 0.8]]),
        parameters={"method": "cce", "n_clusters": CLUSTERS, "classes": ["a", "b", "c"]},
        diagnostics={"warnings": ["careful"], "modularity": 0.5, "candidates": {"K-means": 0.4}, "reason": "It is."},
        provenance={"features": "features.h5", "dataset": "features"},
    )
    write_clusters(folder / "clusters.h5", clusters)
    write_clusters(folder / "clusters.csv", clusters)
    write_model(folder / "model.safetensors", Model(generator.normal(size=(CLUSTERS, COLUMNS)), np.zeros(CLUSTERS)))
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", labels)
    np.savez(folder / "features.npz", features=features, labels=labels)
    np.savez_compressed(folder / "compressed.npz", features=features, labels=labels)
    (folder / "labels.txt").write_text("\n".join(map(str, labels)))
    write_tables(folder, features, labels)
    write_sparse(folder, features, labels)
    write_images(folder, generator)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def write_tables(folder: Path, features: np.ndarray, labels: np.ndarray) -> None:
    """Write features as tables with names, labels and a column of text."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    columns = {
        "id": [f"row {row}" for row in range(ROWS)],
        **{f"x{number}": column for number, column in enumerate(features.T)},
        "label": labels,
        "path": pa.array([f"images/{row % 3}.png" for row in range(ROWS)]).dictionary_encode(),
    }
    table = pa.table(columns)
    lines = [",".join(columns), *(",".join(map(str, row.values())) for row in table.to_pylist())]
    (folder / "table.csv").write_text("\n".join(lines))
    (folder / "table.tsv").write_text("\n".join(lines).replace(",", "\t"))
    parquet.write_table(table, folder / "table.parquet", row_group_size=25)
    parquet.write_table(pa.table({"id": columns["id"], "vector": features.tolist()}), folder / "lists.parquet")
    feather.write_feather(table, folder / "table.feather", compression="zstd")
    with pa.OSFile(str(folder / "stream.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=15)


def write_sparse(folder: Path, features: np.ndarray, labels: np.ndarray) -> None:
    """Write features as sparse matrices, of SciPy and of AnnData."""
    matrix = sparse.csr_matrix(np.where(features > 0, features, 0))
    sparse.save_npz(folder / "sparse.npz", matrix)
    sparse.save_npz(folder / "pairs.npz", matrix.tocoo(), compressed=False)
    with h5py.File(folder / "sparse.h5ad", "w") as file:
        for name, kind, stored in (("X", "csr", matrix), ("layers/columns", "csc", matrix.tocsc())):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": stored.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(stored, part)
        file["obs/_index"] = [f"cell {row}" for row in range(ROWS)]
        file["obs/kind/categories"] = ["a", "b", "c"]
        file["obs/kind/codes"] = labels.astype(np.int8)
        file["obs"].attrs.update({"_index": "_index", "column-order": np.array(["kind"], h5py.string_dtype())})


def write_images(folder: Path, generator: np.random.Generator) -> None:
    """Write images in the forms that ``extract`` and ``deep`` read."""
    from PIL import Image

    pixels = generator.integers(0, 256, (12, 28, 28), np.uint8)
    np.save(folder / "images.npy", pixels)
    np.savez_compressed(folder / "images.npz", images=pixels, labels=np.arange(12) % 3)
    for ending in ("png", "jpg", "webp", "bmp", "tif"):
        Image.fromarray(pixels[0]).save(folder / f"image.{ending}")
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "image.png", "cat/image.png")
        archive.write(folder / "image.jpg", "dog/image.jpg")


def command(*arguments: object) -> str:
    """Run a command in this process: "ok" if it ends well or with one line of error, otherwise what went wrong."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("Warning: ")]
    if code not in (0, 1):
        return f"exit code {code}: {err.getvalue()[:200]}"
    if code == 1 and (len(lines) != 1 or not lines[0].startswith("Error: ")):
        return f"not one line: {err.getvalue()[:200]}"
    if any(ord(character) < 32 and character != "\n" for character in out.getvalue() + err.getvalue()):
        return "control characters in the output"
    return "ok"
