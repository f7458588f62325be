"""Completes a prompt: to the end of the line, to the end of the statement, or for a number of tokens.

`decoder.Decoder` produces one token at a time; `Recall` adds what the prompt itself says. A prompt longer than the window
loses its beginning. The end-of-document token always ends a completion.

A prompt may end inside a token, such as `import nump`; what is done about that is token healing. A tokenizer splits `import numpy` differently from `import nump`, so a model that continues the tokens of the latter
sees a sequence that never occurs in training. The last tokens are therefore taken back, as many as may make a
difference, and the next token is chosen among all tokens that begin with the removed text. Each is scored by its
probability times that of the tokens kept before it. The alternatives are mutually exclusive: the first token that
extends past the prompt either follows all of the prompt's tokens, or covers the last 1, 2, ... of them.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainwright.errors import UsageError
from trainwright_lm.completion.endings import Ending, line_end, statement_end
from trainwright_lm.network.decoder import Decoder
from trainwright_lm.network.model import Transformer
from trainwright_lm.tokens.tokenizer import Tokenizer

# Longer completions are cut off. Of 112,027 lines of the standard library (8,192 entries), the median has 9 tokens, one
# in a thousand has more than 42, and none has more than 94.
LONGEST_LINE_TOKENS = 96
LONGEST_STATEMENT_TOKENS = 256
# The largest fraction of the window for the prompt; the rest is room to write before the window must be read again.
PROMPT_SHARE = 0.75
# An upper bound on the mean characters per token of source code; if a text exceeds it, the whole prompt is encoded.
_LONG_TOKEN = 12
_LINE_END = re.compile(r"(?<=\S)\n")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen."""

    temperature: float = 0.0
    """0: always the most probable token; above 0: sampled, from a flatter distribution the higher it is."""
    top_p: float = 1.0
    """Sample among the most probable tokens whose probabilities add up to this."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise UsageError(f"The temperature must not be negative; got {self.temperature}.")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top-p must be above 0 and at most 1; got {self.top_p}.")
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"The seed must be between 0 and {2**63 - 1}; got {self.seed}.")


def extent(prompt: str, *, tokens: int | None = None, statement: bool = False) -> tuple[int, Ending | None]:
    """The token limit and the ending of a completion: for a number of tokens, a statement, or (the default) a line.

    Raises:
        UsageError: if both are given, or `tokens` is less than 1.
    """
    if tokens is not None and statement:
        raise UsageError("--tokens and --statement cannot be used together.")
    if tokens is not None and tokens < 1:
        raise UsageError(f"A completion must have at least one token; got {tokens}.")
    if tokens is not None:
        return tokens, None
    return (LONGEST_STATEMENT_TOKENS, statement_end(prompt)) if statement else (LONGEST_LINE_TOKENS, line_end)


@runtime_checkable
class Logits(Protocol):
    """Gives the logits of the next token: `decoder.Decoder`, or a baseline in its place."""

    @property
    def context(self) -> int: ...
    def read(self, ids: Sequence[int], last: int = 1) -> Tensor: ...
    def take_back(self, count: int) -> None: ...
    def add(self, token: int) -> Tensor: ...


class Completer:
    """A model and its tokenizer, prepared once for many completions."""

    def __init__(self, model: Transformer | Logits, tokenizer: Tokenizer, *, recalls: bool = True) -> None:
        """`recalls`: whether the prompt's own earlier text counts, too."""
        self._recalls = recalls
        self._decoder: Logits = model if isinstance(model, Logits) else Decoder(model)
        self._tokenizer = tokenizer
        self._vocabulary = Vocabulary(tokenizer)

    def complete(
        self,
        prompt: str,
        *,
        limit: int = LONGEST_LINE_TOKENS,
        ending: Ending | None = line_end,
        sampling: Sampling | None = None,
    ) -> str:
        """The completion, cut off at its ending.

        Args:
            prompt: Source code up to the cursor, which may be inside a token. An empty prompt is the beginning of a file.
        """
        written = b""
        new: bytes
        for new in self._bytes(prompt, limit, sampling or Sampling()):
            written += new
            if ending is not None and (end := ending(written)) is not None:
                written = written[:end]
                break
        return _characters().decode(written)

    def pieces(self, prompt: str, *, limit: int, sampling: Sampling | None = None) -> Iterator[str]:
        """Yield the text of each new token, up to `limit` tokens."""
        characters = _characters()
        for new in self._bytes(prompt, limit, sampling or Sampling()):
            yield characters.decode(new)

    @torch.inference_mode()
    def _bytes(self, prompt: str, limit: int, sampling: Sampling) -> Iterator[bytes]:
        """Yield the bytes that each token adds to the prompt, up to the end token."""
        choose = _chooser(sampling.temperature, sampling.top_p, torch.Generator().manual_seed(sampling.seed))
        size = self._tokenizer.vocabulary_size  # an imported model may have a larger one
        ids = fitting(self._tokenizer, prompt, self._decoder.context)
        back = min(MOST_TAKEN_BACK, len(ids) - 1)
        logits_KV = self._decoder.read(ids, last=back + 1)[:, :size]
        recall = Recall(self._tokenizer, prompt if self._recalls else "")
        mixed_KV = torch.stack([recall.mixed(row, ids[: len(ids) - back + i]) for i, row in enumerate(logits_KV)])
        ways = ways_on(mixed_KV, ids[len(ids) - back :], self._vocabulary, self._tokenizer)
        way = choose(ways.scores)
        token, taken_back = int(ways.ids[way]), int(ways.taken_back[way])
        self._decoder.take_back(taken_back)
        known = len(self._tokenizer.decode_bytes(ids[len(ids) - taken_back :]))
        del ids[len(ids) - taken_back :]
        for count in range(limit):
            if token == self._tokenizer.end_id:
                return
            yield self._tokenizer.token_bytes(token)[known:]
            known = 0
            if count + 1 < limit:
                ids.append(token)
                token = choose(recall.mixed(self._decoder.add(token)[:size], ids))


