"""Labels outside what the loss accepts. The same numbers show several faults; one rule reports."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Safety, Severity, role_of_split, rule
from trainwright.rules.class_labels import (
    OutOfRange,
    binary_loss_out_of_range,
    labels_out_of_range,
    lacks_labels,
    refuses_unlabelled,
    renumber,
    rows_not_finite,
    without_labels,
)
from trainwright.rules.fixes import safe, set_keyword, unsafe
from trainwright.rules.places import loss_place, rename_loss
from trainwright.rules.repairs import at_loss, on_model
from trainwright.stages import CLASS_LOSSES, DatasetFacts, ForwardFacts, LossFacts, SetupFacts
from trainwright.stages.loss import BINARY_LOSSES


@rule("TW401", Severity.ERROR, foretells=Fate.STOPS)
def label_out_of_range(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels that exceed the number of scores however they are numbered."""
    held, trained = dataset.evaluation.labels if dataset.evaluation else None, dataset.train.labels
    is_known = trained is not None and -1 in trained.census
    if refuses_unlabelled(loss) and loss.targets_are_labels and lacks_labels(held) and not is_known:
        yield without_labels(dataset, setup)
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.for_binary_loss or labels.numbers is not None:
        return
    seen = labels.seen
    classes = seen[-1] + 1 if seen[0] >= 0 else len(seen)
    of = "" if labels.split == "train" else f" of the {labels.split} set"
    where = _head_place(setup, forward, labels.split)
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
        repair=on_model(f"give the head {classes} outputs", lambda tensors, model: tensors.widen_head(model, classes))
        if seen[0] >= 0
        else None,
        fix=_more_outputs(classes, where, setup.place(Role.CONFIG), forward),
    )


def _head_place(setup: SetupFacts, forward: ForwardFacts, split: str) -> Place | None:
    if split != "train":
        return setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER)
    head = forward.head
    if head is None or head.where is None:
        return setup.place(Role.MODEL, Role.TRAINER)
    return (head.size_at or setup.place(Role.MODEL) or head.where) if head.sizes else head.where


def _more_outputs(classes: int, where: Place | None, config: Place | None, forward: ForwardFacts) -> Fix:
    is_configured = forward.configured_labels is not None or any(p.initial_deviation for p in forward.parameters)
    if forward.head is not None and not is_configured:
        either = ", or train the one score by a binary cross-entropy" if classes == 2 else ""
        return safe(f"give the last layer {classes} units{either}")
    if config is not None:
        edits = set_keyword(config, "num_labels", str(classes), "Config")
        return safe(f"give the model {classes} outputs (num_labels={classes})", edits)
    given = {"num_labels": str(classes)}
    told = f"num_labels={classes}"
    if _is_stored(forward):
        given |= {"ignore_mismatched_sizes": "True"}
        told += ", ignore_mismatched_sizes=True: the checkpoint's head has other sizes"
    return safe(
        f"give the model {classes} outputs ({told})",
        tuple(edit for name, value in given.items() for edit in set_keyword(where, name, value, "from_pretrained")),
    )


def _is_stored(forward: ForwardFacts) -> bool:
    """Whether the checkpoint contains the head; if so, it cannot be loaded into a head of another size."""
    head = f"{forward.head.name}." if forward.head else ""
    return any(p.freshly_initialised is False for p in forward.parameters if head and p.name.startswith(head))


