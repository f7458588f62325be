"""The baselines for the network's completions: an n-gram model, and the most frequent rest of the line."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainwright_lm.completion.complete import LONGEST_LINE_TOKENS, Logits
from trainwright_lm.completion.complete import Completer as LineCompleter
from trainwright_lm.evaluation.cuts import Cut
from trainwright_lm.evaluation.quality import Completer
from trainwright_lm.network.model import Transformer
from trainwright_lm.tokens.pack import TokenFile
from trainwright_lm.tokens.tokenizer import Tokenizer

# Brants and others, Large Language Models in Machine Translation (2007), section 4.
BACKOFF = 0.4
_ORDER = 5
# Takes 600 MB while sorting, 200 MB afterwards, and five seconds.
TOKEN_BUDGET = 20_000_000
# Training text to search for each cut's words: at most a fifth of a second per cut.
TEXT_BUDGET_BYTES = 16_000_000
# Maximum number of occurrences to look at per cut; the most frequent rest is clear long before.
_MOST_PLACES = 20_000
# Tokens before a cut that the n-gram model is given: more than count for it.
_CONTEXT = 64

# The last dotted name and what follows it: `plt.sc`, `ax = `, `fit(X, `.
_LAST_WORDS = re.compile(r"[\w.]+[^\w.]*$")
# The last identifier, or the last sign and the space after it.
_LAST_PIECE = re.compile(r"(?:\w+|[^\w\s]\s*|\s+)$")
_WORD_BYTE = re.compile(rb"[\w\x80-\xff]")


@dataclass(frozen=True, kw_only=True)
class NgramModel:
    """Stupid backoff with contexts of one to four tokens.

    It stores no counts. The positions of the training tokens are sorted by the tokens before each, nearest first, so that
    the followers of a context of any length are contiguous.
    """

    contexts: np.ndarray
    """(places,) uint64, sorted: the tokens before each position, the nearest in the highest bits."""
    followers: np.ndarray
    """(places,) The token at each of these positions."""
    bits: int
    """Bits per token in a context."""
    totals: np.ndarray
    """(vocabulary,) How often each token occurs."""
    order: int
    """The model's maximum n: five, or less if the vocabulary is above 65,536."""

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
    reach = min(_ORDER - 1, 64 // bits)
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
        order=reach + 1,
    )


def sampled_stream(file: TokenFile, *, token_budget: int, seed: int) -> np.ndarray:
    """Whole documents in random order, with end tokens: as many as fit into the budget, at least one."""
    starts = np.asarray(file.starts, dtype=np.int64)
    order = np.random.default_rng(seed).permutation(len(starts) - 1)
    sizes = np.diff(starts)[order]
    kept = order[: max(1, int(np.searchsorted(np.cumsum(sizes), token_budget, side="right")))]
    return np.concatenate([file.tokens[starts[i] : starts[i + 1]] for i in kept] or [file.tokens[:0]])


def decode_stream(stream: np.ndarray, tokenizer: Tokenizer, *, byte_budget: int) -> bytes:
    """The text of a token stream up to the budget, with a newline in place of each end token."""
    text = bytearray()
    for document in np.split(stream, np.flatnonzero(stream == tokenizer.end_id)[:-1] + 1):
        text += tokenizer.decode_bytes(document.tolist()) + b"\n"
        if len(text) >= byte_budget:
            break
    return bytes(text[:byte_budget])


class NgramDecoder:
    """An n-gram model in the place of the network, as a decoder of completions."""

    context = _CONTEXT

    def __init__(self, model: NgramModel) -> None:
        self._model = model
        self._ids: list[int] = []

    def read(self, ids: Sequence[int], last: int = 1) -> Tensor:
        self._ids = list(ids)
        return torch.stack([self._logits(ids[: len(ids) - back]) for back in reversed(range(last))])

    def take_back(self, count: int) -> None:
        del self._ids[len(self._ids) - count :]

    def add(self, token: int) -> Tensor:
        self._ids.append(token)
        return self._logits(self._ids)

    def _logits(self, ids: Sequence[int]) -> Tensor:
        with np.errstate(divide="ignore"):  # a token that was never seen scores 0
            return torch.from_numpy(np.log(self._model.scores(ids)))


def line_completer(
    model: Transformer | Logits, tokenizer: Tokenizer, *, limit: int = LONGEST_LINE_TOKENS, recalls: bool = True
) -> Completer:
    """A completer that works as `trainwright lm complete` does: greedy, to the end of the line, with all text before.

    Args:
        limit: Maximum number of tokens.
        recalls: False: the model alone, with as much of the text before as it can hold.
    """
    completer = LineCompleter(model, tokenizer, recalls=recalls)
    return lambda cut: completer.complete(cut.before, limit=limit)


def frequent_completer(text: bytes) -> Completer:
    """A completer that continues a cut with what most often follows the same words in a text, to the line's end.

    The words are the last dotted name and what follows it (`plt.`, `.fit(`, `ax.sc`, `x = `). If they do not occur in
    the text, only the last identifier or sign is used. If that does not occur either, the completion is empty.
    """
    rest_after = functools.cache(lambda words: most_frequent_rest(text, words))
    return lambda cut: next(filter(None, map(rest_after, last_words(cut))), "")


def last_words(cut: Cut) -> Sequence[str]:
    """The words to look up for a cut, the most specific first."""
    longest = cut.prompt_end or cut.typed
    matches = (_LAST_WORDS.search(longest), _LAST_PIECE.search(longest))
    words = [cut.prompt_end, *(match[0] for match in matches if match)]
    return [one for one in dict.fromkeys(words) if one]


def most_frequent_rest(text: bytes, words: str) -> str:
    """The most frequent nonempty text between these words and the end of the line; of equals, the first seen."""
    key = words.encode()
    begins_word = _WORD_BYTE.match(key)
    places = itertools.islice(re.finditer(re.escape(key) + rb"(?=(.*))", text), _MOST_PLACES)
    found = (one for one in places if not (begins_word and one.start() and _WORD_BYTE.match(text, one.start() - 1)))
    rests = Counter(rest for one in found if (rest := one[1].rstrip()))
    return rests.most_common(1)[0][0].decode(errors="replace") if rests else ""
