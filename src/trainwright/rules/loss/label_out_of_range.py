"""TW401 label-out-of-range: the model has fewer outputs than there are labels.

Why it matters: On a CPU the loss raises an index error, on a GPU it fails a device-side assert far from the cause, and
under a compiler it becomes NaN without any error.
Evidence: The counts of all labels, compared with the number of outputs; with enough outputs the loss is finite. An
evaluation set whose labels are all -1 has none (test sets whose labels are kept secret), and no loss of classes takes it.
Error: `Target … is out of bounds.`
Error: `device-side assert triggered`
Error: `index … is out of bounds for dimension … with size …`
Error: `Received a label value of`
Fix (safe): Give the model as many outputs as there are labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainwright.core import Call, Fate, Finding, Fix, Place, Repair, Role, Safety, Seam, SetKeyword, Severity, rule
from trainwright.rules.class_labels import (
    labels_out_of_range,
    lacks_labels,
    refuses_unlabelled,
    rows_not_finite,
    without_labels,
)
from trainwright.stages import DatasetFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW401", Severity.ERROR, foretells=Fate.STOPS)
def label_out_of_range(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels that exceed the number of scores however they are numbered."""
    held = dataset.evaluation.labels if dataset.evaluation else None
    if refuses_unlabelled(loss) and loss.targets_are_labels and lacks_labels(held) and -1 not in _census(dataset):
        yield without_labels(dataset, setup)
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.for_binary_loss or labels.numbers is not None:
        return
    seen = labels.seen
    classes = seen[-1] + 1 if seen[0] >= 0 else len(seen)
    of = "" if labels.split == "train" else f" of the {labels.split} set"
    where = _head(setup, forward, labels.split)
    yield Finding(
        message=f"the model has {labels.width} outputs, and labels{of} go up to {seen[-1]}{labels.row}: it needs {classes}",
        measured={
            "outputs": labels.width,
            "smallest_label": seen[0],
            "largest_label": seen[-1],
            "needed_outputs": classes,
        },
        where=where,
        is_silent=loss.failure is None and loss.call is not None and (loss.call.targets.maximum or 0) >= labels.width,
        proof=rows_not_finite(loss),
        repair=_widen(classes) if seen[0] >= 0 else None,
        fix=_fix(classes, where, setup.place(Role.CONFIG), forward),
    )


def _census(dataset: DatasetFacts) -> Mapping[int | float | str, int]:
    return dataset.train.labels.census if dataset.train.labels else {}


def _head(setup: SetupFacts, forward: ForwardFacts, split: str) -> Place | None:
    if split != "train":
        return setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER)
    head = forward.head
    if head is None or head.where is None:
        return setup.place(Role.MODEL, Role.TRAINER)
    return (head.size_at or setup.place(Role.MODEL) or head.where) if head.sizes else head.where


def _fix(classes: int, where: Place | None, config: Place | None, forward: ForwardFacts) -> Fix:
    is_configured = forward.configured_labels is not None or any(p.initial_deviation for p in forward.parameters)
    if forward.head is not None and not is_configured:
        either = ", or train the one score by a binary cross-entropy" if classes == 2 else ""
        return Fix(does=f"give the last layer {classes} units{either}", safety=Safety.SAFE)
    if config is not None:
        edit = SetKeyword(config.file, config.line, "num_labels", str(classes), function="Config")
        return Fix(does=f"give the model {classes} outputs (num_labels={classes})", safety=Safety.SAFE, edits=(edit,))
    given = {"num_labels": str(classes)}
    told = f"num_labels={classes}"
    if _is_stored(forward):
        given |= {"ignore_mismatched_sizes": "True"}
        told += ", ignore_mismatched_sizes=True: the checkpoint's head has other sizes"
    return Fix(
        does=f"give the model {classes} outputs ({told})",
        safety=Safety.SAFE,
        edits=tuple(
            SetKeyword(where.file, where.line, name, value, function="from_pretrained")
            for name, value in given.items()
            if where
        ),
    )


def _is_stored(forward: ForwardFacts) -> bool:
    """Whether the checkpoint contains the head; if so, it cannot be loaded into a head of another size."""
    head = f"{forward.head.name}." if forward.head else ""
    return any(p.freshly_initialised is False for p in forward.parameters if head and p.name.startswith(head))


def _widen(classes: int) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.widen_head(call["model"], classes)
        return call

    return Repair(f"give the head {classes} outputs", Seam.TRAINER, change)
