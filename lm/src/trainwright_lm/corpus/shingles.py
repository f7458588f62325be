"""A text as a set of shingles: hashes of every five consecutive words. This defines near duplication.

A word is a run of letters, digits and underscores (any byte above 127 counts as a letter). Everything between words is
ignored, so layout and punctuation make no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

# SantaCoder (Ben Allal and others, 2023) and StarCoder (Li and others, 2023) use five words to deduplicate code.
WORDS = 5

_IS_WORD = np.zeros(256, dtype=bool)
_IS_WORD[[ord(c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"]] = True
_IS_WORD[128:] = True

_random = np.random.Generator(np.random.PCG64(20230222))
_BYTE_VALUES: Hashes = _random.integers(1, 2**64, size=256, dtype=np.uint64)
_PLACES: Hashes = _random.integers(1, 2**64, size=WORDS, dtype=np.uint64) | np.uint64(1)
# Odd, so that it has an inverse modulo 2**64.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)


def shingles(text: str) -> Hashes:
    """The sorted, distinct 64-bit hashes of a text's shingles; one for fewer than five words, none without words."""
    words = _word_hashes(np.frombuffer(text.encode(), dtype=np.uint8))
    if not words.size:
        return words
    if words.size < WORDS:
        words = np.concatenate([words, np.zeros(WORDS - words.size, dtype=np.uint64)])
    count = words.size - WORDS + 1
    hashes = np.zeros(count, dtype=np.uint64)
    for place, factor in enumerate(_PLACES):
        hashes += words[place : place + count] * factor
    return np.unique(_mixed(hashes))


def jaccard(one: Hashes, other: Hashes) -> float:
    """The Jaccard index of two sets: the size of the intersection over that of the union; 0 if both are empty."""
    common = np.intersect1d(one, other, assume_unique=True).size
    union = one.size + other.size - common
    return common / union if union else 0.0


def _word_hashes(text: NDArray[np.uint8]) -> Hashes:
    """One hash per word, in order: a polynomial of its bytes, computed from prefix sums over the whole text."""
    is_word = np.concatenate([[False], _IS_WORD[text], [False]])
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    starts, ends = edges[0::2], edges[1::2]
    powers, inverses = _powers(_rounded(text.size))
    sums = np.zeros(text.size + 1, dtype=np.uint64)
    np.cumsum(_BYTE_VALUES[text] * powers[: text.size], out=sums[1:])
    return _mixed((sums[ends] - sums[starts]) * inverses[starts])


def _mixed(values: Hashes) -> Hashes:
    """Mix each value so that every output bit depends on every input bit (SplitMix64, Steele and others 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _rounded(length: int) -> int:
    """The next power of two, so that few tables of powers are cached."""
    return max(1 << 16, 1 << length.bit_length())


@cache
def _powers(length: int) -> Sequence[Hashes]:
    tables = []
    for base in (_BASE, _INVERSE):
        factors = np.full(length, base, dtype=np.uint64)
        factors[0] = 1
        tables.append(np.cumprod(factors, dtype=np.uint64))
    return tables
