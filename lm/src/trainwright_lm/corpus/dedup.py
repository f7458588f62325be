"""Deduplication: exact by a hash of the stripped text, near by MinHash, with candidates verified by exact Jaccard.

A text is a set of shingles: hashes of every five consecutive words. A word is a run of letters, digits and underscores
(any byte above 127 counts as a letter). Everything between words is ignored, so layout and punctuation make no difference.

Documents are judged in order. A document is dropped if its text, or a near duplicate, was kept before. So exactly the
first of each class of equal texts is kept, no two kept documents are near duplicates (as far as candidates are found),
and running deduplication on its own output drops nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import rensa
import xxhash
from numpy.typing import NDArray

from trainwright_lm.corpus.options import NEAR

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
    # Of a power of two, so that few tables are cached.
    powers, inverses = _powers(max(1 << 16, 1 << text.size.bit_length()))
    sums = np.zeros(text.size + 1, dtype=np.uint64)
    np.cumsum(_BYTE_VALUES[text] * powers[: text.size], out=sums[1:])
    return _mixed((sums[ends] - sums[starts]) * inverses[starts])


def _mixed(values: Hashes) -> Hashes:
    """Mix each value so that every output bit depends on every input bit (SplitMix64, Steele and others 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@cache
def _powers(length: int) -> Sequence[Hashes]:
    tables = []
    for base in (_BASE, _INVERSE):
        factors = np.full(length, base, dtype=np.uint64)
        factors[0] = 1
        tables.append(np.cumprod(factors, dtype=np.uint64))
    return tables


PERMUTATIONS = 128
_SEED = 20230222
# 32 bands of 4 values: two texts become candidates with probability 1 - (1 - 0.7**4)**32 = 0.9998 at a Jaccard index of
# 0.7, and 0.99999994 at 0.8. Candidates are verified, so short bands cost only time.
BANDS = 32
# A signature's estimate has a standard deviation of at most 0.044 (128 permutations). Candidates whose estimate is
# below the threshold by more than this margin are not verified.
NEAR_MARGIN = 0.2

KEPT = -1
"""The verdict for a kept document; the verdict for a duplicate is the position of the document it duplicates."""


def text_hash(text: str) -> bytes:
    """A 16-byte hash (XXH3, 128 bits) of the text without surrounding white space."""
    return xxhash.xxh3_128_digest(text.strip().encode())


def signature(shingled: Hashes) -> NDArray[np.uint32]:
    """The MinHash signature (PERMUTATIONS values) of a document's shingles."""
    offsets = np.array([0, shingled.size], dtype=np.uint64)
    matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(shingled, offsets, PERMUTATIONS, _SEED)
    return np.array(matrix.to_rows()[0], dtype=np.uint32)


@dataclass(frozen=True, kw_only=True)
class Prints:
    """Deduplication's data per document: 528 bytes, whatever the document's length."""

    hashes: NDArray[np.void]
    """(documents,) of 16 bytes each, from `text_hash`."""
    signatures: NDArray[np.uint32]
    """(documents, PERMUTATIONS), from `signature`."""

    def __len__(self) -> int:
        return len(self.hashes)


def exact_verdicts(hashes: NDArray[np.void]) -> NDArray[np.int64]:
    """A verdict for each document: the position of the first with the same hash, or KEPT."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    originals = first[inverse.reshape(-1)]
    return np.where(originals == np.arange(len(hashes)), KEPT, originals).astype(np.int64)


def near_verdicts(
    prints: Prints, exact: NDArray[np.int64], shingles_of: Callable[[int], Hashes], *, threshold: float = NEAR
) -> Iterator[tuple[int, int]]:
    """Yield positions with their verdicts, in order, for the documents that share a band with another one.

    All other documents that `exact` keeps are kept.

    Args:
        shingles_of: The shingles of the document at a position; called only for candidates.
        threshold: Two documents with at least this Jaccard index are near duplicates.
    """
    documents, buckets, starts = _buckets(prints.signatures, np.flatnonzero(exact == KEPT))
    kept: dict[int, list[int]] = defaultdict(list)
    for row, document in enumerate(documents.tolist()):
        mine = buckets[starts[row] : starts[row + 1]].tolist()
        others = sorted({other for bucket in mine for other in kept.get(bucket, ())})
        verdict = _original(document, others, prints.signatures, shingles_of, threshold)
        yield document, verdict
        if verdict == KEPT:
            for bucket in mine:
                kept[bucket].append(document)


def _original(
    document: int,
    others: list[int],
    signatures: NDArray[np.uint32],
    shingles_of: Callable[[int], Hashes],
    threshold: float,
) -> int:
    """The first of the other documents that is a near duplicate of this one, or KEPT."""
    if not others:
        return KEPT
    estimates = (signatures[others] == signatures[document]).mean(axis=1)
    for other, estimate in zip(others, estimates.tolist()):
        if estimate < threshold - NEAR_MARGIN:
            continue
        if jaccard(shingles_of(document), shingles_of(other)) >= threshold:
            return other
    return KEPT


def _buckets(
    signatures: NDArray[np.uint32], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Documents that share a band with another, and their buckets: row r has buckets[starts[r] : starts[r + 1]]."""
    members, numbers, count = [], [], 0
    for band in range(BANDS):
        width = PERMUTATIONS // BANDS
        columns = np.ascontiguousarray(signatures[positions, band * width : (band + 1) * width])
        _, inverse, sizes = np.unique(
            columns.view(np.dtype((np.void, columns.itemsize * width))).reshape(-1),
            return_inverse=True,
            return_counts=True,
        )
        shared = sizes[inverse.reshape(-1)] > 1
        members.append(positions[shared])
        numbers.append(inverse.reshape(-1)[shared] + count)
        count += len(sizes)
    member = np.concatenate(members) if members else np.zeros(0, dtype=np.int64)
    order = np.argsort(member, kind="stable")
    documents, starts = np.unique(member[order], return_index=True)
    return documents, np.concatenate(numbers)[order], np.append(starts, len(member))
