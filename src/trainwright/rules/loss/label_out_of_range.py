"""TW401 label-out-of-range: a label lies outside the scores that the model's head gives.

Why it matters: on a CPU the loss stops with an index, on a GPU with a device-side assert far from its cause, and
under a compiler it becomes NaN without any error.
Evidence: the census of all labels against the width of the head; with a head of that width, or with the labels
renumbered, the loss is finite.
Error: `Target … is out of bounds.`
Error: `device-side assert triggered`
Error: `index … is out of bounds for dimension … with size …`
Error: `Received a label value of`
Fix (safe): give the model as many outputs as there are labels, or renumber the labels from 0; for one
sigmoid unit and labels of 0 and 1, compute the binary cross-entropy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.fix import Fix, Safety, SetKeyword
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role, role_of_split
from trainwright.core.rule import rule
from trainwright.rules.places import loss_place, rename_loss
from trainwright.stages.dataset import DatasetFacts, LabelFacts, SplitFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts

# Noise on labels of 0 and 1 is a known remedy (of discriminators, say).
NOISE = 0.25
_OF_CLASSES = ("cross_entropy", "nll_loss")
_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@rule("TW401", Severity.ERROR)
def label_out_of_range(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """A class label that is negative, or not below the number of scores."""
    if (found := _of_binary_loss(loss, setup)) is not None:
        yield found
        return
    call, width = loss.call, loss.classes
    by_hand = call is None and _picked_outside(loss, forward)
    if by_hand and forward.output:
        width = forward.output.shape[-1]
    elif call is None or call.function not in _OF_CLASSES or call.targets.is_float:
        return
    if width is None:
        return
    ignored = call.options.get("ignore_index", -100) if call else -100
    in_batch = [int(v) for v in call.target_values if v != ignored] if call else []
    for split in dataset.splits:
        labels = _census(split) if loss.targets_are_labels or by_hand else None
        if labels is None and split.name != "train":
            continue
        seen = sorted(int(v) for v in labels.census if v != ignored) if labels else in_batch
        if not seen or (seen[0] >= 0 and seen[-1] < width):
            continue
        if set(in_batch) - set(seen) and all(0 <= v < width for v in in_batch):
            continue  # the loss is given numbers that the data do not hold: they are numbered anew on the way
        if call is not None and width == 1 and call.activation == "sigmoid" and set(seen) <= {0, 1}:
            yield _of_one_sigmoid(call, loss, setup)
            return
        outside = next(v for v in seen if not 0 <= v < width)
        row = (
            f", first in row {labels.first_rows[outside]}" if labels and outside in labels.first_rows else ""
        )
        numbers = _renumbered(seen, width, int(ignored))
        if numbers is None:
            found = _too_narrow(
                seen, width, split.name, row, _head(setup, forward, split.name), _is_stored(forward)
            )
            yield replace(found, proof=_silent(loss), fix=_for_layer(found, forward))
        else:
            yield _misnumbered(seen, width, numbers, row, setup, split.name)
        return


def _of_binary_loss(loss: LossFacts, setup: SetupFacts) -> Finding | None:
    """Targets outside 0 to 1, of which a binary cross-entropy has no minimum; rows that a weight may leave out aside."""
    call = next((c for c in loss.calls if c.function in _BINARY), None)
    low, high = (call.targets.minimum, call.targets.maximum) if call else (None, None)
    if call is None or low is None or high is None or call.targets.non_finite:
        return None
    if low >= -NOISE and high <= 1 + NOISE:
        return None
    if prod(call.inputs.shape) != prod(call.targets.shape):  # that they do not fit is another fault
        return None
    if call.options.get("reduction", "mean") == "none" or call.options.get("has_weight"):
        return None
    values = sorted(call.target_values)
    are_classes = all(v == int(v) for v in values)
    if are_classes and len(values) == 2:
        numbers = {int(v): i for i, v in enumerate(values)}
        does, repair = (
            f"number the two classes 0 and 1, not {values[0]:g} and {values[1]:g}",
            _renumber(numbers, _BINARY),
        )
    elif are_classes and len(values) > 2:
        does, repair = (
            f"give the model an output for each of the {len(values)} classes, and use a cross-entropy",
            None,
        )
    else:
        way = f"divide by {high:g}" if low >= 0 else f"add {-low:g} and divide by {high - low:g}"
        rather = (
            "" if low >= 0 else ", or take a linear output and the squared error for numbers of both signs"
        )
        does, repair = f"scale the targets to 0 to 1: {way}{rather}", _to_unit_range(low, high)
    return Finding(
        message=f"the targets run from {low:g} to {high:g}; a binary cross-entropy takes 0 to 1",
        measured={"smallest_label": low, "largest_label": high},
        where=setup.place(Role.LABELS_MADE, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            "the loss of a target outside 0 to 1 has no minimum: it falls without end as the score grows"
        ),
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _to_unit_range(low: float, high: float) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] not in _BINARY:
            return call
        start = min(low, 0.0)
        targets = call.tensors.cast(call["targets"], "float32")
        return call.replace(targets=(targets - start) / (high - start))

    return Repair("scale the targets of the binary cross-entropy to 0 to 1", Seam.LOSS, change)


def _picked_outside(loss: LossFacts, forward: ForwardFacts) -> bool:
    """Whether a loss written by hand raised because it picked a score that a row of (N, C) scores does not have."""
    shape = forward.output.shape if forward.output else ()
    return loss.failure is not None and "out of bounds" in loss.failure.message and len(shape) == 2


def _census(split: SplitFacts) -> LabelFacts | None:
    labels = split.labels
    return labels if labels and labels.kind in ("class", "tokens") and labels.census else None


def _renumbered(seen: list[int], width: int, ignored: int) -> dict[int, int] | None:
    """The number that each label would get: counted from 0, or -1 as no label; None where the head is too narrow."""
    if seen[0] >= 0 and not (seen[0] == 1 and seen[-1] == width):
        return None
    if len(seen) <= width:
        return {v: i for i, v in enumerate(seen)} if seen[0] < 0 else {v: v - 1 for v in seen}
    if seen[0] == -1 and len(seen) == width + 1 and seen[-1] < width:
        return {-1: ignored}
    return None


def _head(setup: SetupFacts, forward: ForwardFacts, split: str) -> Place | None:
    if split != "train":
        return setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER)
    head = forward.head
    if head is None or head.where is None:
        return setup.place(Role.MODEL, Role.TRAINER)
    return (head.size_at or setup.place(Role.MODEL) or head.where) if head.sizes else head.where


def _is_stored(forward: ForwardFacts) -> bool:
    """Whether the checkpoint holds the head: it then refuses to load into one of another size."""
    head = f"{forward.head.name}." if forward.head else ""
    return any(p.freshly_initialised is False for p in forward.parameters if head and p.name.startswith(head))


def _too_narrow(
    seen: list[int], width: int, split: str, row: str, where: Place | None, stored: bool
) -> Finding:
    classes = seen[-1] + 1 if seen[0] >= 0 else len(seen)
    of = "" if split == "train" else f" of the {split} set"
    return Finding(
        message=f"the model has {width} outputs, and labels{of} go up to {seen[-1]}{row}: it needs {classes}",
        measured={
            "outputs": width,
            "smallest_label": seen[0],
            "largest_label": seen[-1],
            "needed_outputs": classes,
        },
        where=where,
        repair=_widen(classes) if seen[0] >= 0 else None,
        fix=Fix(
            does=f"give the model {classes} outputs (num_labels={classes}"
            + (", ignore_mismatched_sizes=True: the checkpoint's head has other sizes)" if stored else ")"),
            safety=Safety.SAFE,
            edits=tuple(
                SetKeyword(where.file, where.line, name, value, function="from_pretrained")
                for name, value in _head_arguments(classes, stored).items()
                if where
            ),
        ),
    )


def _silent(loss: LossFacts) -> Proof | None:
    """Where the loss did not stop: which rows' own losses are not finite, and what they share."""
    if loss.value is None or math.isfinite(loss.value) or not loss.row_losses:
        return None
    bad = [i for i, x in enumerate(loss.row_losses) if not math.isfinite(x)]
    labels = {loss.row_labels[i] for i in bad} if len(loss.row_labels) == len(loss.row_losses) else set()
    told = f": the rows with label {' or '.join(f'{x:g}' for x in sorted(labels))}" if labels else ""
    return Proof(
        f"nothing stops: the loss is {loss.value}, because that of {len(bad)} of {len(loss.row_losses)} rows is{told}"
    )


