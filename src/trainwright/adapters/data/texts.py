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
# Of so many rows, the columns of so many words are texts for a model (and no names, numbers or paths).
_COMPARED_ROWS, _FEWEST_ROWS, _FEWEST_WORDS, _COMPARED_TOKENS = 64, 8, 5, 8
# A column is read if so many of its rows hold its tokens, and unread if so few do (a text may be part of another); one that
# was cleaned first has so many of them still, in another order.
_READ, _UNREAD, _CLEANED = 0.9, 0.1, 0.8


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
            **_read_columns(split, tokenizer),
        )
    return None


def _read_columns(split: Split, tokenizer: Any) -> dict[str, tuple[str, ...]]:
    """The columns of texts whose tokens the rows hold, and those that were never tokenized."""
    read, unread = [], []
    items = split.items[:_COMPARED_ROWS]
    for name in items[0]:
        pairs = [(item[name], _numbers(item)) for item in items if _is_prose(item.get(name))]
        if len(pairs) < _FEWEST_ROWS or len({text for text, _ in pairs}) < 2:
            continue
        found = [
            _held(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"], held) for text, held in pairs
        ]
        if sum(whole for whole, _ in found) >= _READ * len(found):
            read.append(name)
        elif (
            sum(whole for whole, _ in found) <= _UNREAD * len(found)
            and np.mean([share for _, share in found]) < _CLEANED
        ):
            unread.append(name)
    return {"read": tuple(read), "unread": tuple(unread) if read else ()}


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) >= _FEWEST_WORDS


def _numbers(item: Mapping[str, Any]) -> list[list[int]]:
    """The columns of whole numbers of a row: tokens of inputs and of labels."""
    lists = [
        value for value in item.values() if isinstance(value, (list, tuple, np.ndarray)) or hasattr(value, "tolist")
    ]
    arrays = [np.asarray(value) for value in lists]
    return [array.tolist() for array in arrays if array.ndim == 1 and array.dtype.kind in "iu"]


def _held(tokens: list[int], columns: list[list[int]]) -> tuple[bool, float]:
    """Whether one of a row's columns holds a text's tokens in their order, and the largest share of them that one holds.

    The first and the last token may be others beside other texts, and what comes late may be cut off.
    """
    inner = tokens[1:-1][:_COMPARED_TOKENS] or tokens
    whole = any(inner == column[i : i + len(inner)] for column in columns for i in range(len(column)))
    return whole, max((len(set(tokens) & set(column)) / len(set(tokens)) for column in columns), default=0.0)


def _raw_text(item: Mapping[str, Any]) -> str:
    """The longest text of an item, stripped."""
    texts = [v.strip() for k, v in item.items() if isinstance(v, str)]
    return max(texts, key=len, default="")
