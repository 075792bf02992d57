"""Pictures of rows are found where they may be, and never elsewhere."""

from __future__ import annotations

import io
import os
import zipfile
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from cceclust.io import Clusters, open_features, write_features
from cceclust.report.pictures import find_pictures, shrink

N_ROWS = 12


def clusters_from(source="", paths=None):
    return Clusters(np.zeros(N_ROWS, int), provenance={"input": source}, paths=paths)


def write_images(path, name="images", n_images=N_ROWS):
    images = np.arange(n_images * 16, dtype=np.uint8).reshape(n_images, 4, 4)
    np.savez(path, **{name: images})
    return images


def first_values(pictures):
    return [int(pictures(row)[0, 0, 0]) for row in range(N_ROWS)]


@pytest.mark.parametrize("stated", ["images.npz:images", f"/elsewhere/more.npz:pixels (first {N_ROWS})"])
def test_arrays_of_images_are_found_by_the_name_that_extract_states(tmp_path, stated):
    images = write_images(tmp_path / "images.npz")
    write_images(tmp_path / "more.npz", "pixels", 15)
    assert first_values(find_pictures(clusters_from(stated), None, tmp_path)) == images[:, 0, 0].tolist()


def test_a_dataset_beside_the_features_and_a_file_that_is_asked_for_are_found(tmp_path):
    import h5py

    images = np.arange(N_ROWS, dtype=np.uint8)[:, None, None] * np.ones((5, 5), np.uint8)
    write_features(tmp_path / "x.h5", np.eye(N_ROWS, dtype=np.float32))
    with open_features(tmp_path / "x.h5") as features:
        assert find_pictures(clusters_from(), features, tmp_path) is None
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["images"] = images
    with open_features(tmp_path / "x.h5") as features:
        assert first_values(find_pictures(clusters_from(), features, tmp_path)) == list(range(N_ROWS))
    np.save(tmp_path / "images.npy", images[::-1])
    found = find_pictures(clusters_from(), None, tmp_path, tmp_path / "images.npy")
    assert first_values(found) == list(range(N_ROWS))[::-1]


def test_files_and_members_of_archives_are_read_in_the_order_of_rows(tmp_path):
    paths = np.array([f"{row:02}.png" for row in range(N_ROWS)])
    for row, path in enumerate(paths):
        Image.new("RGB", (9, 9), (row, 0, 0)).save(tmp_path / path)
    assert first_values(find_pictures(clusters_from(paths=paths[::-1]), None, tmp_path)) == list(range(N_ROWS))[::-1]
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for path in paths:
            archive.write(tmp_path / path, path)
    inside = np.array([f"images.zip/{path}" for path in paths])
    assert first_values(find_pictures(clusters_from("images.zip", inside), None, tmp_path)) == list(range(N_ROWS))
    assert find_pictures(clusters_from(paths=np.array(["a text"] * N_ROWS)), None, tmp_path) is None


def test_what_lies_outside_of_the_folder_is_not_opened(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "folder").mkdir()
    write_images(outside / "a.npz")
    Image.new("RGB", (9, 9)).save(outside / "image.png")
    Image.new("RGB", (9, 9)).save(inside / "image.png")
    for link in ("a.npz", "folder/a.npz"):
        (inside / link).symlink_to(outside / "a.npz")
    (inside / "linked").symlink_to(outside, target_is_directory=True)
    (inside / "link.png").symlink_to(outside / "image.png")
    (inside / "loop.png").symlink_to("loop.png")
    (inside / "damaged.png").write_bytes(b"no image")
    (inside / "list.txt").write_text(f"{outside}/image.png\n" * N_ROWS)
    os.mkfifo(inside / "pipe.png")
    os.mkfifo(inside / "b.npz")
    for name in ("a.npz", "b.npz", "linked", "folder", "list.txt", "..", "x" * 999):
        assert find_pictures(clusters_from(name), None, inside) is None, name
    wrong = [
        "../outside/image.png",
        f"{outside}/image.png",
        "link.png",
        "linked/image.png",
        "loop.png",
        "null\0byte.png",
    ]
    paths = np.array(["linked/../inside/image.png", *wrong, "damaged.png", "pipe.png", "absent.png", "/dev/zero", "."])
    pictures = find_pictures(clusters_from(paths=paths), None, inside)
    assert pictures(0) is not None
    assert [paths[row] for row in range(1, N_ROWS) if pictures(row) is not None] == []


def test_small_images_keep_every_pixel_and_large_ones_shrink():
    def decoded(pixels):
        return Image.open(io.BytesIO(b64decode(shrink(pixels, 80).partition(",")[2])))

    small = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8)
    assert np.array_equal(np.asarray(decoded(small)), small)
    assert decoded(np.zeros((600, 300, 3), np.uint8)).size == (40, 80)
