"""What a prompt itself says: its own earlier text (`Recall`), and where it ends inside a token, such as `import nump`.

The latter is token healing.

A tokenizer splits `import numpy` differently from `import nump`, so a model that continues the tokens of the latter
sees a sequence that never occurs in training. The last tokens are therefore taken back, as many as may make a
difference, and the next token is chosen among all tokens that begin with the removed text. Each is scored by its
probability times that of the tokens kept before it. The alternatives are mutually exclusive: the first token that
extends past the prompt either follows all of the prompt's tokens, or covers the last 1, 2, ... of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainwright_lm.tokens.tokenizer import Tokenizer

# Most tokens to take back. Of 5,774 cuts anywhere in the standard library (8,192 entries), 26 % need none and the rest
# 1 to 5. For 1.1 %, the full text's next token ends before the prompt does, which this method does not cover.
LONGEST = 6
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


def ways(logits_KV: Tensor, last: Sequence[int], vocabulary: Vocabulary, tokenizer: Tokenizer) -> Ways:
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
        self._ids: NDArray[np.int64] = tokenizer.encode_array(far)[:-LONGEST].astype(np.int64)

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
