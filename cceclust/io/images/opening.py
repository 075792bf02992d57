"""Opening images: find out what a path holds and open it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cceclust.errors import InputError
from cceclust.io.images.arrays import ArrayImages, open_array_images
from cceclust.io.images.batches import batches_in, read_batch
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.encoded import open_folder, open_list, open_zip
from cceclust.io.reading import refuse_what_is_no_file

__all__ = ["find_batches", "open_images"]

# The file name prefixes of each split in the well-known data sets.
SPLITS = {"train": ("train", "data_batch"), "test": ("test", "t10k"), "unlabeled": ("unlabeled",)}
# The folders that the archives of the data sets unpack to, also below torchvision's download folder.
UNPACKED = ("cifar-10-batches-py", "cifar-100-python", "stl10_binary", "MNIST/raw", "FashionMNIST/raw", "KMNIST/raw")
OPENERS: dict[str, Callable[[Path], ImageCollection]] = {".txt": open_list, ".zip": open_zip}
ARRAY_ENDINGS = (".npy", ".npz", ".h5", ".hdf5")


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
        (``.zip``), an array of images (``.npy``, ``.npz``, ``.h5``), idx files as of MNIST (also gzipped),
        python batches of CIFAR-10 or CIFAR-100, or the binary files of STL-10. Give one file, the folder
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
    suffix = "" if path.is_dir() else path.suffix.lower()
    if limit is not None and limit < 1:
        raise InputError(f"limit={limit} images; expected at least 1")
    if dataset is not None and suffix not in ARRAY_ENDINGS:
        raise InputError(f"{path}: --dataset is for files that end in {', '.join(ARRAY_ENDINGS)}")
    if split is not None and split not in SPLITS:
        raise InputError(f"split={split!r}; expected one of {', '.join(SPLITS)}")
    images: ImageCollection
    if path.is_dir():
        images = open_directory(path, split, labels_dataset)
    elif split is not None:
        raise InputError(f"{path} is one file; a split (here {split!r}) is chosen from a folder of batches")
    else:
        refuse_what_is_no_file(path)
        if suffix in ARRAY_ENDINGS:
            images = open_array_images(path, dataset, labels_dataset)
        elif suffix in OPENERS:
            images = without_choice(OPENERS[suffix], path, labels_dataset)
        else:
            images = ArrayImages(path, [read_batch(path, labels_dataset)])
    return images if limit is None else images.first(limit)


def without_choice(
    open_path: Callable[[Path], ImageCollection], path: Path, labels_dataset: str | None
) -> ImageCollection:
    """Open a collection that has no labels to choose from."""
    if labels_dataset is not None:
        raise InputError(f"{path}: --labels-dataset is for CIFAR-100 and for {', '.join(ARRAY_ENDINGS)} files")
    return open_path(path)


def open_directory(path: Path, split: str | None, labels_name: str | None) -> ImageCollection:
    """Open the batches of a well-known data set if there are any, otherwise a folder of image files."""
    batches = find_batches(path)
    if split is not None:
        batches = [batch for batch in batches if batch.name.startswith(SPLITS[split])]
        if not batches:
            raise InputError(
                f"{path} has no batches of the split {split!r}; for a folder of images, name its subfolder"
            )
        return ArrayImages(f"{path} ({split})", [read_batch(batch, labels_name) for batch in batches])
    if not batches:
        return without_choice(open_folder, path, labels_name)
    labelled = [batch for batch in batches if not batch.name.startswith(SPLITS["unlabeled"])]
    return ArrayImages(path, [read_batch(batch, labels_name) for batch in labelled or batches])


def find_batches(path: Path) -> list[Path]:
    """List the batches of a folder, or of the one data set below it in torchvision's layout."""
    own = batches_in(path)
    found = {path / name: batches for name in UNPACKED if (batches := batches_in(path / name))}
    if not own and len(found) > 1:
        raise InputError(f"{path} holds several data sets; give the folder of one: {', '.join(map(str, found))}")
    return own or next(iter(found.values()), [])
