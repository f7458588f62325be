"""The inputs of a set as a table of numbers for the label probe: words, or numbers and their local patterns; and its kernels."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from trainwright.probes.ridge import distances, products, unit

MOST_FEATURES = 4_000
# Correlation of neighboring rows; that of rows in random order is within 0.1 of 0.
SERIES_CORRELATION = 0.5
# Random patterns of 5 x 5 (or 5) values, averaged over all positions: translation-invariant features.
PATTERNS = 64
PATTERN_SIZE = 5
FEWEST_PLACES = 16


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Rows as numbers."""

    kind: str
    features: np.ndarray
    """(rows, features): words, or numbers."""
    more: np.ndarray | None = None
    """(rows, features) combined from several of those: pairs of neighboring words, patterns at any position."""
    odd: np.ndarray | None = None
    """(rows, features) that sums of words cannot express: lengths and sums, and whether they are even."""
    lengths: np.ndarray
    single: bool = True


def read_inputs(part: Mapping[str, list[Any]], accepts: Sequence[str]) -> Inputs | None:
    """The rows as numbers: from their tokens, or else their text, or else their numbers."""
    known = {n: c for n, c in part.items() if n in accepts} or dict(part)
    tokens = [n for n, c in known.items() if n.startswith("input_ids")]
    tokens = tokens or [n for n, c in known.items() if _are_sequences(c)]
    texts = [n for n, c in part.items() if isinstance(c[0], str)]
    if tokens:
        rows = [np.asarray(r).reshape(-1) for r in known[tokens[0]]]
        pairs = len(tokens) > 1 or len(texts) > 1 or any(np.any(r) for r in part.get("token_type_ids", ())[:50])
        if any(r.dtype.kind not in "iu" for r in rows):
            return None
        mask = part.get("attention_mask")
        rows = (
            [r[np.asarray(m).reshape(-1) > 0] if len(np.atleast_1d(m)) == len(r) else r for r, m in zip(rows, mask)]
            if mask is not None
            else rows
        )
        written = [str(t) for t in part[texts[0]]] if texts else None
        return _bag("tokens", [r.tolist() for r in rows], written, single=not pairs)
    numbers = [n for n, c in known.items() if _is_numeric(c)]
    if numbers and (len(numbers) == len(known) or not texts):
        return _numbers([np.stack([_array(v) for v in known[n]]) for n in numbers])
    if texts:
        written = [str(t) for t in part[texts[0]]]
        return _bag("text", [t.lower().split() for t in written], written, single=len(texts) == 1)
    return None


def kernels(inputs: Inputs) -> Iterator[np.ndarray]:
    """The probes' kernels, each with a mean diagonal of 1: linear, pairs of words, near neighbors."""
    if inputs.kind != "numbers":
        length = np.log1p(inputs.lengths)
        length = (length - length.mean()) / (length.std() or 1.0)
        near = np.exp(-0.5 * (length[:, None] - length[None]) ** 2)
        words = products(unit(inputs.features))
        yield words + 0.1 * near
        yield words**2  # every two words of a row, wherever they stand: agreement, negation
        if inputs.more is not None:
            yield 0.5 * words + 0.5 * products(unit(inputs.more)) + 0.1 * near
        if inputs.odd is not None and inputs.odd.shape[1]:
            yield products(inputs.odd) / inputs.odd.shape[1]
        return
    linear = products(inputs.features) / inputs.features.shape[1]
    distance = distances(linear)
    yield linear
    middle = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    yield np.exp(-distance / middle)
    yield np.exp(-8 * distance / middle)
    if inputs.more is not None and inputs.more.shape[1]:
        yield products(inputs.more) / inputs.more.shape[1]


# Fewer distinct whole numbers than in a vocabulary are brightness levels, categories or counts.
_FEWEST_TOKENS = 30


def read_as_tokens(part: Mapping[str, list[Any]], accepts: Sequence[str]) -> Inputs | None:
    """Rows that were read as numbers, as bags of tokens: whole numbers in rows of equal length may be either."""
    known = {n: c for n, c in part.items() if n in accepts} or dict(part)
    for column in known.values():
        if not _is_numeric(column):
            continue
        rows = [np.asarray(_array(v)) for v in column]
        table = np.stack(rows) if all(r.ndim == 1 for r in rows) else np.zeros((0, 0))
        if table.size and bool((table == np.round(table)).all()):
            if table.shape[1] > 1 and len(np.unique(table)) >= _FEWEST_TOKENS:
                ends, counts = np.unique(table[:, -1], return_counts=True)
                filler = ends[counts.argmax()]  # what most rows end with: padding, or a sign
                return _bag("tokens", [[int(v) for v in r if v != filler] for r in table], None, single=True)
    return None


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "numpy") and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float32)


def _are_sequences(column: Sequence[Any]) -> bool:
    """Whether the rows are lists of whole numbers of different lengths."""
    try:
        rows = [np.asarray(v) for v in column]
    except (ValueError, TypeError):
        return False
    return all(r.ndim == 1 and r.dtype.kind in "iu" for r in rows) and len({len(r) for r in rows}) > 1


def _is_numeric(column: Sequence[Any]) -> bool:
    """Whether all rows are arrays of numbers of the same size."""
    try:
        sizes = {_array(v).size for v in column}
    except (ValueError, TypeError):
        return False
    return len(sizes) == 1 and 0 < next(iter(sizes)) <= 1_000_000


