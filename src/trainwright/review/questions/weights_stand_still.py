"""TW1003 weights-stand-still: the updates do not move the weights that they should.

Why it matters: The run takes its time, the loss is printed, and the model stays what it was.
Evidence: The weights that the optimizers hold, before the first and after the last update; the gradients and the rate of
each update that was looked at.
Fix (manual): Give the optimizer the parameters of the model that is trained, after they were moved, replaced or unfrozen;
look at what sets the rate, at the scale of the loss, and at weights of so few bits that small steps are rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Parameter, Record
from trainwright.review.parts import still_trainings
from trainwright.review.profiles import profiles
from trainwright.review.rows import evaluated_rows, trained_rows

# Fewer steps say nothing.
FEWEST_STEPS = 10
# Of the tensors held: those with gradients that never move (one or two may be rounded), and those that get none.
STILL_SHARE, UNREACHED_SHARE = 0.05, 0.4
# Rows of a table that no batch looks up do not move; a sample of a tall tensor may hold no others.
TABLE_ROWS, TABLE_RATIO = 1000, 4
# Below this norm, gradients are rounding.
VANISHED = 1e-7
# Of the values of weights in half precision: beyond this share, it is rounding that keeps them.
ROUNDED_SHARE = 0.3
# Of the updates between the first quarter (a warm-up) and the last tenth (the end of a decay).
ZERO_SHARE, FIRST, LAST = 0.3, 0.25, 0.9


@rule("TW1003", Severity.ERROR)
def weights_stand_still(record: Record) -> Iterator[Finding]:
    """Nothing that the optimizer holds moves, or a part of it; gradients that vanish; a rate of 0."""
    found = (
        _still(record)
        or _still_training(record)
        or _left_unfrozen(record)
        or _rounded_away(record)
        or _without_output_layer(record)
        or _without_their_input(record)
        or _without_rate(record)
        or _vanishing(record)
    )
    if found is not None:
        yield found


def _still(record: Record) -> Finding | None:
    held = [one for one in record.parameters if one.is_held and one.is_trainable and one.steps >= FEWEST_STEPS]
    still = [one for one in held if not one.has_moved]
    if not still:
        return None
    if len(still) == len(held):
        return Finding(
            message=f"none of the {len(held):,} tensors of weights that the optimizer holds moves in {record.updates:,} updates",
            measured={"held": len(held), "moved": 0, "updates": record.updates},
            where=record.where,
            proof=Proof("each was compared before the first and after the last update"),
            fix=Fix(does="give the optimizer the parameters of the model that is trained, and a rate above 0"),
        )
    pulled = [one for one in still if one.had_gradient and not _is_table(one)]
    if len(pulled) > max(1, STILL_SHARE * len(held)):
        return Finding(
            severity=Severity.WARNING,
            message=f"{len(pulled):,} of {len(held):,} tensors of weights get gradients, are held by an optimizer, and never "
            f"move: {_names(pulled)}",
            measured={"still": len(pulled), "held": len(held), "updates": record.updates},
            where=record.where,
            proof=Proof("each was compared before the first and after the last update"),
            fix=Fix(
                does="look at their group's rate, at what clears or clips their gradients, and at their number of bits"
            ),
        )
    unreached = [one for one in still if not one.had_gradient]
    if len(unreached) > UNREACHED_SHARE * len(held):
        return Finding(
            severity=Severity.NOTE,
            message=f"{len(unreached):,} of {len(held):,} tensors that the optimizer holds never get a gradient: "
            f"{_names(unreached)}",
            measured={"unreached": len(unreached), "held": len(held)},
            where=record.where,
            fix=Fix(does="check that these weights take part in the loss, or freeze them openly"),
        )
    return None


def _still_training(record: Record) -> Finding | None:
    for one in still_trainings(record):
        updates = record.updates_in(one)
        if not updates:
            return Finding(
                severity=Severity.WARNING,
                message=f"training {one.number} of {len(record.trainings)} makes no update: its trainer has made all of its steps "
                "before",
                measured={"training": one.number, "updates": 0},
                where=one.where,
                proof=Proof("the call returned without a step"),
                fix=Fix(does="give this training a trainer of its own, or raise max_steps or max_epochs before it"),
            )
        if one.is_loop and not record.looked_updates:
            return Finding(
                severity=Severity.WARNING,
                message=f"gradients are taken {updates:,} times of weights that never change: training {one.number} of "
                f"{len(record.trainings)} moves no weight in {updates:,} updates, if it is to train",
                measured={"training": one.number, "moved": 0, "updates": updates},
                where=one.where,
                proof=Proof("the weights that each gradient was taken at, and rows that came again"),
                fix=Fix(does="assign what the update returns to the name that the next gradient is taken at"),
            )
        return Finding(
            message=f"training {one.number} of {len(record.trainings)} moves no weight in {updates:,} updates",
            measured={"training": one.number, "moved": 0, "updates": updates},
            where=one.where,
            proof=Proof("the weights after its steps are those before its first one"),
            fix=Fix(does="build the optimizer after weights are frozen or replaced, of those that are to be trained"),
        )
    return None


def _left_unfrozen(record: Record) -> Finding | None:
    """Weights that a training unfreezes, and that its optimizer was built without."""
    left = [one for one in record.parameters if one.is_left_unfrozen]
    if not left:
        return None
    return Finding(
        severity=Severity.WARNING,
        message=f"{len(left):,} tensor{'s are' if len(left) > 1 else ' is'} unfrozen in the last training, get"
        f"{'' if len(left) > 1 else 's'} gradients and never move: {_names(left)}; its optimizer was built without them",
        measured={"tensors": len(left), "updates": record.updates},
        where=record.trainings[-1].where if record.trainings else None,
        proof=Proof("frozen when it began; their values later on, beside those then"),
        fix=Fix(does="add_param_group them to the optimizer where they are unfrozen, or build a new one there"),
    )


def _rounded_away(record: Record) -> Finding | None:
    """Weights in half precision, most of whose values are in the end what they were, though gradients reach them."""
    held = [one for one in record.parameters if one.is_held and one.had_gradient and not _is_table(one)]
    halves = [one for one in held if one.rounded_share is not None]
    still = float(np.mean([one.rounded_share for one in halves])) if halves else 0.0
    if still < ROUNDED_SHARE or max(one.steps for one in halves) < FEWEST_STEPS:
        return None
    return Finding(
        severity=Severity.WARNING,
        message=f"{still:.0%} of the weights in {len(halves):,} tensors of half precision are after {record.updates:,} updates what "
        f"they were before, though they get gradients: steps of less than their last bit are rounded away",
        measured={"tensors": len(halves), "still_share": round(still, 3), "updates": record.updates},
        where=record.where,
        proof=Proof("a sample of the values of each was compared before the first and after the last update"),
        fix=Fix(does="keep the weights in float32 and compute in half precision (autocast), or raise the rate"),
    )


def _without_output_layer(record: Record) -> Finding | None:
    """The layer that gives the answers gets gradients, no optimizer holds it, and others of its model are trained."""
    widths = {output.width for output in record.trained_labels}
    for model in {one.model for one in record.parameters if one.model}:
        of = [one for one in record.parameters if one.model == model and one.is_trainable]
        left = [
            one
            for one in of
            if len(one.shape) == 2
            and one.shape[0] in widths
            and one.had_gradient
            and not (one.is_held or one.has_moved)
        ]
        if left and any(one.is_held and one.has_moved and one.steps >= FEWEST_STEPS for one in of):
            last = record.trainings[-1] if record.trainings else None
            return Finding(
                severity=Severity.WARNING,
                message=f"{_names(left)}, which gives the answers, gets gradients, and no optimizer holds it: it stays as it "
                "was built",
                measured={"rows": left[0].shape[0], "columns": left[0].shape[1]},
                where=last.where if last is not None else None,
                proof=Proof("the weights that each optimizer held when it stepped, and their movement"),
                fix=Fix(does="build the optimizer after the layer is in its place, or add its parameters to it"),
            )
    return None


def _without_their_input(record: Record) -> Finding | None:
    """Weights without gradients, and a column of the script's rows that tells more than what the model receives."""
    unreached = [
        one
        for one in record.parameters
        if one.is_held and one.is_trainable and one.steps >= FEWEST_STEPS and not (one.had_gradient or one.has_moved)
    ]
    if len(unreached) < 2:
        return None
    lost = next((one for one in profiles(record) if one.carriers), None)
    if lost is None:
        return None
    return Finding(
        severity=Severity.WARNING,
        message=f"{len(unreached):,} tensors get no gradient ({_names(unreached)}), and {', '.join(lost.carriers)} of the "
        f"script's rows tells more of the labels than what the model receives ({lost.name} {lost.raw:.2f} against "
        f"{lost.received:.2f}): a column is lost on its way to these weights",
        measured={"tensors": len(unreached), "raw": lost.raw, "received": lost.received, "model": lost.model},
        where=record.where,
        proof=Proof(f"a simple learner on {lost.rows:,} rows, as the script held them and as the model received them"),
        fix=Fix(does="name the column in forward, or keep what the Trainer drops: remove_unused_columns=False"),
    )


