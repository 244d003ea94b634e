"""Images from files: one decoder for every format, and long lists of files that cost little memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unswayed.data.core import BadImage

if TYPE_CHECKING:
    from PIL.Image import Image

# What the suffixes mean. Pillow is not asked to try its other formats, one of which runs a program of its own.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm")


def decode(source: str | Path | bytes, channels: int | None = None, *, name: object = None) -> Tensor:
    """Return an image as uint8 ``(C, H, W)``, as a viewer shows it.

    ``source`` is a file or the content of one, which errors call ``name``. ``channels`` is 3 (RGB), 1 (grey) or
    ``None``: 1 for images that are grey, 3 for all others. Palettes, CMYK and other colour spaces become RGB,
    transparent parts white, 16 bits a channel 8. A photograph is turned upright as its EXIF record says (torchvision
    does not), and of an animation the first frame counts. What cannot be read whole raises :class:`BadImage`.

    >>> grey = b"P5 2 1 255 " + bytes([7, 9])     # two pixels in the PGM format
    >>> decode(grey).tolist(), decode(grey, 3).shape
    ([[[7, 9]]], torch.Size([3, 1, 2]))
    """
    with _opened(source, name if name is not None else "<bytes>" if isinstance(source, bytes) else source) as image:
        image.load()
        return from_pillow(image, channels)


def look(path: str) -> tuple[int, int, bool]:
    """Return height and width of an image, and whether it is grey, from its head alone."""
    with _opened(path, path) as image:
        return image.height, image.width, _is_grey(image)


@contextmanager
def _opened(source: str | Path | bytes, where: object) -> Iterator[Image]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ImportError("reading images needs Pillow: pip install 'unswayed[data]'") from None
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        with Image.open(file, formats=_FORMATS) as image:
            yield image
    except UnidentifiedImageError:
        raise BadImage(where, _no_image(source)) from None
    except FileNotFoundError:
        raise BadImage(where, "there is no such file") from None
    except MemoryError:
        raise
    # Pillow's decoders raise whatever a broken file makes them stumble over.
    except Exception as error:
        raise BadImage(where, getattr(error, "strerror", None) or str(error) or type(error).__name__) from None


def from_pillow(image: Image, channels: int | None = None) -> Tensor:
    """Return an image of Pillow's as :func:`decode` returns that of a file."""
    pixels = np.asarray(_plain(image, channels))
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy())


def _no_image(source: str | Path | bytes) -> str:
    empty = not source if isinstance(source, bytes) else os.path.getsize(source) == 0
    return "it is empty" if empty else f"it is in none of the formats {', '.join(_FORMATS)}"


def _plain(image: Image, channels: int | None) -> Image:
    """Return the image with one or three channels of 8 bits."""
    from PIL import Image as new
    from PIL import ImageOps

    # A damaged EXIF record is no reason to lose the image.
    with suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)
    grey = _is_grey(image)
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers; save it with 8 or 16 bits a channel")
    if image.mode.startswith("I"):
        deep = np.asarray(image).astype(np.int64)
        if deep.min() < 0 or deep.max() > 65535:
            raise ValueError(f"its pixels go from {deep.min()} to {deep.max()}; save it with 8 or 16 bits a channel")
        image = new.fromarray(((deep + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        shown = image.convert("RGBA")
        page = new.new("RGBA", shown.size, "white")
        page.alpha_composite(shown)
        image = page
    wanted = "L" if channels == 1 or (channels is None and grey) else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _is_grey(image: Image) -> bool:
    return image.mode in ("1", "L", "LA", "La") or image.mode.startswith("I")


class ImageFiles:
    """Reads the images of a long list of files, one at a time: what :attr:`Split.read` wants.

    A million names are kept in one block of bytes: as Python strings they would take four times the memory, and once
    more in each worker process, where counting references writes to shared pages.

    >>> files = ImageFiles("photos", [b"cat/1.png", b"dog/2.png"])
    >>> len(files), files.path(1)
    (2, 'photos/dog/2.png')
    """

    def __init__(self, folder: str | Path, names: Iterable[bytes], channels: int = 3) -> None:
        self.folder, self.channels = str(folder), channels
        block, ends = bytearray(), []
        for name in names:
            block += name
            ends.append(len(block))
        self._block = bytes(block)
        self._ends: NDArray[np.int64] = np.array(ends, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    def path(self, row: int) -> str:
        """Return the path of the file in ``row``."""
        if not 0 <= row < len(self):
            raise IndexError(f"there is no row {row} among {len(self)} images")
        start = int(self._ends[row - 1]) if row else 0
        return os.path.join(self.folder, os.fsdecode(self._block[start : int(self._ends[row])]))

    def __call__(self, row: int) -> Tensor:
        return decode(self.path(row), self.channels)
