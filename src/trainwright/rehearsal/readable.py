"""Turns rows that a model received back into what a person reads: texts, numbers, lines, and small pictures as PNG data URIs."""

from __future__ import annotations

import base64
import itertools
import math
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core.sample import MASKED, ORDINARY, PADDING, SPECIAL, SamplePart, Span
from trainwright.rehearsal.record import Floats, LabelKind, Output, Sampled
from trainwright.rehearsal.sampling import FEW, Arrays, read_places

# Characters of a text, columns of a table, points of a line and lines of a series that are shown.
MOST_CHARACTERS, MOST_COLUMNS, MOST_POINTS, MOST_LINES = 400, 24, 120, 6
# Numbers in a row up to which they are a table, and from which on they are a wave.
TABLE, WAVE = 64, 1000
# Share of the labels that equal the next tokens of a language model's input.
SHIFTED = 0.8
# Labels of one row that are told one by one.
MOST_LABELS = 60

# Words that stand for padding, without their brackets; an empty one does, too.
_PADDING = ("pad", "padding")
# The largest side of a picture that is shown, and the smallest side of an array that is one.
_MOST_SIDE, _LEAST_SIDE = 64, 8
# How far a picture may lie outside of 0 to 1 after its normalization was undone: a resized one rings.
_OUTSIDE = 0.05


@dataclass(kw_only=True)
class TokenDecoder:
    """Turns token ids into text."""

    decode: Callable[[list[int]], str]
    size: int
    special: frozenset[int] = frozenset()
    padding: int | None = None
    words: tuple[str, ...] = ()

    @classmethod
    def of_words(cls, words: Sequence[str]) -> TokenDecoder:
        """By a list of words; single characters are joined without spaces."""
        short = sum(len(word) == 1 for word in words) > 0.8 * len(words)
        known = tuple(words)
        padding = (i for i, word in enumerate(known) if not word or word.strip("[]<>_ ").lower() in _PADDING)
        return cls(
            decode=lambda ids: ("" if short else " ").join(known[i] for i in ids),
            size=len(known),
            words=known,
            padding=next(padding, None),
        )


@dataclass(kw_only=True)
class Names:
    """What the script's variables say of its numbers."""

    decoders: list[TokenDecoder] = field(default_factory=list)
    classes: list[tuple[str, ...]] = field(default_factory=list)
    columns: list[tuple[str, ...]] = field(default_factory=list)
    normalizations: list[tuple[Floats, Floats]] = field(default_factory=list)

    def add_classes(self, words: Iterable[str]) -> None:
        """Names of classes."""
        self.classes.append(tuple(words))

    def add_columns(self, words: Iterable[str]) -> None:
        """Names of columns."""
        self.columns.append(tuple(words))

    def classes_of(self, output: Output) -> tuple[str, ...]:
        """The names of an output's classes; empty: they are not known, or not for sure."""
        count = 2 if output.kind == LabelKind.BINARY and output.width == 1 else output.width
        return () if output.kind == LabelKind.NUMBERS else _only(self.classes, count)

    def words_of(self, output: Output) -> tuple[str, ...]:
        """The words that an output chooses from, one of a list of so many; empty: the same."""
        return _only([one.words for one in self.decoders], output.width) if output.kind == LabelKind.CLASSES else ()

    def columns_of(self, width: int) -> tuple[str, ...]:
        """The names of so many columns; the same."""
        return _only(self.columns, width)

    def decoder(self, highest: int) -> TokenDecoder | None:
        """What turns ids up to this one into text: a tokenizer before a list of words, the largest of these."""
        fit = [one for one in self.decoders if one.size > highest]
        return next((one for one in reversed(fit) if not one.words), max(fit, key=lambda one: one.size, default=None))


def _only(known: list[tuple[str, ...]], count: int) -> tuple[str, ...]:
    fit = {one for one in known if len(one) == count}
    return fit.pop() if len(fit) == 1 else ()


