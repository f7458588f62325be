"""Small pictures as PNG data URIs."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Floats

# The largest side of a picture that is shown, and the smallest side of an array that is one.
MOST_SIDE, LEAST_SIDE = 64, 8
# How far a picture may lie outside of 0 to 1 after its normalization was undone: a resized one rings.
OUTSIDE = 0.05


def layout_of(shape: tuple[int, ...]) -> str:
    """`first` or `last`, by where the channels are; `none`: there are none; empty: this is no picture."""
    if len(shape) == 3 and shape[0] in (1, 3, 4) and min(shape[1:]) >= LEAST_SIDE:
        return "first"
    if len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) >= LEAST_SIDE:
        return "last"
    # Without channels, only what is square: other arrays are series of several numbers.
    return "none" if len(shape) == 2 and shape[0] == shape[1] and shape[0] >= LEAST_SIDE else ""


def draw(array: NDArray[Any], normalizations: list[tuple[Floats, Floats]]) -> tuple[str, str]:
    """The picture, and what was done to show it.

    Args:
        normalizations: means and deviations of the channels that the script may have applied.
    """
    layout = layout_of(array.shape)
    picture: Floats = array.astype(np.float64)
    picture = picture[..., None] if layout == "none" else np.moveaxis(picture, 0, -1) if layout == "first" else picture
    picture, note = _scaled(picture, normalizations, whole=array.dtype.kind in "iu")
    step = math.ceil(max(picture.shape[:2]) / MOST_SIDE)
    pixels = np.round(255 * picture[::step, ::step]).astype(np.uint8)
    shape = "×".join(map(str, array.shape))
    return _png(pixels), f"{shape}{f', {note}' if note else ''}{f', every {step}th pixel' if step > 1 else ''}"


def _scaled(picture: Floats, normalizations: list[tuple[Floats, Floats]], *, whole: bool) -> tuple[Floats, str]:
    """The picture from 0 to 1."""
    finite = np.isfinite(picture)
    picture = np.where(finite, picture, 0.0)
    least, most = float(picture.min()), float(picture.max())
    told = "" if finite.all() else "holds numbers that are not finite, "
    if least >= 0 and (most <= 1 and not whole):
        return picture, told.rstrip(", ")
    for mean, deviation in normalizations:
        if len(mean) in (1, picture.shape[-1]):
            undone = picture * deviation + mean
            if undone.min() >= -OUTSIDE and undone.max() <= 1 + OUTSIDE:
                return np.clip(undone, 0, 1), f"{told}normalization undone"
    if least >= 0 and 1 < most <= 255 and (whole or most > 50):
        return picture / 255, f"{told}0 to 255".rstrip(", ")
    return (picture - least) / ((most - least) or 1.0), f"{told}stretched from {least:.3g} to {most:.3g}"


def _png(pixels: NDArray[np.uint8]) -> str:
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )
    return "data:image/png;base64," + base64.b64encode(data).decode()
