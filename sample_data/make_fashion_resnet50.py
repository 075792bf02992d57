"""Make fashion-resnet50.h5: ResNet-50 features of the first 2,000 test images of Fashion-MNIST.

    python benchmarks/paper/as_arrays.py t10k-images-idx3-ubyte.gz fashion-test.npz
    python sample_data/make_fashion_resnet50.py fashion-test.npz resnet50.pth --backbone resnet50-v1

Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
Algorithms", arXiv:1708.07747 (https://github.com/zalandoresearch/fashion-mnist), MIT licence, © 2017 Zalando SE.
"""

import argparse
import tempfile
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from cceclust.io import open_features
from cceclust.io.images import open_images
from cceclust.torch import extract_features

N_IMAGES = 2000
TARGET = Path(__file__).parent / "fashion-resnet50.h5"

# Of the 10 bits of a float16's mantissa 8 are kept: an error of 0.1 % that no clustering notices, and a file that
# compresses to less than 6 MB.
DROPPED_BITS = 2


def round_mantissas(features: NDArray[np.float16]) -> NDArray[np.float16]:
    """Round to fewer bits, half up; all features are positive and far below the largest float16."""
    bits = features.view(np.uint16) + np.uint16(1 << (DROPPED_BITS - 1))
    return (bits >> DROPPED_BITS << DROPPED_BITS).view(np.float16)


def main() -> None:
    """Extract, then write the features once more: compressed, and with source and licence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, help="the test images as arrays (.npz)")
    parser.add_argument("weights", type=Path, help="ImageNet weights of ResNet-50 (.pth or .safetensors)")
    parser.add_argument("--backbone", default="resnet50", help="resnet50-v1 if the weights come from Keras")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        extracted = Path(folder, "features.h5")
        extract_features(
            open_images(options.images, limit=N_IMAGES),
            extracted,
            backbone=options.backbone,
            weights=options.weights,
            dtype="float16",
        )
        with open_features(extracted) as features:
            attributes = {name: value for name, value in features.attributes.items() if name != "input_fingerprint"}
            attributes |= {
                "input": f"{options.images.name} (first {N_IMAGES})",
                "source": "Fashion-MNIST test images, https://github.com/zalandoresearch/fashion-mnist",
                "licence": "MIT, © 2017 Zalando SE",
                "rounding": f"{DROPPED_BITS} of the 10 bits of the mantissas are zero, to make the file small",
            }
            rounded = round_mantissas(features.array())
            with h5py.File(TARGET, "w") as file:
                file.create_dataset("features", data=rounded, compression="gzip", compression_opts=9, shuffle=True)
                file["labels"] = features.labels
                file.attrs.update(attributes)


if __name__ == "__main__":
    main()
