"""What the labels hold: too little, text, or what the inputs hold too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trainwright.core import Call, Failure, Fate, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.stages import (
    CLASS_LOSSES,
    IGNORED_LABEL,
    MOST_CLASSES,
    BatchFacts,
    DatasetFacts,
    LabelCopy,
    LabelFacts,
    LabelSource,
    LossCall,
    LossFacts,
    SetupFacts,
    TextLabels,
)


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
        fix=safe(
            f"convert the numerals first: [int(v) for v in {named}]"
            if numerals
            else f"number them first: names = sorted(set({named})), then [names.index(v) for v in {named}]"
        ),
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(repr(n) for n in names[:4]) + (", …" if len(names) > 4 else "")


def _encode(column: str, names: list[str]) -> Repair:
    numbers = {name: i for i, name in enumerate(names)}

    def encode(row: dict[str, Any], at: int) -> dict[str, Any]:
        return {**row, column: numbers.get(row[column], IGNORED_LABEL)}

    def change(call: Call) -> Call:
        def encoded(data: Any) -> Any:
            if type(data) is dict:
                return {name: encoded(part) for name, part in data.items()}
            return None if data is None else call.tensors.change_rows(data, encode)

        return call.replace(**{role: encoded(call[role]) for role in ("train_dataset", "eval_dataset")})

    return Repair(f'number the {len(names)} labels of "{column}" by their sorted order', Seam.TRAINER, change)


@rule("TW104", Severity.ERROR)
def destroyed_labels(dataset: DatasetFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """A single label value, although a source with the same rows has several."""
    labels = dataset.train.labels
    if labels is not None and loss is not None and loss.call is not None:
        cut = _cut_values(labels, dataset, loss.call)
        if cut is not None:
            yield from _cut(labels, *cut, loss.call, dataset, setup)
            return
    if labels is None or not dataset.sources or not dataset.train.labels_complete:
        return
    if loss is not None and loss.call is not None and not loss.targets_are_labels:
        return  # the loss compares with something else: the labels are there for the framework's sake
    value, count = next(iter(labels.census.items()))
    source = max(dataset.sources, key=lambda s: (s.own_column, f'["{labels.column}"]' in s.expression, len(s.values)))
    what = f'the column "{source.expression}" of the same rows' if source.own_column else source.expression
    shown = ", ".join(repr(v) for v in list(source.values)[:4]) + (", …" if len(source.values) > 4 else "")
    yield Finding(
        message=f"all {count} training labels are {value!r}; {what} has {len(source.values)} different values ({shown})",
        measured={"label": value, "rows": count, "source": source.expression, "source_values": len(source.values)},
        where=dataset.label_place or setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f'1 value in "{labels.column}", {len(source.values)} in {source.expression}, over {source.rows} rows'
        ),
        repair=_undo(labels.column, source, dataset),
        fix=Fix(
            does=f'look at how "{labels.column}" is made from {source.expression}: a division, a cast, a mapping or a join'
        ),
    )


def _cut_values(
    labels: LabelFacts, dataset: DatasetFacts, call: LossCall
) -> tuple[int, list[int | float | str]] | None:
    """How many values the labels have, and those that are left in the loss; None if it gets them as they are."""
    if labels.distinct_before_cut is not None:
        return labels.distinct_before_cut, list(labels.census)
    column = dataset.train.column(labels.column)
    whole = call.takes_indices or (call.function in CLASS_LOSSES and not call.targets.is_float)
    if labels.kind != "real" or labels.per_row != 1 or column is None or not column.values or not whole:
        return None
    left = {int(float(value)) for value in column.values}
    return (len(column.values), list(left)) if left >= {int(v) for v in call.target_values} else None


def _cut(
    labels: LabelFacts,
    before: int,
    values: list[int | float | str],
    call: LossCall,
    dataset: DatasetFacts,
    setup: SetupFacts,
) -> Iterator[Finding]:
    """Labels of which fewer are left for the loss than the model has outputs for."""
    after = len(values)
    # A model with an output for each of the values was not meant to have fewer.
    if after >= before or call.inputs.shape[-1] != before:
        return
    left = f"all are {values[0]}" if after == 1 else f"{after} different values are left"
    yield Finding(
        message=f"the labels of {labels.counted:,} rows have {before} different values, and the model has as many outputs; "
        f"as the loss gets them, {left}",
        measured={"labels": labels.counted, "values": before, "values_in_loss": after},
        # Where the loss itself makes them integers, the line that made the labels is the one to change.
        where=(dataset.label_place if call.casts_targets else None)
        or call.at
        or setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"the labels of the items compared with those that the loss got for the same rows; so treated, all "
            f"{labels.counted:,} have {after} different {'value' if after == 1 else 'values'}"
        ),
        fix=Fix(does="give the loss the class numbers 0, 1, 2, … unchanged"),
    )


def _undo(column: str, source: LabelSource, dataset: DatasetFacts) -> Repair | None:
    """Use the source's own integers, if the evaluation labels use the same ones or there are none."""
    held = dataset.evaluation.labels if dataset.evaluation else None
    if not source.own_column or not all(isinstance(v, int) and v >= 0 for v in source.values):
        return None
    if held is not None and not set(source.values) >= set(held.census):
        return None

    def take(row: dict[str, Any], at: int) -> dict[str, Any]:
        return {**row, column: row[source.expression]}

    return Repair(
        f'take the labels from "{source.expression}"',
        Seam.TRAINER,
        lambda call: call.replace(train_dataset=call.tensors.change_rows(call.part("train_dataset"), take)),
    )


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
        fix=unsafe(f"drop {features} from the inputs of every set"),
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