def _characters() -> codecs.IncrementalDecoder:
    """An incremental decoder; it holds back an incomplete character until the remaining bytes arrive."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def fitting(tokenizer: Tokenizer, prompt: str, context: int) -> list[int]:
    """The prompt's tokens after an end token, as in training; only the last ones if they do not all fit."""
    room = max(1, int(context * PROMPT_SHARE))
    # Of a long prompt, only the end is encoded, starting at a line end, where a token begins in any case.
    line = _LINE_END.search(prompt, max(0, len(prompt) - _LONG_TOKEN * room))
    ids = tokenizer.encode(prompt[line.start() :]) if line else []
    if len(ids) < room:
        ids = [tokenizer.end_id, *tokenizer.encode(prompt)]
    return ids[-room:]


def _chooser(temperature: float, top_p: float, generator: torch.Generator | None) -> Callable[[Tensor], int]:
    """A function that takes logits or log-probabilities (N,) and returns the chosen index."""
    if temperature == 0:
        return lambda logits_N: int(logits_N.argmax())

    def sampled(logits_N: Tensor) -> int:
        # In float64 and at most 0, so that no temperature, however small, produces a NaN.
        below_N = (logits_N - logits_N.max()).double()
        probabilities_N = (below_N / temperature).softmax(-1).cpu()
        if top_p < 1:
            shares_N, places_N = probabilities_N.sort(descending=True)
            before_N = shares_N.cumsum(-1) - shares_N
            probabilities_N[places_N[before_N >= top_p]] = 0  # the first one always stays
        return int(torch.multinomial(probabilities_N, 1, generator=generator))

    return sampled


# Most tokens to take back. Of 5,774 cuts anywhere in the standard library (8,192 entries), 26 % need none and the rest
# 1 to 5. For 1.1 %, the full text's next token ends before the prompt does, which this method does not cover.
MOST_TAKEN_BACK = 6
# Of a file, this much before the cursor is looked through; encoding it takes some 10 ms.
FAR_CHARACTERS = 200_000
# The weights of matches of 1, 2, ... tokens, the last one for longer matches as well. Those with which 12,250 tokens of
# 49 training files were most probable under preset tiny's model, rounded: 2.05 nats a token, without recall 2.58.
WEIGHTS = (0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5)


