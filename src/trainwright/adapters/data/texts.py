"""Facts about a tokenizer, and how it decodes a dataset's rows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import objects_in_scope
from trainwright.probes.splits.values import plain_values
from trainwright.stages.dataset import Split, TextFacts, TokenizerFacts

_COUNTED_TEXTS = 32


def tokenizer_facts(tokenizer: Any, scope: Mapping[str, Any]) -> TokenizerFacts | None:
    """Facts about a tokenizer, and the expression for it in the script."""
    if tokenizer is None:
        return None
    named = [n.expression for n in objects_in_scope(scope) if n.value is tokenizer]
    longest = tokenizer.model_max_length
    return TokenizerFacts(
        expression=named[0] if named else "",
        pad_id=tokenizer.pad_token_id,
        longest_input=longest if longest < 10**9 else None,
        name=type(tokenizer).__name__,
    )


def text_facts(split: Split, tokenizer: Any) -> TextFacts | None:
    """How the tokenizer decodes the sampled rows; None if there are no tokens or no tokenizer."""
    if tokenizer is None:
        return None
    rows = [(item["input_ids"], _raw_text(item)) for item in split.items if item.get("input_ids") is not None]
    if len(rows) < 2:
        return None
    with contextlib.suppress(Exception):  # ids of another vocabulary cannot be decoded; another fact reports that
        tokens = [[int(t) for t in plain_values([ids])[0]] for ids, _ in rows]
        decoded = [tokenizer.decode(t, skip_special_tokens=True).strip() for t in tokens]
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        real = [t for row in tokens for t in row if t not in special]
        unknown = tokenizer.unk_token_id
        countable = unknown is not None and unknown not in (tokenizer.eos_token_id, tokenizer.pad_token_id) and real
        raw = [text for _, text in rows if text]
        uncut = [len(tokenizer(t, add_special_tokens=False, verbose=False)["input_ids"]) for t in raw[:_COUNTED_TEXTS]]
        # The most informative first: rows with text of which the least is left.
        order = sorted(range(len(rows)), key=lambda i: (len(decoded[i]) / (1 + len(rows[i][1])), i))
        return TextFacts(
            rows=len(rows),
            empty=sum(not text for text in decoded),
            distinct=len(set(decoded)),
            unknown_share=sum(t == unknown for t in real) / len(real) if countable else None,
            longest=max(len(t) for t in tokens),
            source_distinct=len(set(raw)) if len(raw) == len(rows) else None,
            source_tokens=float(np.median(uncut)) if uncut else None,
            examples=tuple((rows[i][1], decoded[i]) for i in order[:3]),
        )
    return None


def _raw_text(item: Mapping[str, Any]) -> str:
    """The longest text of an item, stripped."""
    texts = [v.strip() for k, v in item.items() if isinstance(v, str)]
    return max(texts, key=len, default="")
