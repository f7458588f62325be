"""TW101 untokenized-dataset: the Trainer gets raw texts instead of tokens.

Why it matters: The framework drops the text columns, so the model is called with none of its inputs.
Evidence: The set contains text and none of the model's token inputs, and (if there is one) an object in the script with
the same rows, or the only one under the same key of another dictionary, does contain them.
Error: `You must specify exactly one of input_ids or inputs_embeds`
Error: `You should provide an encoding … that includes input_ids`
Error: `You should supply an encoding … that includes input_ids`
Fix (safe where such an object exists): Pass that object; otherwise map the tokenizer over the set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from trainwright.core import (
    Call,
    Fate,
    Finding,
    Fix,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    role_of_split,
    rule,
)
from trainwright.rules.repairs import use_from_scope
from trainwright.stages import BatchFacts, DatasetFacts, Lookalike, SetupFacts, SplitFacts

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
                SetKeyword(place.file, place.line, role, expression)
                for role, expression in roles.items()
                if complete and (place := setup.place(role))
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
