"""TW101 untokenized-dataset: the raw texts reach the Trainer, not what the tokenizer made of them.

Why it matters: the framework drops the text columns, and the model is called with none of its inputs.
Evidence: the set holds text and none of the model's token inputs; an object in the script with the same rows does.
Error: `You must specify exactly one of input_ids or inputs_embeds`
Error: `You should provide an encoding … that includes input_ids`
Error: `You should supply an encoding … that includes input_ids`
Fix (safe where such an object exists): pass it; else map the tokenizer over the set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Repair
from trainwright.core.rule import rule
from trainwright.rules.repairs import use_from_scope
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts, Lookalike, SplitFacts
from trainwright.stages.setup import SetupFacts

_TOKEN_INPUTS = ("input_ids", "inputs_embeds")
_ROLE = {"train": "train_dataset", "evaluation": "eval_dataset"}


@rule("TW101", Severity.ERROR)
def untokenized_dataset(dataset: DatasetFacts, setup: SetupFacts, batch: BatchFacts | None) -> Iterator[Finding]:
    """A set of texts without tokens, for a model that takes tokens, and a collator that does not make them."""
    if not any(name in dataset.accepts for name in _TOKEN_INPUTS):
        return
    raw = [
        s for s in dataset.splits
        if s.text_columns and not any(s.column(n) or n in _collated(batch, s.name) for n in _TOKEN_INPUTS)
    ]  # fmt: skip
    if not raw or raw[0].column("pixel_values"):
        return
    found = {s.name: _tokenized(s, dataset) for s in raw}
    texts = ", ".join(raw[0].text_columns)
    wanted = "input_ids"
    names = " and ".join(s.name for s in raw)
    one = len(raw) == 1
    roles = {_ROLE[name]: like.expression for name, like in found.items() if like is not None}
    complete = len(roles) == len(raw)
    if complete:
        does = "pass " + ", ".join(f"{role}={expression}" for role, expression in roles.items())
        instead = f"; {' and '.join(roles.values())} {'holds' if one else 'hold'} the same rows with them"
    else:
        does = "map the tokenizer over the data set and pass what that returns"
        instead = ""
    yield Finding(
        message=f"the {names} {'set holds' if one else 'sets hold'} raw text ({texts}) and no {wanted}, which the model takes{instead}",
        measured={"text_columns": texts, "missing": wanted, "rows": raw[0].rows or raw[0].sampled},
        where=setup.place(_ROLE[raw[0].name], "trainer"),
        repair=_repair(roles) if complete else None,
        fix=Fix(does=does, safety=Safety.SAFE if complete else Safety.MANUAL),
    )


def _collated(batch: BatchFacts | None, split: str) -> Collection[str]:
    """The tensors of a batch of this set: a collator of the script's own can tokenize."""
    if batch is None:
        return ()
    return batch.tensors if split == "train" else batch.evaluation_tensors


def _tokenized(split: SplitFacts, dataset: DatasetFacts) -> Lookalike | None:
    """An object with the same rows and the model's token inputs; with the same text columns first."""
    fitting = [
        like for like in dataset.lookalikes
        if like.split == split.name and any(n in like.columns for n in _TOKEN_INPUTS)
    ]  # fmt: skip
    return max(fitting, key=lambda like: len(set(like.columns) & set(split.text_columns)), default=None)


def _repair(roles: dict[str, str]) -> Repair:
    return use_from_scope(roles)
