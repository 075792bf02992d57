"""Make digits.h5 and the folder digits/ of PNG images from scikit-learn's copy of the UCI digits.

    python sample_data/make_digits.py

Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998
(https://doi.org/10.24432/C50P49), licensed CC BY 4.0; the copy is the one that scikit-learn ships.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from cceclust.io import write_features

FOLDER = Path(__file__).parent
IMAGES_A_CLASS = 4

digits = load_digits()
write_features(
    FOLDER / "digits.h5",
    digits.data.astype(np.float32),
    labels=digits.target.astype(np.int64),
    attributes={
        "backbone": "none: the 64 grey values (0 to 16) of 8 × 8 pixels",
        "source": "UCI Optical Recognition of Handwritten Digits, doi:10.24432/C50P49, as shipped by scikit-learn",
        "licence": "CC BY 4.0",
    },
    force=True,
)
for digit in range(10):
    folder = FOLDER / "digits" / str(digit)
    folder.mkdir(parents=True, exist_ok=True)
    for number in np.flatnonzero(digits.target == digit)[:IMAGES_A_CLASS]:
        pixels = np.round(digits.images[number] * (255 / 16)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:04d}.png")
