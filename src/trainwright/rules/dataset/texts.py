"""Texts, and what is left of them in tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from trainwright.core import (
    Call,
    Fate,
    Finding,
    Fix,
    Place,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    role_of_split,
    rule,
)
from trainwright.rules.fixes import set_keyword, unsafe
from trainwright.rules.repairs import use_from_scope
from trainwright.stages import BatchFacts, DatasetFacts, Lookalike, SetupFacts, SplitFacts, TextFacts

_TOKEN_INPUTS = ("input_ids", "inputs_embeds")
# The number of positions of BERT and similar models; used if the tokenizer declares no limit.
LONGEST_INPUT = 512


@rule("TW101", Severity.ERROR, foretells=Fate.STOPS)
def untokenized_dataset(dataset: DatasetFacts, setup: SetupFacts, batch: BatchFacts | None) -> Iterator[Finding]:
    """A set of texts without tokens, for a model that expects tokens, with a collator that does not tokenize."""
    if batch is not None and batch.text_inputs:
        yield _into_numbers(batch, setup)
        return
    if not any(name in dataset.accepts for name in _TOKEN_INPUTS):
        return
    raw = [
        s
        for s in dataset.splits
        if s.text_columns and not any(s.column(n) or n in _collated(batch, s.name) for n in _TOKEN_INPUTS)
    ]
    if not raw or raw[0].column("pixel_values"):
        return
    found = {s.name: _tokenized(s, dataset) for s in raw}
    texts = ", ".join(raw[0].text_columns)
    wanted = "input_ids"
    names = " and ".join(s.name for s in raw)
    one = len(raw) == 1
    roles = {role_of_split(name): like.expression for name, like in found.items() if like is not None}
    complete = len(roles) == len(raw)
    repair = use_from_scope(roles) if complete else None
    if complete:
        does = "pass " + ", ".join(f"{role}={expression}" for role, expression in roles.items())
        rows = "the same rows" if all(like and like.same_rows for like in found.values()) else "this data"
        instead = f"; {' and '.join(roles.values())} {'holds' if one else 'hold'} {rows} with them"
    else:
        columns = _texts(raw[0])
        reader = (dataset.tokenizer.expression if dataset.tokenizer else "") or "tokenizer"
        read = ", ".join(f'rows["{c}"]' for c in columns)
        does = f"pass data.map(lambda rows: {reader}({read}, truncation=True), batched=True) instead of data"
        instead = ""
        if dataset.tokenizer is not None and columns:
            repair = _tokenize(
                [role_of_split(s.name) for s in raw], columns, dataset.tokenizer.longest_input or LONGEST_INPUT
            )
    yield Finding(
        message=f"the {names} {'set holds' if one else 'sets hold'} raw text ({texts}) but no {wanted}, which the model needs{instead}",
        measured={"text_columns": texts, "missing": wanted, "rows": raw[0].rows or raw[0].sampled},
        where=setup.place(role_of_split(raw[0].name), Role.TRAINER),
        repair=repair,
        fix=Fix(
            does=does,
            safety=Safety.SAFE if complete else Safety.MANUAL,
            edits=tuple(
                edit for role, path in roles.items() if complete for edit in set_keyword(setup.place(role), role, path)
            ),
        ),
    )


def _into_numbers(batch: BatchFacts, setup: SetupFacts) -> Finding:
    """Texts passed to a first layer that expects numbers."""
    name = batch.text_inputs[0]
    return Finding(
        message=f"{name} holds raw text, but the model's first layer ({batch.first_layer}) expects numbers",
        measured={"text_columns": ", ".join(batch.text_inputs), "first_layer": batch.first_layer},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"a batch's {name} is an array of strings, and no layer before the {batch.first_layer} reads any"),
        fix=Fix(does=f"turn the texts into token numbers: {setup.words.text_layer}"),
    )


def _collated(batch: BatchFacts | None, split: str) -> Collection[str]:
    """The tensors of a batch of this set: the script's own collator may tokenize."""
    if batch is None:
        return ()
    return batch.tensors if split == "train" else batch.evaluation_tensors


def _tokenized(split: SplitFacts, dataset: DatasetFacts) -> Lookalike | None:
    """An object with the model's token inputs: with the same rows and text columns, or the only one with the same key."""
    fitting = [
        like
        for like in dataset.lookalikes
        if like.split == split.name and any(n in like.columns for n in _TOKEN_INPUTS)
    ]
    same = [like for like in fitting if like.same_rows]
    if not same:
        return fitting[0] if len(fitting) == 1 else None
    return max(same, key=lambda like: len(set(like.columns) & set(split.text_columns)))


