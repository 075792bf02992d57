"""Opening images: find out what a path holds and open it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from cceclust.errors import FileContentError, InputError
from cceclust.io.images.arrays import ArrayImages, ArrayPart
from cceclust.io.images.cifar import cifar_batches, read_binary_batch, read_python_batch
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.encoded import open_folder, open_list, open_tar, open_zip
from cceclust.io.images.idx import UINT8_MAGIC, idx_batches, read_idx_images
from cceclust.io.images.stl10 import read_stl10, stl10_batches
from cceclust.io.images.stored import open_array_images
from cceclust.io.reading import reading, refuse_what_is_no_file

__all__ = ["open_images"]

# The file name prefixes of each split in the well-known data sets.
SPLITS = {"train": ("train", "data_batch"), "test": ("test", "t10k"), "unlabeled": ("unlabeled",)}
PICKLE_MAGIC = b"\x80"
# The folders that the archives of the data sets unpack to, also below torchvision's download folder.
UNPACKED = (
    "cifar-10-batches-py",
    "cifar-10-batches-bin",
    "cifar-100-python",
    "cifar-100-binary",
    "stl10_binary",
    "MNIST/raw",
    "FashionMNIST/raw",
    "KMNIST/raw",
)
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def open_images(
    path: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    dataset: str | None = None,
    labels_dataset: str | None = None,
) -> ImageCollection:
    """Open a collection of images.

    Parameters
    ----------
    path : str or Path
        A folder of images (class subfolders become labels), a text file of paths (``.txt``), an archive of images
        (``.zip``, ``.tar``), an array of images (``.npy``, ``.npz``, ``.h5``), idx files as of MNIST (also gzipped),
        batches of CIFAR-10 or CIFAR-100 (python or binary), or the binary files of STL-10. Give one file, the folder
        that holds the files, or the folder that torchvision downloaded them to.
    split : {"train", "test", "unlabeled"}, optional
        Which files of a folder of batches to read; all labelled ones by default.
    limit : int, optional
        Read only this many images, from the first.
    dataset : str, optional
        Name of the images inside a ``.npz`` or ``.h5`` file; by default ``images`` or the only possible array.
    labels_dataset : str, optional
        Name of the labels inside it; by default ``labels`` if it is there. For CIFAR-100 ``coarse_labels``, the
        default, or ``fine_labels``.

    Returns
    -------
    ImageCollection

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> images = open_images("sample_data/digits")
    >>> len(images), images.class_names[:3], images.read(0).shape
    (40, ('0', '1', '2'), (8, 8, 3))
    """
    path = Path(path)
    if limit is not None and limit < 1:
        raise InputError(f"limit={limit} images; expected at least 1")
    if path.is_dir():
        if dataset is not None:
            raise InputError(f"{path} is a folder; --dataset is for files that end in {', '.join(ARRAY_ENDINGS)}")
        images = open_directory(path, split, labels_dataset)
    elif split is not None:
        raise InputError(f"{path} is one file; a split (here {split!r}) is chosen from a folder of batches")
    else:
        images = open_file(path, dataset, labels_dataset)
    return images if limit is None else images.first(limit)


def open_directory(path: Path, split: str | None, labels_name: str | None) -> ImageCollection:
    """Open the batches of a well-known data set if there are any, otherwise a folder of image files."""
    batches = find_batches(path)
    if not batches and split is None:
        if labels_name is not None:
            raise InputError(f"{path} is no folder of CIFAR-100, which alone has labels to choose from by name")
        return open_folder_of_images(path)
    if split is None:
        labelled = [batch for batch in batches if not batch.name.startswith(SPLITS["unlabeled"])]
        return ArrayImages(path, [read_batch(batch, labels_name) for batch in labelled or batches])
    if split not in SPLITS:
        raise InputError(f"split={split!r}; expected one of {', '.join(SPLITS)}")
    chosen = [batch for batch in batches if batch.name.startswith(SPLITS[split])]
    if not chosen:
        raise InputError(f"{path} has no batches of the split {split!r}; for a folder of images, give its subfolder")
    return ArrayImages(f"{path} ({split})", [read_batch(batch, labels_name) for batch in chosen])


def find_batches(path: Path) -> list[Path]:
    """List the batches of a folder, or of the one data set below it in torchvision's layout."""
    own = batches_in(path)
    if own:
        return own
    below = {path / name: batches_in(path / name) for name in UNPACKED}
    found = {folder: batches for folder, batches in below.items() if batches}
    if len(found) > 1:
        raise InputError(f"{path} holds several data sets; give the folder of one: {', '.join(map(str, found))}")
    return next(iter(found.values()), [])


