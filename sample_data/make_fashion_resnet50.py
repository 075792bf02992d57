"""Make fashion-resnet50.h5: ResNet-50 features of the first 2,000 test images of Fashion-MNIST.

    python sample_data/make_fashion_resnet50.py t10k-images-idx3-ubyte.gz resnet50.pth --backbone resnet50-v1

The file of labels, t10k-labels-idx1-ubyte.gz, is looked for beside that of the images.

Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
Algorithms", arXiv:1708.07747 (https://github.com/zalandoresearch/fashion-mnist), MIT licence, © 2017 Zalando SE.
"""

import argparse
import tempfile
from pathlib import Path

from cceclust.files import open_features, write_features
from cceclust.files.images import open_images
from cceclust.torch import extract_features

N_IMAGES = 2000
TARGET = Path(__file__).parent / "fashion-resnet50.h5"


def main() -> None:
    """Extract, then write the features once more: compressed, and with source and licence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, help="t10k-images-idx3-ubyte, plain or gzipped")
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
            }
            write_features(
                TARGET, features.array(), labels=features.labels, attributes=attributes, compress=True, force=True
            )


if __name__ == "__main__":
    main()