def _texts(split: SplitFacts) -> tuple[str, ...]:
    """The text or pair of texts to tokenize: no categories such as a license, and without labels only the longest."""
    label = split.labels.column if split.labels else None
    texts = [c for c in split.columns if c.kind == "text" and c.name != label]
    if label is None:
        texts = sorted(texts, key=lambda c: c.median_length or 0.0, reverse=True)[:1]
    return tuple(c.name for c in [c for c in texts if not c.values] or texts)[:2]


def _tokenize(roles: list[str], columns: tuple[str, ...], longest: int) -> Repair:
    def change(call: Call) -> Call:
        def read(row: dict[str, Any], at: int) -> dict[str, Any]:
            tokens = call["tokenizer"](*(row[c] for c in columns), truncation=True, max_length=longest)
            return {**{k: v for k, v in row.items() if not isinstance(v, str)}, **tokens}

        def changed(data: Any) -> Any:
            if type(data) is dict:
                return {name: call.tensors.change_rows(part, read) for name, part in data.items()}
            return call.tensors.change_rows(data, read)

        return call.replace(**{role: changed(call[role]) for role in roles})

    return Repair(f"tokenize {' and '.join(columns)} as rows are read", Seam.TRAINER, change)


# Half of the rows or tokens without content: a suitable tokenizer never comes near that.
HALF = 0.5
# If fewer than a fifth of the distinct texts are still distinct, most rows duplicate another row.
FEWEST_DISTINCT_SHARE = 0.2
# Such rows were truncated if the texts are at least this many times longer than what is left.
CUT = 2.0
FEWEST_ROWS = 16


@rule("TW116", Severity.ERROR)
def garbled_text(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that are empty or identical once decoded, or that consist of unknown tokens."""
    texts = dataset.texts
    if texts is None or texts.rows < FEWEST_ROWS:
        return
    cut = _is_cut(texts)
    collapsed = texts.source_distinct is not None and texts.distinct < FEWEST_DISTINCT_SHARE * texts.source_distinct
    where = setup.place(Role.MAX_LENGTH, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER)
    if texts.unknown_share is not None and texts.unknown_share > HALF:
        share = texts.unknown_share
        yield Finding(
            message=f"{share:.0%} of the tokens of {texts.rows} sampled rows are the unknown token",
            measured={"unknown_share": round(share, 3), "rows": texts.rows},
            where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
            proof=Proof(_example(texts)),
            fix=Fix(does="use a tokenizer that was made for these texts (language, case, script)"),
        )
    elif texts.empty > HALF * texts.rows:
        yield _cut_to_nothing(texts, where, f"{texts.empty} of {texts.rows} sampled rows decode to nothing")
    elif cut and collapsed:
        said = f"{texts.source_distinct} different texts of {texts.rows} sampled rows become {texts.distinct} different rows"
        yield _cut_to_nothing(texts, where, said)


def _is_cut(texts: TextFacts) -> bool:
    return texts.source_tokens is not None and texts.source_tokens >= CUT * max(1, texts.longest - 2)


def _cut_to_nothing(texts: TextFacts, where: Place | None, said: str) -> Finding:
    length = f"; the longest row has {texts.longest} tokens"
    wanted = f", the median text {texts.source_tokens:.0f} without special ones" if texts.source_tokens else ""
    raise_to = f" to at least {texts.source_tokens:.0f}" if texts.source_tokens else ""
    return Finding(
        message=said + length + wanted,
        measured={
            "empty_rows": texts.empty,
            "distinct_rows": texts.distinct,
            "rows": texts.rows,
            "longest": texts.longest,
        },
        where=where,
        proof=Proof(_example(texts)),
        fix=unsafe(f"raise max_length{raise_to} in the tokenizer call")
        if _is_cut(texts) or texts.source_tokens is None
        else Fix(
            does="look at a row's input_ids where they are made: nothing was cut, and only special tokens are left"
        ),
    )


def _example(texts: TextFacts) -> str:
    if not texts.examples:
        return f"{texts.distinct} different rows after decoding"
    raw, left = texts.examples[0]
    return f"decoded, {_shorten(raw)!r} is {_shorten(left)!r}" if raw else f"decoded, a row is {_shorten(left)!r}"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
