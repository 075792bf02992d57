"""Damaged files: bytes flipped, cut, overwritten, swapped, in every format. No reader may do more than refuse them."""

from __future__ import annotations

import random
from pathlib import Path

from cases import campaign
from samples import samples

from cceclust.errors import CceclustError
from cceclust.io import open_features, read_clusters, read_model
from cceclust.io.description import describe
from cceclust.io.images import open_images
from cceclust.io.partial_labels import read_label_file

TELLING_BYTES = (0, 1, 2, 127, 128, 254, 255)


def damage(content: bytes, generator: random.Random) -> bytes:
    """Change some bytes, mostly near the beginning, where formats say what follows."""
    data = bytearray(content)
    how = generator.choice(("flip", "flip", "header", "header", "cut", "zero", "insert", "swap"))
    if how == "cut":
        return bytes(data[: generator.randrange(len(data))])
    for _ in range(generator.choice((1, 1, 2, 4, 12))):
        place = generator.randrange(min(len(data), 4000) if how == "header" else len(data))
        if how == "flip":
            data[place] ^= 1 << generator.randrange(8)
        elif how == "header":
            data[place] = generator.choice((*TELLING_BYTES, generator.randrange(256)))
        elif how == "zero":
            length = min(generator.choice((1, 4, 8, 64)), len(data) - place)
            data[place : place + length] = bytes(length)
        elif how == "insert":
            data[place:place] = generator.randbytes(generator.choice((1, 3, 8)))
        else:
            other = generator.randrange(len(data))
            data[place], data[other] = data[other], data[place]
    return bytes(data)


def read_everything(path: Path) -> None:
    """Read a file by every reader that may be given one of its kind."""
    readers = [describe, read_label_file, read_images, read_rows]
    readers += [read_clusters] if path.name.startswith("clusters") else []
    readers += [read_model] if path.name.startswith("model") else []
    for read in readers:
        try:
            read(path)
        except CceclustError:
            continue


def read_images(path: Path) -> None:
    """Open a collection and decode all of its images."""
    images = open_images(path.parent if path.name.startswith("image.") else path)
    for index in range(min(len(images), 20)):
        images.read(index)


def read_rows(path: Path) -> None:
    """Open features and read all rows, of every matrix in an AnnData file."""
    datasets = ("X", "layers/columns") if path.suffix == ".h5ad" else (None,)
    for dataset in datasets:
        with open_features(path, dataset=dataset) as features:
            for _, _rows in features.blocks():
                pass


def case(generator: random.Random, folder: Path) -> str:
    """Damage one file and read it."""
    name = generator.choice(sorted(samples()))
    path = folder / name
    path.write_bytes(damage(samples()[name], generator))
    read_everything(path)
    return "ok"


if __name__ == "__main__":
    campaign(case, __doc__)