@rule("TW422", Severity.ERROR, after="TW401")
def misnumbered_labels(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels that start at 1 or include a negative number, and fit when numbered from 0."""
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.numbers is None or labels.are_unlabelled or labels.for_binary_loss:
        return
    fix = unsafe(f"renumber the labels {labels.seen[0]} to {labels.seen[-1]} from 0")
    yield _outside(labels, loss, setup, renumber(labels.numbers, CLASS_LOSSES), fix)


def _outside(labels: OutOfRange, loss: LossFacts, setup: SetupFacts, repair: Repair | None, fix: Fix) -> Finding:
    seen, role = labels.seen, role_of_split(labels.split)
    or_none = "" if loss.ignored_label is None else f", or {loss.ignored_label} for no label"
    return Finding(
        message=f"labels run from {seen[0]} to {seen[-1]}{labels.row}; the loss takes 0 to {labels.width - 1}{or_none}",
        measured={"outputs": labels.width, "smallest_label": seen[0], "largest_label": seen[-1]},
        where=setup.place(role.made, role, Role.TRAINER),
        repair=repair,
        fix=fix,
    )


@rule("TW423", Severity.ERROR, after="TW401")
def unignored_labels(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels with one more number than there are classes with a score."""
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.numbers is None or not labels.are_unlabelled or labels.for_binary_loss:
        return
    repair = None if loss.ignored_label is None else renumber(labels.numbers, CLASS_LOSSES)
    fix = unsafe(setup.words.unlabelled_rows.format(label=labels.seen[0]))
    yield _outside(labels, loss, setup, repair, fix)


@rule("TW424", Severity.ERROR, after="TW401")
def class_loss_of_one_score(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """One probability for two labels: the fix is a loss that accepts it, not another layer."""
    labels, call = labels_out_of_range(dataset, forward, loss), loss.call
    if labels is None or not labels.for_binary_loss or call is None:
        return
    where, name = loss_place(loss, setup), call.own_name or call.function
    binary = "binary_crossentropy" if call.own_name else "binary_cross_entropy"
    yield Finding(
        message=f"the model outputs one sigmoid score per row, but {name} needs one score per class",
        measured={"outputs": 1, "smallest_label": 0, "largest_label": 1},
        where=where,
        proof=rows_not_finite(loss),
        repair=_binary_instead(call.function, f"compute {binary} instead of {name}"),
        fix=safe(
            f"use {binary}, the loss of one sigmoid unit; or end the model with 2 units and a softmax",
            rename_loss(call.own_name, binary, where, setup),
        ),
    )


def _binary_instead(function: str, does: str) -> Repair:
    def change(call: Call) -> Call:
        targets = call.tensors.reshape(call["targets"], (-1, *call["logits"].shape[1:]))
        return call.replace(function="binary_cross_entropy", targets=call.tensors.cast(targets, "float32"))

    return at_loss(does, function, change)


@rule("TW425", Severity.ERROR, after="TW401")
def binary_targets_out_of_range(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets for which a binary cross-entropy has no minimum."""
    call = binary_loss_out_of_range(loss)
    if call is None:
        return
    low, high = call.targets.minimum or 0.0, call.targets.maximum or 0.0
    does, repair = _brought_into_range(sorted(call.target_values), low, high)
    yield Finding(
        message=f"the targets range from {low:g} to {high:g}, but a binary cross-entropy expects 0 to 1",
        measured={"smallest_label": low, "largest_label": high},
        where=setup.place(Role.LABELS_MADE, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof("the loss of a target outside 0 to 1 has no minimum: it keeps falling as the score grows"),
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _brought_into_range(values: list[float], low: float, high: float) -> tuple[str, Repair | None]:
    """How to bring the targets into range: a description and, if possible, a repair."""
    are_classes = all(v == int(v) for v in values)
    if are_classes and len(values) == 2:
        numbers = {int(v): i for i, v in enumerate(values)}
        does = f"number the two classes 0 and 1, not {values[0]:g} and {values[1]:g}"
        return does, renumber(numbers, BINARY_LOSSES)
    if are_classes and len(values) > 2:
        return (f"give the model an output for each of the {len(values)} classes, and use a cross-entropy", None)
    way = f"divide by {high:g}" if low >= 0 else f"add {-low:g} and divide by {high - low:g}"
    rather = "" if low >= 0 else ", or use a linear output and the squared error for targets of both signs"
    return f"scale the targets to 0 to 1: {way}{rather}", _to_unit_range(low, high)


def _to_unit_range(low: float, high: float) -> Repair:
    def change(call: Call) -> Call:
        start = min(low, 0.0)
        targets = call.tensors.cast(call["targets"], "float32")
        return call.replace(targets=(targets - start) / (high - start))

    return at_loss("scale the targets of the binary cross-entropy to 0 to 1", BINARY_LOSSES, change)
