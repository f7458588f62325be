"""Completes a prompt: to the end of the line, to the end of the statement, or for a number of tokens.

`decoder.Decoder` produces one token at a time; `recall.Recall` adds what the prompt itself says. A prompt longer than the window loses its beginning. The
end-of-document token always ends a completion.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from trainwright.errors import UsageError
from trainwright_lm.completion import healing
from trainwright_lm.completion.endings import Ending, line_end, statement_end
from trainwright_lm.completion.healing import Recall
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
        """`recalls`: whether the prompt's own earlier text counts, too (healing.Recall)."""
        self._recalls = recalls
        self._decoder: Logits = model if isinstance(model, Logits) else Decoder(model)
        self._tokenizer = tokenizer
        self._vocabulary = healing.Vocabulary(tokenizer)

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
        back = min(healing.LONGEST, len(ids) - 1)
        logits_KV = self._decoder.read(ids, last=back + 1)[:, :size]
        recall = Recall(self._tokenizer, prompt if self._recalls else "")
        mixed_KV = torch.stack([recall.mixed(row, ids[: len(ids) - back + i]) for i, row in enumerate(logits_KV)])
        ways = healing.ways(mixed_KV, ids[len(ids) - back :], self._vocabulary, self._tokenizer)
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