def read_all(samples: list[tuple[Sampled, Arrays]], names: Names) -> list[Sampled]:
    """The samples, readable and without their numbers."""
    wholes = [array for _, inputs in samples for _, array in inputs if _is_tokens(array, inputs)]
    highest = max((int(array.max(initial=0)) for array in wholes), default=0)
    return [_read(sample, inputs, names, names.decoder(highest)) for sample, inputs in samples]


def _read(sample: Sampled, inputs: Arrays, names: Names, decoder: TokenDecoder | None) -> Sampled:
    tokens = tokens_of(inputs)
    several = len({array.shape for _, array in inputs if array.dtype.kind == "f"}) > 1
    parts = []
    for name, array in inputs:
        if _is_tokens(array, inputs):
            counts = counted_tokens(sample, array.reshape(-1)) if name == tokens[0][0] else None
            mask = mask_of(array, inputs, decoder.padding if decoder is not None else None)
            parts.append(_text(name if len(tokens) > 1 else "", array.reshape(-1), mask, counts, decoder))
        elif array.dtype.kind in "OSU":
            text = " ".join(
                one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in array.flat
            )
            parts.append(
                SamplePart(name=name, form="text", spans=_cut([Span(text=text)])[0], note=_cut([Span(text=text)])[1])
            )
        elif array.size and array.dtype.kind in "fiub" and not _is_aside(array, tokens):
            parts.append(_numbers(name if several or len(inputs) > 1 else "", array, names))
    return replace(sample, inputs=[], parts=tuple(parts), target=_target(sample, tokens, names, decoder))


def tokens_of(inputs: Arrays) -> Arrays:
    """The inputs of a row that are token ids."""
    return [(name, array.reshape(-1)) for name, array in inputs if _is_tokens(array, inputs)]


def _is_tokens(array: NDArray[Any], inputs: Arrays) -> bool:
    """Whether it is a row of token ids: whole numbers, no bytes of a picture, no mask or positions beside others."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize == 1 or array.ndim != 1 or len(array) <= FEW:
        return False
    beside = any(other is not array and other.shape == array.shape for _, other in inputs)
    if array.min() < 0 or (beside and array.max() <= 1):
        return False
    return not np.array_equal(array, np.arange(len(array)))


def _is_aside(array: NDArray[Any], tokens: Arrays) -> bool:
    """Whether it stands beside tokens: a mask, types or positions."""
    return array.dtype.kind in "iub" and any(other.size == array.size for _, other in tokens)


def mask_of(ids: NDArray[Any], inputs: Arrays, padding: int | None = None) -> NDArray[np.bool_] | None:
    """Which tokens of a row are no padding, by a mask beside them; None: there is none."""
    read = read_places(ids[None], [(name, one[None]) for name, one in inputs if one is not ids], padding)
    return None if read is None else read[0]


def counted_tokens(sample: Sampled, tokens: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Which tokens the loss counts, of a row that has a label for each; None: it has not."""
    labels = sample.labels
    if len(labels) < 2 or len(labels) not in (len(tokens), len(tokens) - 1):
        return None
    good = (labels != sample.ignored) & (labels >= 0)
    counts = np.zeros(len(tokens), dtype=bool)
    if _is_shifted(sample, good, tokens):
        counts[1:] = good[: len(tokens) - 1]
        return counts
    return good if len(good) == len(tokens) and good.any() else None


def _is_shifted(sample: Sampled, good: NDArray[np.bool_], tokens: NDArray[Any]) -> bool:
    """Whether the labels are the next tokens: those of a language model."""
    labels = sample.labels
    if sample.output.width <= tokens.max(initial=0):  # classes of the tokens
        return False
    following = tokens[1:][: len(labels)]
    counted = good[: len(following)]
    return bool(counted.any()) and bool((labels[: len(following)] == following)[counted].mean() >= SHIFTED)


