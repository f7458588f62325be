"""Token rows read back as text, by a vocabulary or tokenizer of the script's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainwright.adapters.data.reading import objects_in_scope
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import named

_ROWS = 3
_WORDS = 40
_TOKENS = "input_ids"

Reader = Callable[[Sequence[int]], str]


def readable_rows(data: FitData, scope: Mapping[str, Any]) -> tuple[str, ...]:
    """The first rows of tokens as text, up to 40 words each; empty where there are none or nothing that reads them."""
    with contextlib.suppress(
        Exception
    ):  # reading back is an illustration, of sets that may not be readable at all
        rows = token_rows(data)
        for reader in _readers(scope, max((max(r) for r in rows if r), default=0)) if rows else ():
            return tuple(reader(row[:_WORDS]) for row in rows)
    return ()


def token_rows(data: FitData) -> list[list[int]]:
    """The first rows of token ids, without padding at their end; empty where there are none."""
    for batch in data.pool(1):
        arrays = {n: a for n, a in named(batch.x, "x") if getattr(a, "ndim", 0) == 2 and a.dtype.kind in "iu"}
        chosen = arrays.get(_TOKENS) if _TOKENS in arrays else next(iter(arrays.values()), None)
        if chosen is not None and chosen.max(initial=0) > 1:
            return [_without_end(row.tolist()) for row in chosen[:_ROWS]]
    return []


def _without_end(row: list[int]) -> list[int]:
    while len(row) > 1 and row[-1] == 0:
        row = row[:-1]
    return row


def _readers(scope: Mapping[str, Any], largest: int) -> Iterator[Reader]:
    """What in the script reads ids back: a vocabulary layer, a tokenizer."""
    for found in objects_in_scope(scope):
        value = found.value
        if hasattr(value, "get_vocabulary"):
            words = value.get_vocabulary()
            if len(words) > largest:
                yield lambda row, words=words: " ".join(str(words[i]) for i in row if i)  # type: ignore[misc]
        elif callable(getattr(value, "decode", None)) and hasattr(value, "all_special_ids"):
            if len(value) > largest:
                yield value.decode
        elif callable(getattr(value, "detokenize", None)):
            yield lambda row, value=value: _text(value.detokenize(row))  # type: ignore[misc]
        elif callable(getattr(value, "sequences_to_texts", None)):
            yield lambda row, value=value: value.sequences_to_texts([row])[0]  # type: ignore[misc]


def _text(value: Any) -> str:
    plain = value.numpy() if hasattr(value, "numpy") else value
    return plain.decode("utf-8", "replace") if isinstance(plain, bytes) else str(plain)
