"""TW160 label-among-inputs: an input feature is the label in another form.

Why it matters: The model learns to read the label off that feature. Its scores are nearly perfect, and where the label
is not known yet, it is useless.
Evidence: All training rows: the feature equals the label, is an exact function of it, or has one value for each class.
The other features tell something about the label as well, so the task is not to copy one input.
Fix (unsafe): Drop the feature from the inputs of every set.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, LabelCopy, SetupFacts

_RELATIONS = {
    "equal": "equals the label",
    "affine": "is the label times a number plus a number",
    "monotonic": "is a one-to-one function of the label",
    "classes": "has one value for each class",
}
_OF_SEVERAL = {
    "equal": "equal the label",
    "affine": "are the label times a number plus a number",
    "classes": "have one value for each class",
}
_NAMED = 4


@rule("TW160", Severity.WARNING, raises=False)
def label_among_inputs(dataset: DatasetFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Features from which every training row's label can be read, in a column that the model gets."""
    copy = dataset.label_copy
    if copy is None or dataset.train.labels is None or not _reaches_model(copy, dataset, batch):
        return
    features, label = _features(copy), dataset.train.labels.column
    relation = (_RELATIONS if len(copy.features) < 2 else _OF_SEVERAL)[copy.relation]
    yield Finding(
        message=f"{features} {relation} in all {copy.rows:,} training rows ({copy.distinct:,} distinct labels)",
        measured={"column": copy.column, "label": label, "rows": copy.rows, "distinct_labels": copy.distinct},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(
            f"compared in all {copy.rows:,} rows, without an exception; from the other features, a probe learns the labels "
            f"{copy.others_score:.0f} standard deviations better than permuted labels"
        ),
        fix=Fix(does=f"drop {features} from the inputs of every set", safety=Safety.UNSAFE),
    )


def _features(copy: LabelCopy) -> str:
    if not copy.features:
        return f'"{copy.column}"'
    shown = ", ".join(str(f) for f in copy.features[:_NAMED]) + (", …" if len(copy.features) > _NAMED else "")
    return f'feature{"s" if len(copy.features) > 1 else ""} {shown} of "{copy.column}"'


def _reaches_model(copy: LabelCopy, dataset: DatasetFacts, batch: BatchFacts) -> bool:
    """Whether the batch has the column in the size in which it was read."""
    tensor, column = batch.tensors.get(copy.column), dataset.train.column(copy.column)
    if tensor is None or column is None:
        return False
    return not copy.features or tuple(tensor.shape[1:]) == tuple(column.shape)
