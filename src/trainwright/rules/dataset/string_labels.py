"""TW103 string-labels: the labels are text, but the loss expects numbers.

Why it matters: The collator stops with a message about tensors or padding that does not mention the labels.
Evidence: The counts of the label column, and the error that forming a batch raised, or a batch without a label tensor.
Or the error of the line that makes a tensor of them, and the texts that it was given.
Error: `too many dimensions 'str'`
Error: `can't convert np.ndarray of type numpy.str_`
Error: `Unable to create tensor, you should probably activate truncation and/or padding`
Error: `Invalid dtype: str`
Error: `Cast string to … is not supported`
Error: `Unsupported object type str`
Fix (safe): Number the labels in the sorted order of all labels (`class_encode_column`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trainwright.core import Call, Failure, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import MOST_CLASSES, BatchFacts, DatasetFacts, SetupFacts, TextLabels


@rule("TW103", Severity.ERROR, foretells=Fate.STOPS)
def string_labels(dataset: DatasetFacts | None, batch: BatchFacts | None, setup: SetupFacts) -> Iterator[Finding]:
    """A label column of text that the collator, or the line that makes a tensor of it, does not convert to numbers."""
    if setup.text_labels is not None and setup.failure is not None:
        yield _made_a_tensor(setup.text_labels, setup.failure)
    labels = dataset.train.labels if dataset is not None else None
    if dataset is None or batch is None or labels is None or labels.kind != "text" or not labels.census:
        return
    if batch.failure is None and batch.labels is not None:
        return  # the collator encodes them
    held = dataset.evaluation.labels if dataset.evaluation else None
    names = sorted({str(v) for census in (labels.census, held.census if held else {}) for v in census})
    few, shown = len(names) <= MOST_CLASSES, _shown(names)
    proof = str(batch.failure) if batch.failure else "a batch has no label tensor"
    yield Finding(
        message=f'the label column "{labels.column}" contains {len(names)} different texts ({shown}); the loss expects numbers',
        measured={"column": labels.column, "texts": len(names), "rows": labels.rows_read},
        where=dataset.label_place or setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(f"forming a batch: {proof}"),
        repair=_encode(labels.column, names) if few else None,
        fix=Fix(
            does=f'encode it where the rows are made, or data = data.class_encode_column("{labels.column}"), and give the model {len(names)} outputs'
            if few
            else f'convert "{labels.column}" to a number; {len(names)} different texts are too many to be classes',
            safety=Safety.SAFE if few else Safety.MANUAL,
        ),
    )


def _made_a_tensor(labels: TextLabels, failure: Failure) -> Finding:
    """Labels of text that end the script before training, where a tensor is made of them."""
    named, count = labels.expression, len(labels.names)
    numerals = all(name.strip().lstrip("-").isdigit() for name in labels.names)
    return Finding(
        message=f"{named} holds {count} different texts ({_shown(labels.names)}) in {labels.rows:,} rows; a tensor holds numbers",
        measured={"texts": count, "rows": labels.rows},
        where=failure.where,
        proof=Proof(f"making a tensor of them raised {failure}"),
        fix=Fix(
            does=f"convert the numerals first: [int(v) for v in {named}]"
            if numerals
            else f"number them first: names = sorted(set({named})), then [names.index(v) for v in {named}]",
            safety=Safety.SAFE,
        ),
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(repr(n) for n in names[:4]) + (", …" if len(names) > 4 else "")


def _encode(column: str, names: list[str]) -> Repair:
    numbers = {name: i for i, name in enumerate(names)}

    def encode(row: dict[str, Any], at: int) -> dict[str, Any]:
        return {**row, column: numbers.get(row[column], -100)}

    def change(call: Call) -> Call:
        def encoded(data: Any) -> Any:
            if type(data) is dict:
                return {name: encoded(part) for name, part in data.items()}
            return None if data is None else call.tensors.change_rows(data, encode)

        return call.replace(**{role: encoded(call[role]) for role in ("train_dataset", "eval_dataset")})

    return Repair(f'number the {len(names)} labels of "{column}" by their sorted order', Seam.TRAINER, change)
