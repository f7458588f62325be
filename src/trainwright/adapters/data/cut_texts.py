"""How much of its texts a set of token rows has lost: the texts are in the script's scope, and its rows are their beginnings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import length, objects_in_scope
from trainwright.core import Place
from trainwright.probes.splits.values import plain_values
from trainwright.seams.listening.seen import quiet
from trainwright.seams.source.written import key_places
from trainwright.stages.cut_texts import CutTexts
from trainwright.timing import now

# Evenly spaced rows: the share of tokens that is lost is known from them within a few percent.
COMPARED_ROWS = 48
FEWEST_ROWS = 8
# A row is the beginning (or the end) of its text in this share of rows; otherwise the two do not belong together.
BEGINNINGS = 0.9
# To tokenize longer texts takes too long; what is cut off here only lowers the share that is lost.
MOST_LETTERS = 100_000
MOST_SECONDS = 2.0
MOST_CANDIDATES = 8
_TOKENS = "input_ids"


def cut_texts(data: Any, tokenizer: Any, scope: Mapping[str, Any]) -> CutTexts | None:
    """What is left of the texts that the rows were made from; None if such texts are not found, or nothing was cut."""
    count, columns = length(data), getattr(data, "column_names", None)
    if tokenizer is None or not count or count < FEWEST_ROWS or not isinstance(columns, list) or _TOKENS not in columns:
        return None
    with contextlib.suppress(Exception), quiet():  # data and tokenizer are the user's; without them nothing is said
        numbers = np.unique(np.linspace(0, count - 1, min(count, COMPARED_ROWS)).astype(int)).tolist()
        special = set(tokenizer.all_special_ids)
        kept = [_bare([int(t) for t in plain_values([data[i][_TOKENS]])[0]], special) for i in numbers]
        longest = max(len(data[i][_TOKENS]) for i in numbers)
        limit = now() + MOST_SECONDS
        for expression, texts in _candidates(data, count, numbers, scope):
            full = _tokenized(texts, tokenizer, special, limit)
            pairs = list(zip(kept, full))
            if len(pairs) < FEWEST_ROWS or now() > limit:
                return None
            if sum(_is_part(part, whole) for part, whole in pairs) < BEGINNINGS * len(pairs):
                continue
            left, there = sum(len(part) for part, _ in pairs), sum(len(whole) for _, whole in pairs)
            cut = sum(len(part) < len(whole) for part, whole in pairs)
            place = _place(scope)
            return CutTexts(
                expression=expression,
                rows=count,
                compared=len(pairs),
                cut=cut,
                lost_share=1 - left / there if there else 0.0,
                longest=longest,
                pieces=round(count * there / len(pairs) / max(1, longest)),
                where=place,
            )
    return None


def _candidates(
    data: Any, count: int, numbers: Sequence[int], scope: Mapping[str, Any]
) -> Iterator[tuple[str, list[str]]]:
    """The script's columns of texts with as many rows, each with the texts of these rows."""
    found = 0
    for named in objects_in_scope(scope):
        columns = getattr(named.value, "column_names", None)
        if not isinstance(columns, list) or length(named.value) != count or found == MOST_CANDIDATES:
            continue
        rows = [named.value[i] for i in numbers]
        for column in columns:
            if all(isinstance(row.get(column), str) for row in rows):
                found += 1
                name = named.expression if named.value is not data else ""
                yield f'{name}["{column}"]', [row[column][:MOST_LETTERS] for row in rows]


def _tokenized(texts: Sequence[str], tokenizer: Any, special: set[int], limit: float) -> Iterator[list[int]]:
    for text in texts:
        if now() > limit:
            return
        yield _bare(tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)[_TOKENS], special)


def _bare(tokens: Sequence[int], special: set[int]) -> list[int]:
    """Tokens without the special ones before and behind them."""
    first, last = 0, len(tokens)
    while first < last and tokens[first] in special:
        first += 1
    while last > first and tokens[last - 1] in special:
        last -= 1
    return list(tokens[first:last])


def _is_part(part: list[int], whole: list[int]) -> bool:
    """Whether a row is its text's beginning or end; a text of one token may be either."""
    return len(part) <= len(whole) and part in (whole[: len(part)], whole[len(whole) - len(part) :])


def _place(scope: Mapping[str, Any]) -> Place | None:
    """The script's line that asks for truncation."""
    file = scope.get("__file__")
    if not isinstance(file, str):
        return None
    found = key_places(file, "truncation") or key_places(file, "max_length")
    return found[-1] if found else None
