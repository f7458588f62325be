"""An n-gram model of token ids, as a baseline for the network.

It stores no counts. The positions of the training tokens are sorted by the tokens before each, nearest first, so that
the followers of a context of any length are contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Brants and others, Large Language Models in Machine Translation (2007), section 4.
BACKOFF = 0.4
_ORDER = 5
# Takes 600 MB while sorting, 200 MB afterwards, and five seconds.
TOKEN_BUDGET = 20_000_000


@dataclass(frozen=True, kw_only=True)
class NgramModel:
    """Stupid backoff with contexts of one to four tokens."""

    contexts: np.ndarray
    """(places,) uint64, sorted: the tokens before each position, the nearest in the highest bits."""
    followers: np.ndarray
    """(places,) The token at each of these positions."""
    bits: int
    """Bits per token in a context."""
    totals: np.ndarray
    """(vocabulary,) How often each token occurs."""

    @property
    def order(self) -> int:
        """The model's maximum n: five, or less if the vocabulary is above 65,536."""
        return min(_ORDER, 64 // self.bits + 1)

    def scores(self, ids: Sequence[int]) -> np.ndarray:
        """(vocabulary,) The score of each token as the next one; above 0 for every token that was ever seen.

        A token that followed the longest context is scored by its relative frequency there. Any other token gets 0.4
        times its score after the context without its first token, and so on down to its overall frequency. Scores are
        not probabilities: they add up to more than 1.
        """
        scores: np.ndarray = self.totals / max(1, self.totals.sum())
        for length in range(1, min(self.order - 1, len(ids)) + 1):
            scores *= BACKOFF
            first, last = self._stretch(ids[len(ids) - length :])
            if first == last:
                continue
            counts = np.bincount(self.followers[first:last], minlength=len(scores))
            seen = np.flatnonzero(counts)
            scores[seen] = counts[seen] / (last - first)
        return scores

    def _stretch(self, context: Sequence[int]) -> tuple[int, int]:
        key = 0
        for token in reversed(context):
            key = key << self.bits | int(token)
        free = self.bits * (self.order - 1 - len(context))
        lowest, highest = key << free, (key << free) | ((1 << free) - 1)
        first = np.searchsorted(self.contexts, np.uint64(lowest), side="left")
        last = np.searchsorted(self.contexts, np.uint64(highest), side="right")
        return int(first), int(last)


def fit_ngrams(tokens: np.ndarray, *, vocabulary_size: int) -> NgramModel:
    """Fit the model to a stream of tokens; the first few have too little context and only count toward the totals."""
    bits = 16 if vocabulary_size <= 1 << 16 else max(int(vocabulary_size - 1).bit_length(), 17)
    reach = min(_ORDER, 64 // bits + 1) - 1
    stream = np.asarray(tokens)
    places = max(len(stream) - reach, 0)
    contexts = np.zeros(places, dtype=np.uint64)
    for back in range(1, reach + 1):  # the nearest first, so that the others shift it to the highest bits
        contexts <<= np.uint64(bits)
        contexts |= stream[reach - back :][:places].astype(np.uint64)
    order = np.argsort(contexts, kind="stable")
    return NgramModel(
        contexts=contexts[order],
        followers=stream[reach:][order],
        bits=bits,
        totals=np.bincount(stream, minlength=vocabulary_size),
    )
