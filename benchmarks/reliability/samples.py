"""Small files of every kind that cceclust reads, and its commands inside this process."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from cceclust.cli.main import run
from cceclust.files import Clusters, Model, write_clusters, write_features, write_model

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
    write_features(folder / "compressed.h5", features, labels=[f"class {label}" for label in labels], compress=True)
    clusters = Clusters(
        chances.argmax(axis=1),
        chances,
        true_labels=labels,
        paths=np.array(paths),
        losses=np.array([0.5, 0.4]),
        loss_curves=np.array([[0.9, 0.5], [0.8, 0.4]]),
        parameters={"method": "cce", "n_clusters": CLUSTERS, "classes": ["a", "b", "c"]},
        diagnostics={"warnings": ["careful"], "restart_agreement": 0.5, "n_iter": 2, "converged": True},
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
    write_images(folder, generator)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def write_images(folder: Path, generator: np.random.Generator) -> None:
    """Write images in the forms that ``extract`` and ``deep`` read."""
    from PIL import Image

    pixels = generator.integers(0, 256, (12, 28, 28), np.uint8)
    np.save(folder / "images.npy", pixels)
    np.savez_compressed(folder / "images.npz", images=pixels, labels=np.arange(12) % 3)
    header = b"\0\0\x08\x03" + b"".join(length.to_bytes(4, "big") for length in pixels.shape)
    (folder / "few-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + pixels.tobytes(), mtime=0))
    batch = {b"data": generator.integers(0, 256, (4, 3072), np.uint8), b"labels": [0, 1, 2, 0]}
    (folder / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=2))
    for ending in ("png", "jpg", "webp", "bmp", "tif"):
        Image.fromarray(pixels[0]).save(folder / f"image.{ending}")
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "image.png", "cat/image.png")
        archive.write(folder / "image.jpg", "dog/image.jpg")
    with tarfile.open(folder / "images.tar", "w") as archive:
        archive.add(folder / "image.png", "cat/image.png")
        archive.add(folder / "image.jpg", "dog/image.jpg")


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