def _of_one_sigmoid(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    """One probability for two labels: what it asks for is the loss that takes it, and not another layer."""
    function, where = call.function, loss_place(loss, setup)
    binary = "binary_crossentropy" if call.own_name else "binary_cross_entropy"

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        targets = call.tensors.reshape(call["targets"], (-1, *call["logits"].shape[1:]))
        return call.replace(function="binary_cross_entropy", targets=call.tensors.cast(targets, "float32"))

    return Finding(
        message=f"the model gives one sigmoid score a row, and {call.own_name or function} takes one for each of the "
        "labels 0 and 1",
        measured={"outputs": 1, "smallest_label": 0, "largest_label": 1},
        where=where,
        proof=_silent(loss),
        repair=Repair(f"compute {binary} instead of {call.own_name or function}", Seam.LOSS, change),
        fix=Fix(
            does=f"use {binary}, the loss of one sigmoid unit; or end the model with 2 units and a softmax",
            safety=Safety.SAFE,
            edits=rename_loss(call.own_name, binary, where, setup),
        ),
    )


def _for_layer(found: Finding, forward: ForwardFacts) -> Fix | None:
    """The fix in the words of a script that builds its last layer itself."""
    if found.fix is None or forward.head is None or forward.head.kind != "Dense":
        return found.fix
    either = (
        ", or train the one score by a binary cross-entropy" if found.measured["needed_outputs"] == 2 else ""
    )
    return replace(
        found.fix, does=f"give the last layer {found.measured['needed_outputs']} units{either}", edits=()
    )


def _head_arguments(classes: int, stored: bool) -> dict[str, str]:
    return {"num_labels": str(classes)} | ({"ignore_mismatched_sizes": "True"} if stored else {})


def _misnumbered(
    seen: list[int], width: int, numbers: Mapping[int, int], row: str, setup: SetupFacts, split: str
) -> Finding:
    unlabelled, keras = len(numbers) == 1, setup.framework == "keras"
    told = f"renumber the labels {seen[0]} to {seen[-1]} from 0"
    if unlabelled:
        told = (
            f"leave rows without a label out, or give SparseCategoricalCrossentropy ignore_class={seen[0]}"
            if keras
            else "mark rows without a label with -100"
        )
    role = role_of_split(split)
    return Finding(
        message=f"labels run from {seen[0]} to {seen[-1]}{row}; the loss takes 0 to {width - 1}"
        + ("" if keras else ", or -100 for no label"),
        measured={"outputs": width, "smallest_label": seen[0], "largest_label": seen[-1]},
        where=setup.place(role.made, role, Role.TRAINER),
        repair=None if keras and unlabelled else _renumber(numbers, _OF_CLASSES),
        fix=Fix(does=told, safety=Safety.UNSAFE),
    )


def _widen(classes: int) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.widen_head(call["model"], classes)
        return call

    return Repair(f"give the head {classes} outputs", Seam.TRAINER, change)


def _renumber(numbers: Mapping[int, int], functions: tuple[str, ...]) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] not in functions:  # of another head, whose targets are numbered otherwise
            return call
        return call.replace(targets=call.tensors.renumbered(call["targets"], numbers))

    said = ", ".join(f"{a} as {b}" for a, b in list(numbers.items())[:4])
    return Repair(f"take label {said}{', …' if len(numbers) > 4 else ''}", Seam.LOSS, change)
