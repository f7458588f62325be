"""TW104 destroyed-labels: all training labels are the same, although their source is not.

Why it matters: The loss falls to zero at once and nothing is learned; no framework warns.
Evidence: The counts of the labels, compared with those of another column or object with the same rows; or, where the
step changes them for the loss, with their counts before.
Fix (manual): Look at the step that made the labels: a division, a cast, or a mapping or join that matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.stages import DatasetFacts, LabelFacts, LabelSource, LossCall, LossFacts, SetupFacts

_OF_CLASSES = ("cross_entropy", "nll_loss")


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
    whole = call.takes_indices or (call.function in _OF_CLASSES and not call.targets.is_float)
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

    def change(call: Call) -> Call:
        return call.replace(train_dataset=call.tensors.change_rows(call.part("train_dataset"), take))

    return Repair(f'take the labels from "{source.expression}"', Seam.TRAINER, change)
