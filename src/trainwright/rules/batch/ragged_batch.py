"""TW201 ragged-batch: rows of different lengths were to be stacked into one tensor.

Why it matters: forming a batch stops, and the message names neither the column nor the missing padding.
Evidence: the lengths of each column inside the batch that failed; padding them makes the batch form.
Error: `expected sequence of length … at dim 1`
Error: `Unable to create tensor, you should probably activate truncation and/or padding`
Error: `stack expects each tensor to be equal size`
Fix (safe): give the Trainer the tokenizer, or a collator that pads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.setup import SetupFacts


@rule("TW201", Severity.ERROR)
def ragged_batch(batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts) -> Iterator[Finding]:
    """A batch that could not be formed, of rows with unequal lengths."""
    ragged = {k: v for k, v in batch.item_lengths.items() if len(set(v)) > 1}
    if batch.failure is None or not batch.equal_rows_collate or not ragged or _only_labels(ragged, batch):
        return
    key, lengths = next(iter(ragged.items()))
    tokens = "input_ids" in ragged
    tokenizer = dataset.tokenizer
    if tokens and tokenizer is not None:
        does = f"pass data_collator=DataCollatorWithPadding({tokenizer.expression or 'tokenizer'}) to the Trainer"
    else:
        does = "give the loader a collator that pads the rows of a batch to one length"
    yield Finding(
        message=f"{batch.collator} stacks rows of {min(lengths)} to {max(lengths)} {key} into one tensor, without padding",
        measured={"column": key, "shortest": min(lengths), "longest": max(lengths), "collator": batch.collator},
        where=setup.place("collator", "trainer", "train_call"),
        repair=_pad() if tokens and tokenizer is not None else None,
        fix=Fix(does=does, safety=Safety.SAFE),
    )


def _only_labels(ragged: dict[str, tuple[int, ...]], batch: BatchFacts) -> bool:
    """Whether only labels differ in length, which padding of the inputs does not mend."""
    return set(ragged) <= {"labels", "label", batch.label_key or "labels"}


def _pad() -> Repair:
    def change(call: Call) -> Call:
        return call.replace(collator=PaddingCollator(call["tokenizer"], call["collator"]))

    return Repair("pad the rows of a batch with the tokenizer in the script's scope", Seam.TRAINER, change)


class PaddingCollator:
    """Pads what the tokenizer knows of, and token labels with -100, then collates as before."""

    def __init__(self, tokenizer: Any, collator: Any) -> None:
        self.tokenizer, self.collator = tokenizer, collator

    def __call__(self, items: list[Any]) -> Any:
        names = [n for n in self.tokenizer.model_input_names if n in items[0]]
        padded = self.tokenizer.pad({n: [i[n] for i in items] for n in names}, return_tensors="np")
        width = padded[names[0]].shape[1]
        rows = []
        for row, item in enumerate(items):
            values = {k: v for k, v in item.items() if k not in names}
            labels = values.get("labels")
            if labels is not None and np.ndim(labels) == 1 and len(labels) == len(item[names[0]]):
                values["labels"] = [*labels, *[-100] * (width - len(labels))]
            rows.append({**values, **{n: padded[n][row].tolist() for n in names}})
        return self.collator(rows)