class Vocabulary:
    """The text tokens, sorted by their bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        ids = (i for i in range(tokenizer.vocabulary_size) if i != tokenizer.end_id)
        pairs = sorted((tokenizer.token_bytes(i), i) for i in ids)
        self._bytes = [b for b, _ in pairs]
        self._ids = [i for _, i in pairs]

    def longer(self, start: bytes) -> list[int]:
        """The ids of tokens that begin with these bytes and are longer than them."""
        first = bisect_right(self._bytes, start)
        last = bisect_left(self._bytes, True, lo=first, key=lambda b: not b.startswith(start))
        return self._ids[first:last]


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The candidates for the next token, some of which cover the end of the prompt."""

    ids: Tensor
    """(N,)"""
    taken_back: Tensor
    """(N,) How many of the prompt's last tokens each one covers; 0: it follows them all."""
    scores: Tensor
    """(N,) Log-probability of each, including that of the kept tokens since the first one that may be taken back."""


def ways_on(logits_KV: Tensor, last: Sequence[int], vocabulary: Vocabulary, tokenizer: Tokenizer) -> Ways:
    """The candidates for the next token.

    Args:
        logits_KV: the logits for each of the prompt's last K - 1 tokens, and for the token after them.
        last: the ids of those K - 1 tokens.
    """
    scores_KV = logits_KV.log_softmax(-1)
    kept = [0.0]  # for the first 0, 1, ... of the last tokens
    for place, token in enumerate(last):
        kept.append(kept[-1] + float(scores_KV[place, token]))
    count = logits_KV.shape[1]
    ids, backs, scores = ([torch.arange(count)], [torch.zeros(count, dtype=torch.long)], [scores_KV[-1] + kept[-1]])
    for place in range(len(last)):
        over = torch.tensor(vocabulary.longer(tokenizer.decode_bytes(last[place:])), dtype=torch.long)
        ids.append(over)
        backs.append(torch.full_like(over, len(last) - place))
        scores.append(scores_KV[place, over] + kept[place])
    return Ways(ids=torch.cat(ids), taken_back=torch.cat(backs), scores=torch.cat(scores))


class Recall:
    """What a file's own earlier text says about the next token: a file repeats its names, its calls, whole lines.

    The network sees the last tokens of a file, as many as its window holds. So the tokens that followed the same last
    tokens earlier in the file, however far above, are looked up, and the network's probabilities are mixed with their
    shares, shorter matches first: p = (1 - w) p + w shares, with a weight w for each length of match (as in prediction by
    partial matching, Cleary and Witten 1984, and cache models, Kuhn and De Mori 1990). This needs no training, and changes
    nothing where the file says nothing.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: str) -> None:
        """The prompt's last tokens are left out: the cursor may have cut them off in the middle of a word."""
        far = prompt[-FAR_CHARACTERS:]
        if len(far) < len(prompt):
            far = far[far.find("\n") + 1 :]
        self._ids: NDArray[np.int64] = tokenizer.encode_array(far)[:-MOST_TAKEN_BACK].astype(np.int64)

    def mixed(self, scores_V: Tensor, last: Sequence[int]) -> Tensor:
        """The logits (V,) of the token after the last ones, mixed with what followed them; log-probabilities."""
        own_V = scores_V.log_softmax(-1)
        matches = self._followers(last)
        if not matches:
            return own_V
        kept, shares = 1.0, []
        for weight, followers in reversed(list(zip(WEIGHTS, matches, strict=False))):
            shares.append(np.full(len(followers), kept * weight / len(followers), dtype=np.float32))
            kept *= 1 - weight
        followers_N = torch.from_numpy(np.concatenate(matches[::-1])).to(own_V.device)
        shares_N = torch.from_numpy(np.concatenate(shares)).to(own_V)
        return (own_V.exp() * kept).index_add_(0, followers_N, shares_N).log()

    def _followers(self, last: Sequence[int]) -> list[NDArray[np.int64]]:
        """What followed the last token, the last two, ... earlier in the prompt, as far as they occur."""
        found: list[NDArray[np.int64]] = []
        ends = np.arange(len(self._ids) - 1)
        for back, token in enumerate(reversed(last[-len(WEIGHTS) :])):
            ends = ends[ends >= back] if back else ends
            ends = ends[self._ids[ends - back] == token]
            if not len(ends):
                break
            found.append(self._ids[ends + 1])
        return found
