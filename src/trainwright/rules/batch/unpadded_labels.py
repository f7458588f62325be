"""TW202 unpadded-labels: token labels of unequal lengths reach a collator that pads only the inputs.

Why it matters: The batch cannot be formed, and the message advises padding, which the inputs already have.
Evidence: The lengths of the labels in the batch that failed. Without the labels, the same batch can be formed.
Error: `Unable to create tensor, you should probably activate truncation and/or padding`
Error: `expected sequence of length … at dim 1`
Fix (safe): Use a collator that pads labels with -100, which the loss ignores.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.padding import LabelPadding
from trainwright.stages import IGNORED_LABEL, BatchFacts, SetupFacts

_LABELS = ("labels", "label", "label_ids")


@rule("TW202", Severity.ERROR, foretells=Fate.STOPS)
def unpadded_labels(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A batch that can be formed once its labels are left out."""
    key = next((k for k in batch.forms_without if k in _LABELS), None)
    if batch.failure is None or key is None or key not in batch.item_lengths:
        return
    lengths = batch.item_lengths[key]
    per_token = lengths == batch.item_lengths.get("input_ids")
    better = "DataCollatorForTokenClassification" if per_token else "DataCollatorForSeq2Seq"
    yield Finding(
        message=f"the {key} of a batch have {min(lengths)} to {max(lengths)} entries per row, and {batch.collator} "
        f"pads only the inputs",
        measured={"shortest": min(lengths), "longest": max(lengths), "collator": batch.collator},
        where=setup.place(Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the same batch can be formed without its {key}; with them: {batch.failure.type}"),
        repair=_pad_labels(key),
        fix=Fix(does=setup.words.collator.format(value=f"{better}(tokenizer)"), safety=Safety.SAFE),
    )


def _pad_labels(key: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(collator=LabelPadding(call["collator"], key, call.tensors))

    return Repair(f"pad the {key} of a batch with {IGNORED_LABEL}", Seam.TRAINER, change)
