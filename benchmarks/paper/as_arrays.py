"""Turn the files of MNIST (idx), CIFAR-10, CIFAR-100 and STL-10 into one .npz of images and labels.

python benchmarks/paper/as_arrays.py train-images-idx3-ubyte.gz mnist.npz
python benchmarks/paper/as_arrays.py cifar-10-batches-py/data_batch_* cifar10.npz
python benchmarks/paper/as_arrays.py cifar-100-python/train cifar100-20.npz
python benchmarks/paper/as_arrays.py stl10_binary/train_X.bin stl10.npz

`cceclust extract`, `cceclust deep` and the scripts of this folder read the result. Labels of idx and STL-10 files are
taken from the file beside that of the images. Those of CIFAR-100 are the 20 coarse ones unless --fine is given.
"""

import argparse
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
# All that a pickled batch needs: nothing else is loaded, since a pickle could run any code.
PICKLED = {"ndarray", "dtype", "_reconstruct", "_frombuffer", "encode"}
PICKLED_FROM = {"numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy._core.numeric", "_codecs"}


class Unpickler(pickle.Unpickler):
    """Loads numbers, text, lists, dicts and NumPy arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a function that a pickle asks for."""
        if module not in PICKLED_FROM or name not in PICKLED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of images needs")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def read_batch(path: Path, *, fine: bool) -> tuple[Bytes, Bytes]:
    """Read a python batch of CIFAR (https://www.cs.toronto.edu/~kriz/cifar.html)."""
    with path.open("rb") as file:
        batch = Unpickler(file, encoding="bytes").load()
    labels = batch.get(b"labels") or batch[b"fine_labels" if fine else b"coarse_labels"]
    return batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.array(labels, np.uint8)


def read_idx(path: Path) -> Bytes:
    """Read an array of bytes behind a header of its shape (http://yann.lecun.com/exdb/mnist/)."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    shape = np.frombuffer(content, ">u4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def read(path: Path, *, fine: bool) -> tuple[Bytes, Bytes]:
    """Return the images (n, height, width[, 3]) of a file, and their labels."""
    if "idx3" in path.name:
        return read_idx(path), read_idx(path.with_name(path.name.replace("images-idx3", "labels-idx1")))
    if path.name.endswith("_X.bin"):
        # STL-10 stores channels first and columns before rows, and counts labels from 1.
        images = np.fromfile(path, np.uint8).reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)
        return images, np.fromfile(path.with_name(path.name.replace("_X", "_y")), np.uint8) - 1
    return read_batch(path, fine=fine)


def main() -> None:
    """Read all files and write the arrays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="files of images, one after the other in the result")
    parser.add_argument("target", type=Path, help="the .npz to write")
    parser.add_argument("--fine", action="store_true", help="the 100 labels of CIFAR-100")
    options = parser.parse_args()
    images, labels = zip(*(read(file, fine=options.fine) for file in options.files), strict=True)
    np.savez(options.target, images=np.concatenate(images), labels=np.concatenate(labels).astype(np.int64))


if __name__ == "__main__":
    main()
