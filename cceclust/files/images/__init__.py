"""Image collections: folders, lists, archives and the array formats of well-known data sets, behind one interface."""

from cceclust.files.images.collection import ImageCollection
from cceclust.files.images.opening import open_images

__all__ = ["ImageCollection", "open_images"]