def batches_in(folder: Path) -> list[Path]:
    """List the batches that lie in a folder itself."""
    return next((found for find in (cifar_batches, stl10_batches, idx_batches) if (found := find(folder))), [])


def open_folder_of_images(path: Path) -> ImageCollection:
    """Open a folder of image files; if it only holds an archive, raise with advice on unpacking it."""
    try:
        return open_folder(path)
    except FileContentError:
        for archive in sorted(path.iterdir()):
            refuse_compressed(archive)
        raise


def refuse_compressed(path: Path) -> None:
    """Raise if a file is a compressed tar archive, which cannot be read at arbitrary positions."""
    if path.name.lower().endswith(COMPRESSED):
        raise FileContentError(
            f"{path} is a compressed archive; unpack it with: tar -xf {shlex.quote(str(path))} "
            f"-C {shlex.quote(str(path.parent))}, and give the folder that this makes"
        )


def open_file(path: Path, dataset: str | None, labels_dataset: str | None) -> ImageCollection:
    """Open a file by its ending, or by its first bytes."""
    refuse_what_is_no_file(path)
    refuse_compressed(path)
    suffix = path.suffix.lower()
    if suffix in ARRAY_ENDINGS:
        return open_array_images(path, dataset, labels_dataset)
    if dataset is not None:
        raise InputError(f"{path}: --dataset is for files that end in {', '.join(ARRAY_ENDINGS)}")
    if suffix not in OPENERS:
        return ArrayImages(path, [read_batch(path, labels_dataset)])
    if labels_dataset is not None:
        raise InputError(f"{path}: --labels-dataset is for CIFAR-100 and for {', '.join(ARRAY_ENDINGS)} files")
    return OPENERS[suffix](path)


def read_batch(path: Path, labels_name: str | None = None) -> ArrayPart:
    """Read a batch of a well-known data set, with the labels of the given name if it has several."""
    with reading(path, "a batch of images"):
        return read_known_batch(path, labels_name)


def read_known_batch(path: Path, labels_name: str | None) -> ArrayPart:
    """Recognise a batch by its name and its first bytes."""
    with path.open("rb") as file:
        magic = file.read(3)
    if path.suffix == ".bin" and not path.stem.endswith("_X"):
        return read_binary_batch(path, labels_name)
    if magic[:1] == PICKLE_MAGIC:
        return read_python_batch(path, labels_name)
    if labels_name is not None:
        raise InputError(f"{path} is no batch of CIFAR-100, which alone has labels to choose from by name")
    if path.suffix == ".bin":
        return read_stl10(path)
    if path.suffix == ".gz" or magic == UINT8_MAGIC:
        return read_idx_images(path)
    raise FileContentError(
        f"{path} is none of the collections of images that can be read: a folder, "
        f"{', '.join([*OPENERS, *ARRAY_ENDINGS])}, idx files, batches of CIFAR or STL-10"
    )


OPENERS: dict[str, Callable[[Path], ImageCollection]] = {
    ".txt": open_list,
    ".zip": open_zip,
    ".tar": open_tar,
}
ARRAY_ENDINGS = (".npy", ".npz", ".h5", ".hdf5")