def _is_table(one: Parameter) -> bool:
    return len(one.shape) == 2 and one.shape[0] >= TABLE_ROWS and one.shape[0] >= TABLE_RATIO * one.shape[1]


def _names(parameters: list[Parameter]) -> str:
    names = [one.name or "x".join(map(str, one.shape)) for one in parameters]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _without_rate(record: Record) -> Finding | None:
    for optimizer in sorted({one.optimizer for one in record.looked_updates}):
        steps = [one for one in record.looked_updates if one.optimizer == optimizer]
        low, high = steps[0].number, steps[-1].number
        middle = [one for one in steps if low + FIRST * (high - low) <= one.number <= low + LAST * (high - low)]
        zero = [one for one in middle if one.rate == 0]
        # Each that was looked at stands for those up to the next one of any optimizer.
        numbers = sorted({one.number for one in record.looked_updates})
        stands_for = {one: after - one for one, after in pairwise(numbers)}
        count = sum(stands_for.get(one.number, 1) for one in zero)
        share = count / max(sum(stands_for.get(one.number, 1) for one in middle), 1)
        if len(middle) > FEWEST_STEPS and share > ZERO_SHARE:
            return Finding(
                severity=Severity.WARNING,
                message=f"the learning rate is 0 in {share:.0%} of the updates between {middle[0].number:,} "
                f"and {middle[-1].number:,}, first in update {zero[0].number:,}",
                measured={"zero": len(zero), "looked_at": len(middle), "highest": max(one.rate for one in steps)},
                where=record.where,
                proof=Proof("the rate of the optimizer at each step that was looked at"),
                fix=Fix(
                    does="let the schedule count what it is stepped by (epochs or updates), over the whole training"
                ),
            )
    return None


def _vanishing(record: Record) -> Finding | None:
    """Gradients that are rounding from the start on; later they may vanish because all is learned."""
    norms = [one.gradient_norm for one in record.looked_updates if one.gradient_norm is not None]
    early = norms[: max(FEWEST_STEPS, len(norms) // 4)]
    if len(norms) < FEWEST_STEPS or max(np.median(early), np.median(norms)) >= VANISHED:
        return None
    if any(one.learned for one in (*evaluated_rows(record), *trained_rows(record))):
        return None
    return Finding(
        severity=Severity.WARNING,
        message=f"the gradients vanish: their norm is {np.median(norms):.2g} in the median of {len(norms):,} updates, below "
        f"{VANISHED:g}",
        measured={"median_norm": float(np.median(norms)), "looked_at": len(norms)},
        where=record.where,
        proof=Proof("the norm over all weights that the optimizer holds, before the step"),
        fix=Fix(does="look for a saturated activation, a detached result, or a loss that is scaled to nothing"),
    )
