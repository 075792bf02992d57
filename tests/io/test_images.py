"""Image collections: every format yields the same pixels, order and labels; damage and bombs are refused."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from cceclust.errors import FileContentError, InputError
from cceclust.io.images import ImageCollection, encoded, open_images

GENERATOR = np.random.default_rng(0)
COLOURS = GENERATOR.integers(0, 256, (6, 32, 32, 3), np.uint8)
GREYS = GENERATOR.integers(0, 256, (6, 28, 28), np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9])
CLASS_FOLDERS = ["cat/a", "cat/b", "cat/old/c", "dog/a", "dog/b", "dog/c"]


def save_folder(folder: Path, suffix: str = ".png") -> Path:
    for name, pixels in zip(CLASS_FOLDERS, COLOURS, strict=True):
        file = folder / (name + suffix)
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return folder


def all_pixels(images: ImageCollection) -> np.ndarray:
    return np.stack([images.read(index) for index in range(len(images))])


class TestFolders:
    def test_class_subfolders_become_labels_and_nested_folders_belong_to_their_class(self, tmp_path: Path) -> None:
        images = open_images(save_folder(tmp_path / "pets"))
        assert images.labels is not None
        assert images.labels.tolist() == ["cat", "cat", "cat", "dog", "dog", "dog"]
        np.testing.assert_array_equal(all_pixels(images), COLOURS)

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".JPEG", ".webp", ".bmp", ".tiff"])
    def test_every_image_format_is_found_and_read(self, tmp_path: Path, suffix: str) -> None:
        images = open_images(save_folder(tmp_path, suffix))
        assert all_pixels(images).shape == COLOURS.shape

    def test_images_beside_the_class_folders_leave_all_without_labels(self, tmp_path: Path) -> None:
        Image.fromarray(COLOURS[0]).save(save_folder(tmp_path) / "stray.png")
        assert open_images(tmp_path).labels is None

    def test_hidden_files_and_other_files_are_not_images(self, tmp_path: Path) -> None:
        save_folder(tmp_path)
        (tmp_path / "cat" / "._a.png").write_bytes(b"resource fork")
        (tmp_path / "notes.md").write_text("hello")
        assert len(open_images(tmp_path)) == 6

    def test_a_folder_without_images_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(FileContentError, match="has no images"):
            open_images(tmp_path)

    def test_the_fingerprint_notices_a_changed_a_new_and_a_lost_file(self, tmp_path: Path) -> None:
        save_folder(tmp_path)
        before = open_images(tmp_path).fingerprint()
        assert open_images(tmp_path).fingerprint() == before
        os.utime(tmp_path / "cat" / "a.png", ns=(0, 1))
        changed = open_images(tmp_path).fingerprint()
        (tmp_path / "dog" / "c.png").rename(tmp_path / "dog" / "d.png")
        renamed = open_images(tmp_path).fingerprint()
        assert len({before, changed, renamed}) == 3


class TestArchives:
    @pytest.fixture
    def archive(self, tmp_path: Path) -> Path:
        folder = save_folder(tmp_path / "pets")
        with zipfile.ZipFile(tmp_path / "pets.zip", "w", zipfile.ZIP_DEFLATED) as writer:
            for file in sorted(folder.rglob("*.png"), reverse=True):
                writer.write(file, file.relative_to(tmp_path).as_posix())
            writer.writestr("__MACOSX/pets/cat/a.png", b"resource fork")
        return tmp_path / "pets.zip"

    def test_members_are_read_sorted_with_labels_from_their_folders(self, archive: Path) -> None:
        images = open_images(archive)
        np.testing.assert_array_equal(all_pixels(images), COLOURS)

    def test_a_member_that_is_too_large_is_refused(self, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(encoded, "MAX_MEMBER_BYTES", 100)
        with pytest.raises(FileContentError, match="over the limit of 100"):
            open_images(archive).read(0)

    def test_a_damaged_archive_is_refused(self, archive: Path) -> None:
        archive.write_bytes(b"rubbish" * 100)
        with pytest.raises(FileContentError, match="damaged or not"):
            open_images(archive)

    def test_a_damaged_member_is_refused_and_the_others_are_read(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "pets.zip", "w") as writer:
            for name in ("a.png", "b.png"):
                buffer = io.BytesIO()
                Image.fromarray(COLOURS[0]).save(buffer, "PNG")
                writer.writestr(name, buffer.getvalue())
        content = bytearray((tmp_path / "pets.zip").read_bytes())
        content[100] ^= 0xFF
        (tmp_path / "pets.zip").write_bytes(content)
        images = open_images(tmp_path / "pets.zip")
        with pytest.raises(FileContentError, match="is damaged or not a readable image"):
            images.read(0)
        np.testing.assert_array_equal(images.read(1), COLOURS[0])


class TestArrays:
    @pytest.mark.parametrize("suffix", ["npy", "npz", "h5"])
    def test_every_format_yields_the_same_images(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"images.{suffix}"
        if suffix == "npy":
            np.save(path, COLOURS)
        elif suffix == "npz":
            np.savez(path, images=COLOURS, labels=LABELS)
        else:
            with h5py.File(path, "w") as file:
                file.update({"images": COLOURS, "labels": LABELS})
        images = open_images(path)
        assert (images.labels is None) == (suffix == "npy")
        np.testing.assert_array_equal(all_pixels(images), COLOURS)

    def test_arrays_are_chosen_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "both.npz"
        np.savez(path, x_train=COLOURS, x_test=COLOURS[:2], y_test=LABELS[:2, None])
        with pytest.raises(FileContentError, match="several image arrays"):
            open_images(path)
        images = open_images(path, dataset="x_test", labels_dataset="y_test")
        assert images.labels is not None
        assert images.labels.tolist() == [3, 1]
        with pytest.raises(FileContentError, match="'z_test'"):
            open_images(path, dataset="z_test")
        with pytest.raises(FileContentError, match="'z_test' for labels"):
            open_images(path, dataset="x_test", labels_dataset="z_test")

    def test_grey_becomes_rgb_and_transparency_becomes_white(self, tmp_path: Path) -> None:
        np.save(tmp_path / "grey.npy", GREYS[..., None])
        np.testing.assert_array_equal(open_images(tmp_path / "grey.npy").read(1)[..., 2], GREYS[1])
        transparent = np.zeros((1, 2, 2, 4), np.uint8)
        transparent[0, 0, 0] = (10, 20, 30, 255)
        np.save(tmp_path / "alpha.npy", transparent)
        pixels = open_images(tmp_path / "alpha.npy").read(0)
        assert pixels[0, 0].tolist() == [10, 20, 30]
        assert pixels[1, 1].tolist() == [255, 255, 255]

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (COLOURS.astype(np.float32), "float32; expected uint8"),
            (COLOURS.transpose(0, 3, 1, 2), "which come last"),
            (COLOURS[0, 0], "shape"),
            (COLOURS[:0], "shape"),
        ],
    )
    def test_what_is_no_image_array_is_refused(self, tmp_path: Path, array: np.ndarray, message: str) -> None:
        np.savez(tmp_path / "images.npz", images=array)
        with pytest.raises(FileContentError, match=message):
            open_images(tmp_path / "images.npz")

    def test_labels_must_be_as_many_as_images(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "images.npz", images=COLOURS, labels=LABELS[:5])
        with pytest.raises(FileContentError, match="expected one for 6 images"):
            open_images(tmp_path / "images.npz")


class TestDecoding:
    def read(self, tmp_path: Path, image: Image.Image, name: str = "image.png", **options: object) -> np.ndarray:
        image.save(tmp_path / name, **options)
        return open_images(tmp_path).read(0)

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_exif_orientation_is_applied(self, tmp_path: Path, orientation: int) -> None:
        upright = Image.fromarray(COLOURS[0][:8, :4])
        turned = {
            2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
            5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
            8: Image.Transpose.ROTATE_270,
        }  # fmt: skip
        stored = upright.transpose(turned[orientation]) if orientation in turned else upright
        exif = Image.Exif()
        exif[0x0112] = orientation
        pixels = self.read(tmp_path, stored, exif=exif.tobytes())
        np.testing.assert_array_equal(pixels, np.asarray(upright))

    def test_transparent_pixels_become_white(self, tmp_path: Path) -> None:
        pixels = self.read(tmp_path, Image.new("RGBA", (4, 4), (200, 0, 0, 0)))
        assert (pixels == 255).all()

    def test_half_transparent_grey_is_blended_with_white(self, tmp_path: Path) -> None:
        pixels = self.read(tmp_path, Image.new("LA", (4, 4), (0, 51)))
        assert (pixels == 204).all()

    def test_sixteen_bit_grey_is_scaled_not_clipped(self, tmp_path: Path) -> None:
        pixels = self.read(tmp_path, Image.fromarray(np.full((4, 4), 0x8080, np.uint16)))
        assert (pixels == 0x80).all()

    @pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK"])
    def test_other_modes_become_rgb(self, tmp_path: Path, mode: str) -> None:
        image = Image.fromarray(COLOURS[0]).convert(mode)
        assert self.read(tmp_path, image, "image.tiff").shape == (32, 32, 3)

    def test_a_bomb_is_refused_by_its_header(self, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        Image.new("1", (8, 8)).save(buffer, "PNG")
        content = bytearray(buffer.getvalue())
        content[16:24] = struct.pack(">2I", 60000, 60000)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        (tmp_path / "bomb.png").write_bytes(content)
        with pytest.raises(FileContentError, match="refused"):
            open_images(tmp_path).read(0)

    @pytest.mark.parametrize("content", [b"", b"rubbish", "truncated", "a script"])
    def test_damaged_images_are_refused(self, tmp_path: Path, content: bytes | str) -> None:
        Image.fromarray(COLOURS[0]).save(tmp_path / "image.png")
        if content == "truncated":
            content = (tmp_path / "image.png").read_bytes()[:500]
        elif content == "a script":
            # Pillow would hand PostScript to another program.
            content = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
        (tmp_path / "image.png").write_bytes(content)  # type: ignore[arg-type]
        with pytest.raises(FileContentError, match="not a readable image"):
            open_images(tmp_path).read(0)


def test_a_limit_keeps_the_first_images(tmp_path: Path) -> None:
    images = open_images(save_folder(tmp_path), limit=4)
    assert len(images) == 4
    assert images.labels is not None
    assert images.paths is not None
    assert len(images.labels) == len(images.paths) == 4
    np.testing.assert_array_equal(all_pixels(images), COLOURS[:4])
    assert images.fingerprint() != open_images(tmp_path, limit=5).fingerprint()
    assert len(open_images(tmp_path, limit=100)) == 6
    with pytest.raises(InputError, match="limit=0"):
        open_images(tmp_path, limit=0)


def test_an_unknown_file_is_refused_with_what_would_do(tmp_path: Path) -> None:
    (tmp_path / "images.rar").write_bytes(b"Rar!")
    with pytest.raises(FileContentError, match=r"cannot read images from files that end in '.rar'.*\.zip"):
        open_images(tmp_path / "images.rar")


@pytest.mark.parametrize("name", ["dataset", "labels_dataset"])
def test_names_of_arrays_are_for_files_of_arrays(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="are for files that end in"):
        open_images(save_folder(tmp_path), **{name: "x"})
