"""The split into training and validation by whole groups, with a proof that the two sides share nothing.

A group is a repository or a package. Groups are considered for validation in the order of a seeded hash of their names,
and taken if they still fit into the requested fraction of bytes, so the choice does not depend on document order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from trainwright_lm.corpus.dedup import Hashes, shingles, text_hash
from trainwright_lm.corpus.options import NEAR
from trainwright_lm.documents import Document
from trainwright_lm.progress import stage

Documents = Callable[[], Iterable[Document]]
"""Gives the documents of a split from the first one on, each time that it is called."""

# Validation shingles to hold in memory at once: 16 bytes each, and more while they are sorted.
_BLOCK_SHINGLES = 2_000_000


def validation_groups(bytes_of: Mapping[str, int], *, share: float, seed: int = 0) -> frozenset[str]:
    """The groups to hold out: about `share` of all bytes, at least one group and never all.

    Args:
        bytes_of: The bytes of each group, two at least.
        share: The requested fraction of all bytes, between 0 and 1. It is not reached if no group fits the remainder.
    """
    budget = share * sum(bytes_of.values())
    chosen: set[str] = set()
    taken = 0
    for group in sorted(bytes_of, key=lambda g: (xxhash.xxh3_64_intdigest(g.encode(), seed), g)):
        if taken + bytes_of[group] <= budget and len(chosen) + 1 < len(bytes_of):
            chosen.add(group)
            taken += bytes_of[group]
    return frozenset(chosen or [min(bytes_of, key=lambda g: (bytes_of[g], g))])


@dataclass(frozen=True, kw_only=True)
class SplitProof:
    """What the two splits share, found by examining every document of both."""

    near: tuple[int, ...]
    """Positions of training documents whose Jaccard index with a validation document reaches the threshold."""
    train_documents: int
    """The others, which stay."""
    validation_documents: int
    groups: frozenset[str]
    """Groups of those that stay that occur in validation, too."""
    equal: frozenset[str]
    """Paths of those that stay whose stripped text also occurs in validation."""


def prove(train: Documents, validation: Documents, *, threshold: float = NEAR, total: int = 0) -> SplitProof:
    """Compare every training document exactly with every validation document.

    Args:
        train, validation: called once, and for training once more per 2 million validation shingles.
        total: the number of training documents, for the bar that is shown.
    """
    groups: set[str] = set()
    texts: set[bytes] = set()
    for document in validation():
        groups.add(document.group)
        texts.add(text_hash(document.text))
    shared, equal, near = dict[int, str](), dict[int, str](), set[int]()
    count = held = done = 0
    with stage("prove") as report:
        for number, block in enumerate(_blocks(validation())):
            held += block.documents
            for position, document in enumerate(train()):
                if not number:
                    count = position + 1
                    if document.group in groups:
                        shared[position] = document.group
                    if text_hash(document.text) in texts:
                        equal[position] = document.path
                if block.nearest(shingles(document.text), threshold) >= threshold:
                    near.add(position)
                done += 1
                report(min(done / max(total, 1), 1.0), f"{done:,} files compared")
    return SplitProof(
        near=tuple(sorted(near)),
        train_documents=count - len(near),
        validation_documents=held,
        groups=frozenset(group for position, group in shared.items() if position not in near),
        equal=frozenset(path for position, path in equal.items() if position not in near),
    )


@dataclass(frozen=True, kw_only=True)
class _Block:
    """The shingles of some validation documents, and which document each belongs to."""

    hashes: Hashes
    """Sorted; equal hashes from several documents are adjacent."""
    owners: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """The number of shingles of each document."""

    @property
    def documents(self) -> int:
        return len(self.sizes)

    def nearest(self, mine: Hashes, threshold: float) -> float:
        """The largest Jaccard index of a document with those of the block if it reaches the threshold, otherwise 0.

        A near duplicate must have at least that fraction of its shingles in the block, so most documents return early.
        """
        if not mine.size or not self.hashes.size:
            return 0.0
        starts = np.searchsorted(self.hashes, mine)
        there = self.hashes[np.minimum(starts, len(self.hashes) - 1)] == mine
        if there.sum() < threshold * mine.size:
            return 0.0
        ends = np.searchsorted(self.hashes, mine[there], side="right")
        spans = [self.owners[s:e] for s, e in zip(starts[there].tolist(), ends.tolist())]
        common = np.bincount(np.concatenate(spans), minlength=self.documents)
        index = float((common / (self.sizes + mine.size - common)).max())
        return index if index >= threshold else 0.0


def _blocks(documents: Iterable[Document]) -> Iterator[_Block]:
    """The documents' shingles in blocks of bounded size; the last one may be empty."""
    sets: list[Hashes] = []
    held = 0
    for document in documents:
        sets.append(shingles(document.text))
        held += sets[-1].size
        if held >= _BLOCK_SHINGLES:
            yield _block(sets)
            sets, held = [], 0
    yield _block(sets)


def _block(sets: list[Hashes]) -> _Block:
    sizes = np.array([one.size for one in sets], dtype=np.int64)
    hashes = np.concatenate([*sets, np.zeros(0, dtype=np.uint64)])
    order = np.argsort(hashes, kind="stable")
    owners = np.repeat(np.arange(len(sets)), sizes)[order]
    return _Block(hashes=hashes[order], owners=owners, sizes=sizes)
