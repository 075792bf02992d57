"""Image collections: folders, lists, archives and the array formats of well-known data sets, behind one interface."""

from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.opening import open_images

__all__ = ["ImageCollection", "open_images"]
