"""Image collections: folders, lists, archives and arrays, behind one interface."""

from cceclust.io.images.collection import ImageCollection
from cceclust.io.images.opening import open_images

__all__ = ["ImageCollection", "open_images"]
