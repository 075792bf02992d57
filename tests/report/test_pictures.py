"""Rows that came from arrays of images show them, if the array is where it may be and has one image for each row."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct

import h5py
import numpy as np
import pytest
from PIL import Image

from cceclust.io import Clusters, open_features, write_features
from cceclust.report import pictures as module
from cceclust.report.pictures import ImageFinder, Pictures, find_pictures

N_ROWS = 12


def clusters_from(source):
    return Clusters(np.zeros(N_ROWS, int), provenance={"input": source})


def write_idx(path, n_images=N_ROWS):
    images = np.arange(n_images * 16, dtype=np.uint8).reshape(n_images, 4, 4)
    with gzip.open(path, "wb") as file:
        file.write(b"\0\0\x08\x03" + struct.pack(">III", *images.shape) + images.tobytes())
    return images


def first_values(pictures):
    return [int(pictures.read(row)[0, 0, 0]) for row in range(N_ROWS)]


def test_images_of_mnist_are_found_by_the_name_that_extract_states(tmp_path):
    images = write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", 15)
    stated = f"/elsewhere/t10k-images-idx3-ubyte.gz (first {N_ROWS})"
    found = find_pictures(clusters_from(stated), None, ImageFinder(tmp_path), None)
    assert first_values(found) == images[:N_ROWS, 0, 0].tolist()


def test_batches_of_cifar_and_their_split_are_found(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, value in (("data_batch_1", 10), ("test_batch", 20)):
        batch = {b"data": np.full((N_ROWS, 3072), value, np.uint8), b"labels": [0] * N_ROWS}
        (folder / name).write_bytes(pickle.dumps(batch))
    finder = ImageFinder(tmp_path)
    for split, value in (("train", 10), ("test", 20)):
        found = find_pictures(clusters_from(f"cifar-10-batches-py ({split})"), None, finder, None)
        assert first_values(found) == [value] * N_ROWS
    assert find_pictures(clusters_from("cifar-10-batches-py"), None, finder, None) is None


def test_images_of_stl10_are_found(tmp_path):
    np.full((N_ROWS, 3, 96, 96), 33, np.uint8).tofile(tmp_path / "train_X.bin")
    found = find_pictures(clusters_from("train_X.bin"), None, ImageFinder(tmp_path), None)
    assert first_values(found) == [33] * N_ROWS


def test_arrays_of_hdf5_files_are_found_also_beside_the_features(tmp_path):
    images = np.arange(N_ROWS, dtype=np.uint8)[:, None, None] * np.ones((5, 5), np.uint8)
    with h5py.File(tmp_path / "pixels.h5", "w") as file:
        file["pictures"] = images
        file["masks"] = images * 2
    found = find_pictures(clusters_from("pixels.h5:pictures"), None, ImageFinder(tmp_path), None)
    assert first_values(found) == list(range(N_ROWS))
    write_features(tmp_path / "x.h5", np.eye(N_ROWS, dtype=np.float32))
    with open_features(tmp_path / "x.h5") as features:
        assert find_pictures(Clusters(np.zeros(N_ROWS, int)), features, ImageFinder(tmp_path), None) is None
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["images"] = images
    with open_features(tmp_path / "x.h5") as features:
        found = find_pictures(Clusters(np.zeros(N_ROWS, int)), features, ImageFinder(tmp_path), None)
        assert first_values(found) == list(range(N_ROWS))


def test_a_file_of_images_can_be_given(tmp_path):
    np.save(tmp_path / "images.npy", np.full((N_ROWS, 4, 4), 7, np.uint8))
    file = tmp_path / "images.npy"
    assert first_values(find_pictures(clusters_from(""), None, ImageFinder(file), file)) == [7] * N_ROWS


@pytest.mark.parametrize("n_images", [N_ROWS - 1, N_ROWS + 1])
def test_another_number_of_images_is_not_shown_and_said(tmp_path, n_images):
    file = tmp_path / "images.npy"
    np.save(file, np.zeros((n_images, 4, 4), np.uint8))
    assert find_pictures(clusters_from("images.npy"), None, ImageFinder(tmp_path), None) is None
    found = find_pictures(clusters_from(""), None, ImageFinder(file), file)
    assert found.read(0) is None
    assert "images.npy holds no array of 12 images" in found.described


def test_arrays_outside_of_the_folder_are_not_opened(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    write_idx(outside / "a-images-idx3-ubyte.gz")
    (inside / "a-images-idx3-ubyte.gz").symlink_to(outside / "a-images-idx3-ubyte.gz")
    (inside / "linked").symlink_to(outside, target_is_directory=True)
    (inside / "folder").mkdir()
    (inside / "folder" / "b-images-idx3-ubyte.gz").symlink_to(outside / "a-images-idx3-ubyte.gz")
    (inside / "list.txt").write_text(f"{outside}/a.png\n" * N_ROWS)
    finder = ImageFinder(inside)
    names = ("a-images-idx3-ubyte.gz", "linked", "folder", "list.txt", f"{outside}/a-images-idx3-ubyte.gz", "..")
    for name in names:
        assert find_pictures(clusters_from(name), None, finder, None) is None, name
    assert find_pictures(clusters_from("a-images-idx3-ubyte.gz"), None, ImageFinder(outside), None) is not None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_pipes_are_not_opened(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("a-images-idx3-ubyte", "folder/a-images-idx3-ubyte"):
        os.mkfifo(tmp_path / name)
    for name in ("a-images-idx3-ubyte", "folder"):
        assert find_pictures(clusters_from(name), None, ImageFinder(tmp_path), None) is None


def test_a_sheet_holds_the_pictures_in_order(tmp_path):
    pictures = Pictures(
        lambda row: None if row == 1 else np.full((8, 4, 3), 60 * row, np.uint8), "", ImageFinder(tmp_path)
    )
    sheet, shown, columns, side = pictures.sheet(np.arange(5))
    assert (shown, columns, side) == ([0, 2, 3, 4], 2, 8)
    image = np.asarray(Image.open(io.BytesIO(sheet)).convert("RGB")).astype(int)
    assert np.abs(image[[4, 4, 12, 12], [4, 12, 4, 12], 0] - [0, 120, 180, 240]).max() < 20
    assert Pictures(lambda row: None, "", ImageFinder(tmp_path)).sheet(np.arange(3)) == (b"", [], 1, 1)


def test_a_sheet_that_is_too_large_has_fewer_pictures(tmp_path, monkeypatch):
    noise = np.random.default_rng(0).integers(0, 255, (64, 20, 20, 3)).astype(np.uint8)
    pictures = Pictures(lambda row: noise[row], "", ImageFinder(tmp_path))
    whole = pictures.sheet(np.arange(64))
    monkeypatch.setattr(module, "MOST_BYTES_OF_A_SHEET", len(whole[0]) // 3)
    sheet, shown, columns, _ = pictures.sheet(np.arange(64))
    assert len(sheet) <= len(whole[0]) // 3
    assert shown == list(range(0, 64, 4))
    assert columns == 4