def _text(
    name: str,
    ids: NDArray[Any],
    mask: NDArray[Any] | None,
    counts: NDArray[np.bool_] | None,
    decoder: TokenDecoder | None,
) -> SamplePart:
    kinds = []
    for place, token in enumerate(ids.tolist()):
        if (mask is not None and not mask[place]) or (
            decoder is not None and token == decoder.padding and mask is None
        ):
            kinds.append(PADDING)
        elif decoder is not None and token in decoder.special:
            kinds.append(SPECIAL)
        else:
            kinds.append(ORDINARY if counts is None or counts[place] else MASKED)
    if decoder is None and mask is None:  # the same id to the end is padding
        end = len(ids) - next((i for i, token in enumerate(ids[::-1].tolist()) if token != 0), len(ids))
        kinds[end:] = [PADDING] * (len(ids) - end)
    spans, at = [], 0
    for kind, run in itertools.groupby(kinds):
        count = len(list(run))
        part = ids[at : at + count].tolist()
        at += count
        spans.append(Span(text=_padding(part, decoder) if kind == PADDING else _decoded(part, decoder), kind=kind))
    shown, cut = _cut(spans)
    real = sum(kind != PADDING for kind in kinds)
    notes = [f"{real:,} tokens" if real == len(ids) else f"{real:,} of {len(ids):,} places, the rest padding"]
    notes += [f"{int(counts.sum()):,} counted in the loss"] if counts is not None else []
    notes += ["ids: no tokenizer was found"] if decoder is None else []
    return SamplePart(name=name, form="text", note=", ".join([*notes, *([cut] if cut else [])]), spans=shown)


def _decoded(ids: list[int], decoder: TokenDecoder | None) -> str:
    return " ".join(map(str, ids)) + " " if decoder is None else decoder.decode(ids)


def _padding(ids: list[int], decoder: TokenDecoder | None) -> str:
    return f" {_decoded(ids[:1], decoder).strip()}{f' × {len(ids):,}' if len(ids) > 1 else ''} "


def _cut(spans: list[Span]) -> tuple[tuple[Span, ...], str]:
    """The spans up to the limit, and how many characters follow; padding is short, and stays."""
    shown, left, dropped = [], MOST_CHARACTERS, 0
    for span in spans:
        text = span.text if span.kind == PADDING else span.text[:left]
        dropped += len(span.text) - len(text)
        left -= 0 if span.kind == PADDING else len(text)
        shown += [Span(text=text, kind=span.kind)] if text else []
    return tuple(shown), f"{dropped:,} more characters" if dropped else ""


def _numbers(name: str, array: NDArray[Any], names: Names) -> SamplePart:
    array = array[None] if not array.ndim else array
    shape = "×".join(map(str, array.shape))
    if _layout_of(array.shape):
        picture, note = draw(array, names.normalizations)
        return SamplePart(name=name, form="picture", note=note, picture=picture)
    flat = array.reshape(-1).astype(np.float64)
    known = names.columns_of(len(flat)) if array.ndim == 1 and len(flat) <= TABLE else ()
    if array.ndim == 1 and (known or len(flat) <= MOST_COLUMNS):
        columns = known or tuple(f"column {i + 1}" for i in range(len(flat)))
        more = f"{len(flat) - MOST_COLUMNS:,} more columns" if len(flat) > MOST_COLUMNS else ""
        return SamplePart(
            name=name, form="table", note=more, names=columns[:MOST_COLUMNS], values=tuple(flat[:MOST_COLUMNS].tolist())
        )
    long = [size for size in array.shape if size > 1]
    if len(long) == 1:
        form = "wave" if len(flat) >= WAVE else "series"
        return SamplePart(name=name, form=form, note=f"{shape} numbers", lines=(_thinned(flat),))
    if len(long) == 2:
        table = array.reshape(long).astype(np.float64)
        table = (
            table if long[0] < long[1] and long[1] > WAVE / 10 else table.T
        )  # steps come first, unless they are many more
        more = f", {len(table) - MOST_LINES:,} more lines" if len(table) > MOST_LINES else ""
        lines = tuple(map(_thinned, table[:MOST_LINES]))
        return SamplePart(name=name, form="series", note=f"{shape} numbers{more}", lines=lines)
    told = f"{shape} numbers from {flat.min():.3g} to {flat.max():.3g}, mean {flat.mean():.3g}"
    return SamplePart(name=name, form="numbers", note=told)


