"""Whether token ids are those of a tokenizer, and of a model's checkpoint: asked of the tokenizers themselves."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainwright.stages.batch import VocabularyFacts

SAMPLED_ROWS = 64
LONGEST_ROW = 256
# Under this many tokens a share of them says little.
FEWEST_TOKENS = 50


def vocabulary_facts(rows: Sequence[Sequence[int]], tokenizer: Any, model: Any) -> VocabularyFacts | None:
    """Return what decoding and encoding the rows again shows; None where there is too little of them."""
    special = set(tokenizer.all_special_ids)
    heads = [list(r[:LONGEST_ROW]) for r in rows[:SAMPLED_ROWS]]
    plain = [[i for i in row if i not in special] for row in heads]
    if sum(len(r) for r in plain) < FEWEST_TOKENS:
        return None
    again = [_round_trip(tokenizer, r) for r in plain]
    firsts = Counter(row[0] for row in heads if row)
    first, count = firsts.most_common(1)[0]
    own_start = tokenizer("a")["input_ids"]
    checkpoint, share = checkpoint_share(plain, tokenizer, model)
    return VocabularyFacts(
        rows=len(heads),
        kept_share=kept_share(plain, again),
        faithful_share=kept_share(again, [_round_trip(tokenizer, r) for r in again]),
        framed=bool(own_start) and own_start[0] in special,
        first_share=count / sum(firsts.values()),
        first_is_special=first in special,
        checkpoint=checkpoint,
        checkpoint_share=share,
        sample=tokenizer.decode(heads[0])[:80],
    )


def kept_share(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> float:
    """Share of the tokens of the longer of each pair of rows that are in both, whatever their order."""
    kept = sum(sum((Counter(a) & Counter(b)).values()) for a, b in zip(before, after))
    return kept / max(1, sum(max(len(a), len(b)) for a, b in zip(before, after)))


def _round_trip(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def checkpoint_share(rows: Sequence[Sequence[int]], tokenizer: Any, model: Any) -> tuple[str, float | None]:
    """Where the model was loaded from, and the share of tokens that its own tokenizer reads as this one does.

    Only files that are here already are read.
    """
    path = getattr(getattr(model, "config", None), "_name_or_path", "") or ""
    if not path or path == getattr(tokenizer, "name_or_path", ""):
        return "", None
    with contextlib.suppress(Exception):  # a checkpoint without a tokenizer raises several kinds of errors
        from transformers import AutoTokenizer

        own = AutoTokenizer.from_pretrained(path, local_files_only=True)
        counts = Counter(i for row in rows for i in row)
        same = sum(n for i, n in counts.items() if _token(own, i) == _token(tokenizer, i))
        return path, same / max(1, sum(counts.values()))
    return path, None


def _token(tokenizer: Any, index: int) -> str | None:
    with contextlib.suppress(Exception):  # an id beyond the vocabulary is an error or None
        return tokenizer.convert_ids_to_tokens(int(index))  # type: ignore[no-any-return]
    return None
