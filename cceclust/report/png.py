"""PNG images with a palette, which keep a map of many points small."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["encode_png"]

EIGHT_BITS, INDEXED = 8, 3


def encode_png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Return an image as a PNG file.

    Parameters
    ----------
    pixels : ndarray of shape (height, width)
        The position in the palette of each pixel's colour.
    palette : ndarray of shape (n_colours, 4)
        Red, green, blue and opacity, at most 256 colours.
    """
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, INDEXED, 0, 0, 0)
    # Each line of pixels begins with the number of its filter; 0 means none, which suits palettes best.
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = pixels
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            chunk(b"IHDR", header),
            chunk(b"PLTE", palette[:, :3].tobytes()),
            chunk(b"tRNS", palette[:, 3].tobytes()),
            chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )


def chunk(name: bytes, content: bytes) -> bytes:
    """Return a part of a PNG file: length, name, content, checksum."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