def _bag(kind: str, rows: list[list[Any]], written: list[str] | None, *, single: bool) -> Inputs | None:
    words, more = _counts(rows), _counts([list(pairwise(r)) for r in rows])
    if words is None:
        return None
    lengths = np.asarray([len(r) for r in rows], dtype=np.float64)
    return Inputs(
        kind=kind,
        features=words,
        more=more,
        odd=_odd(rows, written),
        lengths=lengths,
        single=single and not _joined(rows),
    )


def _odd(rows: list[list[Any]], written: list[str] | None) -> np.ndarray:
    """(rows, features): lengths, sums, first and last tokens, and whether each is divisible by 2 and by 3."""
    coded = [[int(t) if isinstance(t, (int, np.integer)) else zlib.crc32(t.encode()) for t in r] or [0] for r in rows]
    wide = [[len(r), len(set(r)), sum(r), r[0], r[-1], max(r)] for r in coded]
    if written is not None:
        wide = [
            [*n, len(t), len(t.split()), sum(map(str.isupper, t)), sum(map(str.isdigit, t))]
            for n, t in zip(wide, written)
        ]
    table = np.asarray(wide, dtype=np.float64)
    both = np.concatenate([np.sign(table) * np.log1p(np.abs(table)), table % 2, table % 3 == 0, table % 3 == 1], axis=1)
    both = both - both.mean(axis=0)
    deviation = both.std(axis=0)
    return np.asarray(both[:, deviation > 0] / deviation[deviation > 0])


def _joined(rows: list[list[Any]]) -> bool:
    """Whether a token occurs equally often inside almost every row: a separator of two parts, or a template."""
    inner = [r[1:-1] for r in rows]
    common = set(inner[0])
    for row in inner[1:20]:
        if len(common & set(row)) and len(row):
            common &= set(row)
    for token in common:
        counts = np.asarray([r.count(token) for r in inner])
        if counts.min() >= 0 and np.mean(counts == np.median(counts)) > 0.95 and np.median(counts) > 0:
            return True
    return False


def _counts(rows: list[list[Any]]) -> np.ndarray | None:
    """(rows, features): (1 + log count) x rarity of what occurs in at least two rows; rows have unit length."""
    seen: dict[Any, int] = {}
    for row in rows:
        for item in set(row):
            seen[item] = seen.get(item, 0) + 1
    chosen = sorted((i for i, n in seen.items() if 2 <= n < len(rows)), key=lambda i: -seen[i])[:MOST_FEATURES]
    if len(chosen) < 2:
        return None
    index = {item: k for k, item in enumerate(chosen)}
    table = np.zeros((len(rows), len(chosen)), dtype=np.float32)
    for number, row in enumerate(rows):
        for item in row:
            if (k := index.get(item)) is not None:
                table[number, k] += 1
    rarity = np.log(len(rows) / np.asarray([seen[i] for i in chosen]))
    return np.log1p(table) * rarity.astype(np.float32)


def _numbers(columns: list[np.ndarray]) -> Inputs | None:
    count = len(columns[0])
    wide = [c for c in columns if c[0].size > 1]
    table = _standard(_thinned(np.concatenate([c.reshape(count, -1) for c in columns], axis=1)))
    if table.shape[1] == 0:
        return None
    return Inputs(
        kind="numbers",
        features=table,
        more=_patterns(wide[0]) if wide else None,
        lengths=np.zeros(count),
        # Where each row resembles the one before it, they are windows of a series, or in time order.
        single=len({c.shape for c in wide}) == len(wide) and not (table[1:] * table[:-1]).mean() > SERIES_CORRELATION,
    )


def _thinned(table: np.ndarray) -> np.ndarray:
    if table.shape[1] <= MOST_FEATURES:
        return table
    return table[:, np.linspace(0, table.shape[1] - 1, MOST_FEATURES).astype(int)]


def _standard(table: np.ndarray) -> np.ndarray:
    table = np.where(np.isfinite(table), table, 0.0)
    table = table - table.mean(axis=0)
    deviation = table.std(axis=0)
    return np.asarray((table / np.where(deviation > 0, deviation, 1.0))[:, deviation > 0])


def _patterns(rows: np.ndarray) -> np.ndarray | None:
    """(rows, features): how strongly random local patterns occur at any position of an image or signal."""
    rows = np.where(np.isfinite(rows), rows, 0.0)
    if rows.ndim == 4 and rows.shape[-1] <= 4 < rows.shape[1]:
        rows = rows.transpose(0, 3, 1, 2)
    rows = rows.reshape(len(rows), -1, *rows.shape[-2:]) if rows.ndim > 2 else rows[:, None, None]
    rows = rows[:, :3, :: max(1, rows.shape[2] // 32), :: max(1, rows.shape[3] // (32 if rows.shape[2] > 1 else 256))]
    height, width = min(PATTERN_SIZE, rows.shape[2]), min(PATTERN_SIZE, rows.shape[3])
    if rows.shape[3] < FEWEST_PLACES:
        return None
    rows = (rows - rows.mean()) / (rows.std() or 1.0)
    patterns = np.random.default_rng(3).standard_normal((PATTERNS, rows.shape[1] * height * width)).astype(np.float32)
    patterns -= patterns.mean(axis=1, keepdims=True)
    found = []
    for row in rows.astype(np.float32):
        places = np.lib.stride_tricks.sliding_window_view(row, (height, width), axis=(1, 2))
        places = places.transpose(1, 2, 0, 3, 4).reshape(-1, patterns.shape[1])
        strength = np.maximum(places @ patterns.T, 0.0)
        found.append(np.concatenate([strength.mean(axis=0), strength.max(axis=0)]))
    return _standard(np.asarray(found))
