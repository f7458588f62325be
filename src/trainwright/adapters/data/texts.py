"""Facts about a tokenizer, how it decodes a dataset's rows, and how much of its texts a set of token rows has lost: the texts are in
the script's scope, and its rows are their beginnings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import objects_in_scope
from trainwright.core import Place
from trainwright.probes.splits.values import evenly, plain_values
from trainwright.seams.listening.seen import quiet
from trainwright.seams.source.written import key_places
from trainwright.stages import CutTexts, Split, TextFacts, TokenizerFacts
from trainwright.tensors.items import length
from trainwright.timing import now

_COUNTED_TEXTS = 32
_FEWEST_ROWS = 8
# Evenly spaced rows: the share of tokens that is lost is known from them within a few percent.
_SAMPLED_ROWS = 48
# A row is the beginning (or the end) of its text in this share of rows; otherwise the two do not belong together.
_BEGINNINGS = 0.9
# To tokenize longer texts takes too long; what is cut off here only lowers the share that is lost.
_MOST_LETTERS = 100_000
_MOST_SECONDS = 2.0
_MOST_CANDIDATES = 8
_TOKENS = "input_ids"


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


def cut_texts(data: Any, tokenizer: Any, scope: Mapping[str, Any]) -> CutTexts | None:
    """What is left of the texts that the rows were made from; None if such texts are not found, or nothing was cut."""
    count, columns = length(data), getattr(data, "column_names", None)
    if (
        tokenizer is None
        or not count
        or count < _FEWEST_ROWS
        or not isinstance(columns, list)
        or _TOKENS not in columns
    ):
        return None
    with contextlib.suppress(Exception), quiet():  # data and tokenizer are the user's; without them nothing is said
        numbers = evenly(range(count), _SAMPLED_ROWS)
        special = set(tokenizer.all_special_ids)
        kept = [_bare([int(t) for t in plain_values([data[i][_TOKENS]])[0]], special) for i in numbers]
        longest = max(len(data[i][_TOKENS]) for i in numbers)
        limit = now() + _MOST_SECONDS
        for expression, texts in _candidates(data, count, numbers, scope):
            full = _tokenized(texts, tokenizer, special, limit)
            pairs = list(zip(kept, full))
            if len(pairs) < _FEWEST_ROWS or now() > limit:
                return None
            if sum(_is_part(part, whole) for part, whole in pairs) < _BEGINNINGS * len(pairs):
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
        if not isinstance(columns, list) or length(named.value) != count or found == _MOST_CANDIDATES:
            continue
        rows = [named.value[i] for i in numbers]
        for column in columns:
            if all(isinstance(row.get(column), str) for row in rows):
                found += 1
                name = named.expression if named.value is not data else ""
                yield f'{name}["{column}"]', [row[column][:_MOST_LETTERS] for row in rows]


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
