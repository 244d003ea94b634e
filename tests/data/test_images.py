"""Images of every kind come out as uint8 (C, H, W), as a viewer shows them; broken ones are named."""

from __future__ import annotations

import io
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")

from PIL import Image

from unswayed.data.core import BadImage
from unswayed.data.images import ImageFiles, decode

COLOURS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 13
GREY = np.arange(6, dtype=np.uint8).reshape(2, 3) * 50


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(("format", "options"), [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("WEBP", {"lossless": True})])
def test_lossless_formats_keep_every_pixel(format: str, options: dict[str, Any]) -> None:
    decoded = decode(encoded(Image.fromarray(COLOURS), format, **options))
    assert decoded.dtype == torch.uint8
    assert decoded.is_contiguous()
    assert np.array_equal(decoded.permute(1, 2, 0), COLOURS)


def test_a_path_is_read_like_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(Image.fromarray(COLOURS)))
    for path in (tmp_path / "a.png", str(tmp_path / "a.png")):
        assert torch.equal(decode(path), decode((tmp_path / "a.png").read_bytes()))


def test_grey_stays_one_channel_unless_three_are_asked_for() -> None:
    raw = encoded(Image.fromarray(GREY))
    assert np.array_equal(decode(raw)[0], GREY)
    assert np.array_equal(decode(raw, 3), np.stack([GREY] * 3))
    assert decode(encoded(Image.fromarray(COLOURS)), 1).shape == (1, 2, 3)
    assert decode(encoded(Image.fromarray(GREY > 100))).tolist() == [[[0, 0, 0], [255, 255, 255]]]


def test_palettes_become_their_colours() -> None:
    image = Image.fromarray(COLOURS).quantize(6)
    assert np.array_equal(decode(encoded(image)).permute(1, 2, 0), np.asarray(image.convert("RGB")))


def test_transparent_parts_are_white() -> None:
    colours = np.dstack([COLOURS, np.array([[0, 255, 128]] * 2, dtype=np.uint8)])
    decoded = decode(encoded(Image.fromarray(colours))).permute(1, 2, 0).numpy()
    assert (decoded[:, 0] == 255).all()
    assert np.array_equal(decoded[:, 1], COLOURS[:, 1])
    half = COLOURS[:, 2] * (128 / 255) + 255 * (127 / 255)
    assert np.abs(decoded[:, 2] - half).max() <= 1
    palette = Image.fromarray(np.zeros((1, 2), dtype=np.uint8)).convert("P")
    assert decode(encoded(palette, transparency=0)).unique().tolist() == [255]
    assert decode(encoded(palette, transparency=b"\x00")).unique().tolist() == [255]
    faint = Image.fromarray(np.array([[[0, 0], [0, 255]]], dtype=np.uint8))
    assert faint.mode == "LA"
    assert decode(encoded(faint)).tolist() == [[[255, 0]]]


def test_cmyk_becomes_rgb() -> None:
    ink = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    red = decode(encoded(ink, "JPEG", quality=95)).float().mean((1, 2))
    assert red[0] > 230
    assert red[1:].max() < 60


def test_16_bits_are_scaled_to_8() -> None:
    deep = np.array([[0, 257, 32896, 65535, 128, 129]], dtype=np.uint16)
    assert decode(encoded(Image.fromarray(deep))).tolist() == [[[0, 1, 128, 255, 0, 1]]]
    for pixels, words in [
        (np.array([[70000]], dtype=np.int32), "go from 70000 to 70000"),
        (np.array([[0.5]], dtype=np.float32), "floating-point"),
    ]:
        with pytest.raises(BadImage, match=words):
            decode(encoded(Image.fromarray(pixels), "TIFF"))


def test_photographs_are_turned_upright_and_a_broken_record_does_no_harm() -> None:
    image = Image.fromarray(COLOURS)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    turned = decode(encoded(image, exif=exif.tobytes())).permute(1, 2, 0)
    assert np.array_equal(turned, np.rot90(COLOURS, -1))
    exif[0x0112] = 99
    assert np.array_equal(decode(encoded(image, exif=exif.tobytes())).permute(1, 2, 0), COLOURS)


def test_the_first_frame_of_an_animation_counts() -> None:
    frames = [Image.new("RGB", (2, 2), colour) for colour in ("red", "blue")]
    raw = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode(raw)[:, 0, 0].tolist() == [255, 0, 0]


def _png_of(width: int, height: int) -> bytes:
    """A PNG file whose head promises a size that its body does not have."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "it is empty"),
        (b"<html>404</html>", "in none of the formats PNG, JPEG, WEBP, "),
        (encoded(Image.fromarray(COLOURS), "EPS"), "in none of the formats"),
        (encoded(Image.fromarray(np.tile(COLOURS, (40, 40, 1))), "JPEG")[:-700], "truncated"),
        (encoded(Image.fromarray(np.tile(COLOURS, (40, 40, 1))))[:-300], "."),
        (_png_of(2000, 1), "truncated"),
        (_png_of(200_000, 200_000), "exceeds limit"),
    ],
)
def test_broken_images_are_named(raw: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.jpg"
    path.write_bytes(raw)
    with pytest.raises(BadImage, match=words) as caught:
        decode(path)
    assert caught.value.path == str(path)
    with pytest.raises(BadImage, match=r"'batch\.parquet, row 7' cannot be read as an image"):
        decode(raw, name="batch.parquet, row 7")


def test_missing_images_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match=r"none\.png' .*: there is no such file"):
        decode(tmp_path / "none.png")
    with pytest.raises(BadImage, match="directory"):
        decode(tmp_path)


def test_long_lists_of_files_cost_their_bytes_only() -> None:
    n = 100_000
    files = ImageFiles("/data", (b"images/%d/%08d.jpg" % (i % 10, i) for i in range(n)))
    assert len(files) == n
    assert [files.path(i) for i in (0, 1, n - 1)] == [
        "/data/images/0/00000000.jpg", "/data/images/1/00000001.jpg", "/data/images/9/00099999.jpg",
    ]  # fmt: skip
    # 21 bytes a name and 8 for where it ends: nothing else is carried into a worker.
    assert len(pickle.dumps(files)) < n * (21 + 8) + 1000
    for row in (-1, n):
        with pytest.raises(IndexError):
            files.path(row)


def test_files_are_read_by_row_also_in_another_process(tmp_path: Path) -> None:
    name = "ä b.png"
    (tmp_path / name).write_bytes(encoded(Image.fromarray(COLOURS)))
    files = pickle.loads(pickle.dumps(ImageFiles(tmp_path, [name.encode(), b"gone.png"])))
    assert np.array_equal(files(0).permute(1, 2, 0), COLOURS)
    with pytest.raises(BadImage, match=r"gone\.png"):
        files(1)
