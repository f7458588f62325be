"""TW104 destroyed-labels: all training labels are the same, although their source is not.

Why it matters: The loss falls to zero at once and nothing is learned; no framework warns.
Evidence: The counts of the labels, compared with those of another column or object with the same rows.
Fix (manual): Look at the step that made the labels: a division, a cast, or a mapping or join that matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.stages.dataset import DatasetFacts, LabelSource
from trainwright.stages.loss import LossFacts
from trainwright.stages.setup import SetupFacts


@rule("TW104", Severity.ERROR)
def destroyed_labels(dataset: DatasetFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """A single label value, although a source with the same rows has several."""
    labels = dataset.train.labels
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
