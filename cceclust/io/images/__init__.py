"""Image collections: folders, archives and arrays, behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cceclust.errors import FileContentError, InputError
from cceclust.io.images.arrays import open_array_images
from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.encoded import open_folder, open_zip
from cceclust.io.reading import by_ending, refuse_what_is_no_file

__all__ = ["ImageCollection", "open_images"]

ARRAY_ENDINGS = (".npy", ".npz", ".h5", ".hdf5")


def open_images(
    path: str | Path, *, limit: int | None = None, dataset: str | None = None, labels_dataset: str | None = None
) -> ImageCollection:
    """Open a collection of images.

    Parameters
    ----------
    path : str or Path
        A folder of images (class subfolders become labels), an archive of images (``.zip``), or an array of images
        (``.npy``, ``.npz``, ``.h5``).
    limit : int, optional
        Read only this many images, from the first.
    dataset : str, optional
        Name of the images inside a ``.npz`` or ``.h5`` file; by default ``images`` or the only possible array.
    labels_dataset : str, optional
        Name of the labels inside it; by default ``labels`` if it is there.

    Examples
    --------
    >>> from cceclust.io.images import open_images
    >>> images = open_images("sample_data/digits")
    >>> len(images), images.labels[0], images.read(0).shape
    (40, np.str_('0'), (8, 8, 3))
    """
    path = Path(path)
    is_array = path.suffix.lower() in ARRAY_ENDINGS and not path.is_dir()
    if limit is not None and limit < 1:
        raise InputError(f"limit={limit} images; expected at least 1")
    if not is_array and (dataset is not None or labels_dataset is not None):
        raise InputError(f"{path}: --dataset and --labels-dataset are for files that end in {', '.join(ARRAY_ENDINGS)}")
    read_array = partial(open_array_images, dataset=dataset, labels_dataset=labels_dataset)
    openers: dict[str, Callable[[Path], ImageCollection]] = dict.fromkeys(ARRAY_ENDINGS, read_array)
    openers[".zip"] = open_zip
    if not path.is_dir():
        refuse_what_is_no_file(path)
    images = (
        open_folder(path) if path.is_dir() else by_ending(path, openers, "read images from", FileContentError)(path)
    )
    return images if limit is None else images.first(limit)