def _thinned(values: Floats) -> tuple[float, ...]:
    """The values; of many the least and the greatest of each part, in turns."""
    if len(values) <= MOST_POINTS:
        return tuple(values.tolist())
    parts = np.array_split(values, MOST_POINTS // 2)
    return tuple(float(one) for part in parts for one in (part.min(), part.max()))


def _target(sample: Sampled, tokens: Arrays, names: Names, decoder: TokenDecoder | None) -> tuple[Span, ...]:
    """The labels that count, of a row that has many: as text where they are tokens, otherwise by name."""
    labels = sample.labels
    if sample.output.kind != LabelKind.CLASSES or len(labels) < 2:
        return ()
    good = labels[(labels != sample.ignored) & (labels >= 0)].astype(np.int64)
    classes = names.classes_of(sample.output)
    if not len(good):
        return (Span(text="none", kind=MASKED),)
    if tokens and len(labels) <= len(tokens[0][1]):
        if _is_shifted(sample, (labels != sample.ignored) & (labels >= 0), tokens[0][1]):
            return ()  # the next tokens: what does not count is told in the text itself
    if decoder is not None and tokens and not classes and sample.output.width >= decoder.size > good.max():
        return _cut([Span(text=decoder.decode(good.tolist()))])[0]
    if decoder is not None and tokens and len(labels) == len(tokens[0][1]) and len(good) <= MOST_LABELS:
        pairs = zip(tokens[0][1].tolist(), labels.tolist(), strict=True)
        counted = [pair for pair in pairs if pair[1] != sample.ignored and pair[1] >= 0]
        return tuple(
            span
            for token, label in counted
            for span in (
                Span(text=f"{decoder.decode([token]).strip()} ", kind=MASKED),
                Span(text=f"{_named(int(label), classes)}  "),
            )
        )
    if len(good) > MOST_LABELS:
        told = ", ".join(
            f"{_named(one, classes)} {n / len(good):.0%}" for one, n in Counter(good.tolist()).most_common(8)
        )
        return (Span(text=f"{len(good):,} labels: {told}"),)
    return (Span(text=" ".join(_named(one, classes) for one in good.tolist())),)


def _named(number: int, classes: tuple[str, ...]) -> str:
    return classes[number] if classes else str(number)


def _layout_of(shape: tuple[int, ...]) -> str:
    """`first` or `last`, by where the channels are; `none`: there are none; empty: this is no picture."""
    if len(shape) == 3 and shape[0] in (1, 3, 4) and min(shape[1:]) >= _LEAST_SIDE:
        return "first"
    if len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) >= _LEAST_SIDE:
        return "last"
    # Without channels, only what is square: other arrays are series of several numbers.
    return "none" if len(shape) == 2 and shape[0] == shape[1] and shape[0] >= _LEAST_SIDE else ""


def draw(array: NDArray[Any], normalizations: list[tuple[Floats, Floats]]) -> tuple[str, str]:
    """The picture, and what was done to show it.

    Args:
        normalizations: means and deviations of the channels that the script may have applied.
    """
    layout = _layout_of(array.shape)
    picture: Floats = array.astype(np.float64)
    picture = picture[..., None] if layout == "none" else np.moveaxis(picture, 0, -1) if layout == "first" else picture
    picture, note = _scaled(picture, normalizations, whole=array.dtype.kind in "iu")
    step = math.ceil(max(picture.shape[:2]) / _MOST_SIDE)
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
            if undone.min() >= -_OUTSIDE and undone.max() <= 1 + _OUTSIDE:
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
