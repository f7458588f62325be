"""Whether token ids match a tokenizer and a model's checkpoint, tested with the tokenizers themselves."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from trainwright.stages import VocabularyFacts

SAMPLED_ROWS = 64
LONGEST_ROW = 256
# With fewer tokens than this, a share of them says little.
FEWEST_TOKENS = 50
FULL_VOCABULARY = 0.5
_TOKENS = "input_ids"


def vocabulary_facts(
    items: Sequence[Mapping[str, Any]], tokenizer: Any, checkpoint: str, size: int | None
) -> VocabularyFacts | None:
    """Compare token ids of evenly spaced items with their decoded and re-encoded form; None if there are too few or it fails.

    Args:
        checkpoint: what the model was loaded from; empty: unknown.
        size: rows of the model's input embedding.
    """
    with contextlib.suppress(Exception):  # ids outside a vocabulary, and custom tokenizers, raise several kinds
        return _measure(_token_rows(items), tokenizer, checkpoint, size)
    return None


def _token_rows(items: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Token ids, without those that the mask hides; empty if the items have none."""
    chosen = np.unique(np.linspace(0, len(items) - 1, min(len(items), SAMPLED_ROWS)).astype(int))
    rows = [(np.asarray(items[i].get(_TOKENS)), items[i].get("attention_mask")) for i in chosen]
    if any(tokens.ndim != 1 for tokens, _ in rows):
        return []
    return [(tokens if mask is None else tokens[np.asarray(mask) != 0]).tolist() for tokens, mask in rows]


def _measure(
    rows: Sequence[Sequence[int]], tokenizer: Any, checkpoint: str, size: int | None
) -> VocabularyFacts | None:
    special = set(tokenizer.all_special_ids)
    heads = [list(r[:LONGEST_ROW]) for r in rows]
    plain = [[i for i in row if i not in special] for row in heads]
    if sum(len(r) for r in plain) < FEWEST_TOKENS:
        return None
    again = [_round_trip(tokenizer, r) for r in plain]
    firsts = Counter(row[0] for row in heads if row)
    first, count = firsts.most_common(1)[0]
    own_start = tokenizer("a")["input_ids"]
    checkpoint, own = checkpoints_own(tokenizer, checkpoint, size)
    by_own = kept_share(plain, [_round_trip(own, r) for r in plain]) if own is not None else None
    return VocabularyFacts(
        rows=len(heads),
        kept_share=kept_share(plain, again),
        faithful_share=kept_share(again, [_round_trip(tokenizer, r) for r in again]),
        framed=bool(own_start) and own_start[0] in special,
        first_share=count / sum(firsts.values()),
        first_is_special=first in special,
        checkpoint=checkpoint,
        checkpoint_share=agreement(plain, own, tokenizer) if own is not None else None,
        checkpoint_kept_share=by_own,
        sample=tokenizer.decode(heads[0])[:80],
    )


def kept_share(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> float:
    """The share of tokens, relative to the longer of each pair of rows, that both contain, in any order."""
    kept = sum(sum((Counter(a) & Counter(b)).values()) for a, b in zip(before, after))
    return kept / max(1, sum(max(len(a), len(b)) for a, b in zip(before, after)))


def _round_trip(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def checkpoint_of(model: Any) -> str:
    """What a model was loaded from; empty: unknown."""
    return str(getattr(getattr(model, "config", None), "_name_or_path", "") or "")


def checkpoints_own(tokenizer: Any, path: str, size: int | None) -> tuple[str, Any]:
    """A model's checkpoint and the tokenizer in it, if it is another than the given one; reads only local files."""
    if not path or path == str(getattr(tokenizer, "name_or_path", "")):
        return "", None
    with contextlib.suppress(Exception):  # a checkpoint without a tokenizer raises several kinds of errors
        from transformers import AutoTokenizer

        own = AutoTokenizer.from_pretrained(path, local_files_only=True)
        # From a checkpoint without a vocabulary, the library may build an empty tokenizer.
        return path, own if size is not None and len(own) >= size * FULL_VOCABULARY else None
    return path, None


def agreement(rows: Sequence[Sequence[int]], one: Any, other: Any) -> float:
    """The share of tokens that two tokenizers decode alike."""
    counts = Counter(i for row in rows for i in row)
    same = sum(n for i, n in counts.items() if _token(one, i) == _token(other, i))
    return same / max(1, sum(counts.values()))


def _token(tokenizer: Any, index: int) -> str | None:
    with contextlib.suppress(Exception):  # an id beyond the vocabulary is an error or None
        return tokenizer.convert_ids_to_tokens(int(index))  # type: ignore[no-any-return]
    return None


def vocabulary_of(model: nn.Module) -> int | None:
    """The number of rows of the model's input embedding."""
    with contextlib.suppress(Exception):  # models without one raise several kinds of errors
        return int(model.get_input_embeddings().weight.shape[0])
    return None
