"""A call of the loss with outputs and targets that do not belong together by their shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Place,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import at_loss
from trainwright.stages import (
    CLASS_LOSSES,
    ELEMENTWISE,
    CrossedTargets,
    ForwardFacts,
    LossCall,
    LossFacts,
    PairedLoss,
    SetupFacts,
)

# A test of the shapes at a loss call, and of those of the model's output.
Shapes = Callable[[LossCall, ForwardFacts | None], bool]


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A loss call with the fault that its shapes show."""

    shows: Shapes
    """The first of `_FAULTS` that is so of one of the loss's calls."""
    call: LossCall
    where: Place | None

    def finding(self, fix: Fix, repair: Repair | None, where: Place | None = None) -> Finding:
        """The finding of two shapes that were compared as they are, or not at all."""
        call, scores, targets = self.call, self.call.inputs.shape, self.call.targets.shape
        spread = _spread(scores, targets)
        pairs, raised = prod(spread or ()), call.failure is not None
        what = f"compares {pairs:,} pairs" if spread and not raised else "raised"
        return Finding(
            message=f"{call.function} of outputs {scores} and targets {targets} {what}, for {targets[0]} rows{_values(call)}",
            measured={"outputs": str(scores), "targets": str(targets), "pairs": pairs},
            where=where or self.where,
            proof=Proof(
                f"{scores} and {targets} hold {prod(scores):,} and {prod(targets):,} numbers"
                if raised
                else f"{scores} and {targets} are broadcast to {spread}: each output is compared with the targets of all "
                f"rows, and only one pair in {pairs // prod(scores):,} belongs together"
            ),
            repair=repair,
            fix=fix,
        )


def _values(call: LossCall) -> str:
    """Both values of the loss, as the end of a sentence; empty if they agree to four digits."""
    if call.value is None or call.aligned_value is None:
        return ""
    crossed, aligned = f"{call.value:.4g}", f"{call.aligned_value:.4g}"
    return f": {crossed}, and {aligned} in the same shape" if crossed != aligned else ""


def _misfit(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Misfit | None:
    """The first fault that a call shows; it shows at most one."""
    for shows in _FAULTS:
        for call in loss.calls:
            if shows(call, forward):
                return Misfit(shows=shows, call=call, where=call.at or loss.at or setup.place(Role.MODEL))
    return None


def _raises_for_steps(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether the loss raised because the model's output has an axis of steps that the targets lack.

    A class loss that does not say which targets it expects has its classes on axis 1, not on the last axis.
    """
    if call.failure is None or (call.function in CLASS_LOSSES and call.takes_indices is None):
        return False
    scores = forward.output.shape if forward and forward.output else ()
    if len(scores) not in (3, 4) or scores[1] < 2:
        return False
    if call.takes_indices is not None and not call.takes_indices:
        return call.targets.shape == (scores[0], scores[-1])
    one_output = call.takes_indices or scores[-1] == 1
    return one_output and call.targets.shape in ((scores[0],), (scores[0], 1))


def _has_spare_axes(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether a class loss with its classes on axis 1 got scores (N, C, 1, …) and one label per row."""
    scores, targets = call.inputs.shape, call.targets.shape
    if call.function not in CLASS_LOSSES or call.takes_indices is not None or call.failure is None:
        return False
    return len(scores) > 2 and prod(scores[2:]) == 1 < scores[1] and targets == scores[:1]


def _has_column(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether a class loss got its labels (N,) as a column (N, 1)."""
    scores, targets = call.inputs.shape, call.targets.shape
    return call.function in CLASS_LOSSES and call.failure is not None and targets == (*scores[:1], 1) != scores


def _pairs_rows(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether each row is paired with every row; or the loss raised for shapes that differ only in axes of size 1."""
    scores, targets = call.inputs.shape, call.targets.shape
    if call.function not in ELEMENTWISE or scores == targets or not (scores and targets):
        return False
    if min(prod(scores), prod(targets)) < 2:
        return False
    if call.failure is not None:
        return _have_same_numbers(call)
    if len(scores) == 1 and targets == (*scores, *scores):
        return True  # the pairs were made on the way to the loss, as in rewards + values.unsqueeze(1)
    spread = _spread(scores, targets)
    # If one side is merely repeated along the other (one weight per row, one target for all steps), it may be intended.
    return spread is not None and prod(spread) > max(prod(scores), prod(targets))


def _pairs_steps(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether each step's output is compared with the targets of all rows."""
    return _is_per_step(call) and _pairs_rows(call, forward)


def _is_per_step(call: LossCall) -> bool:
    """Whether there is a single target for all steps of a row."""
    scores, targets = call.inputs.shape, call.targets.shape
    return len(scores) in (2, 3) and scores[1] > 1 and prod(targets) == scores[0] and prod(scores[2:]) == 1


def _have_same_numbers(call: LossCall) -> bool:
    """Whether both shapes are the same except for axes of size 1."""
    return [n for n in call.inputs.shape if n != 1] == [n for n in call.targets.shape if n != 1]


def _spread(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that broadcasting gives; None if the shapes cannot be broadcast."""
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        return None


# What the shapes at a loss call can show, in the order in which it is looked for.
_FAULTS: tuple[Shapes, ...] = (_raises_for_steps, _has_spare_axes, _has_column, _pairs_steps, _pairs_rows)


def _advice(scores: tuple[int, ...], targets: tuple[int, ...]) -> str:
    """What to write so that both have the same shape."""
    if len(scores) == len(targets) + 1 and scores[-1] == 1:
        return "write outputs.squeeze(-1) in the loss"
    if len(targets) == len(scores) + 1 and targets[-1] == 1:
        return "write targets.squeeze(-1) in the loss"
    return f"give outputs {scores} and targets {targets} the same shape"


def _align(function: str) -> Repair:
    """Give a loss function's targets the shape that it expects."""

    def change(call: Call) -> Call:
        scores, targets = call["logits"], call["targets"]
        if tuple(scores.shape) == tuple(targets.shape):
            return call
        shape = tuple(scores.shape[:1]) if function in CLASS_LOSSES else tuple(scores.shape)
        return call.replace(targets=call.tensors.reshape(targets, shape))

    return at_loss("give the targets the shape that goes with the outputs", function, change)


@rule("TW407", Severity.ERROR)
def broadcast_loss(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """An elementwise loss over more elements than either side has, or over incompatible shapes."""
    found = _misfit(loss, setup, forward)
    if found is not None:
        if found.shows is _pairs_rows:
            call = found.call
            repair = _align(call.function) if _have_same_numbers(call) else None
            yield found.finding(safe(_advice(call.inputs.shape, call.targets.shape)), repair)
        return
    if loss.crossed is not None:
        yield _by_hand(loss.crossed, setup)
    if loss.paired is not None:
        yield _over_pairs(loss.paired, loss, setup)


def _by_hand(crossed: CrossedTargets, setup: SetupFacts) -> Finding:
    """A handwritten loss that does not change when targets are permuted between rows."""
    shape, aligned, rows = crossed.shape, crossed.aligned_shape, crossed.shape[0]
    now, in_shape = f"{crossed.value:.4g}", f"{crossed.aligned_value:.4g}"
    values = f": {now}, and {in_shape} with the targets as {aligned}" if now != in_shape else ""
    return Finding(
        message=f"the loss of targets {shape} compares {rows * rows:,} pairs, for {rows} rows{values}",
        measured={
            "targets": str(shape),
            "aligned": str(aligned),
            "pairs": rows * rows,
            "loss": crossed.value,
            "aligned_loss": crossed.aligned_value,
        },
        where=crossed.where or setup.place(Role.COMPUTE_LOSS, Role.TRAIN_STEP, Role.LOSS, Role.MODEL),
        proof=Proof(
            f"with the targets permuted between rows the loss is {crossed.exchanged_value:.6g}, and before it was "
            f"{crossed.value:.6g}: each output is compared with the targets of all rows; as {aligned} their order matters"
        ),
        repair=Repair("give the targets the outputs' shape", Seam.BATCH, _reshape(aligned[1:]))
        if crossed.where is None
        else Repair("give the targets the outputs' shape", Seam.PAIRING, _reshape_pair(shape, aligned)),
        fix=safe(f"give outputs and targets the same shape in the loss: targets as {aligned}"),
    )


def _over_pairs(paired: PairedLoss, loss: LossFacts, setup: SetupFacts) -> Finding:
    """A user-defined loss of which only the values are visible."""
    rows = paired.rows
    return Finding(
        message=f"the loss compares each output with the targets of all rows: for {rows} rows it is {paired.value:.4g}, the mean "
        f"over all {rows * rows} pairs; row by row it is {paired.by_row:.4g}",
        measured={"rows": rows, "pairs": rows * rows, "loss": paired.value, "loss_by_row": paired.by_row},
        where=loss.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(
            f"the loss of {rows} rows is the mean of the {rows * rows} losses of single outputs and targets, to rounding"
        ),
        fix=Fix(does="give both sides one shape within the loss: y_true = ops.reshape(y_true, ops.shape(y_pred))"),
    )


def _reshape(rest: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        return call.replace(y=call.tensors.reshape(call["y"], (-1, *rest)))

    return change


def _reshape_pair(targets: tuple[int, ...], outputs: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        left, right = call["left"], call["right"]
        if len(left.shape) == len(targets) and len(right.shape) == len(outputs):
            return call.replace(left=call.tensors.reshape(left, tuple(right.shape)))
        if len(right.shape) == len(targets) and len(left.shape) == len(outputs):
            return call.replace(right=call.tensors.reshape(right, tuple(left.shape)))
        return call

    return change


_POOLED = "put a Flatten or a global pooling layer between the last convolution and the head"
_LAST = "give the loss the output of the last step (return_sequences=False, or outputs[:, -1])"


@rule("TW426", Severity.ERROR, after="TW407")
def outputs_per_step(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Diagnosis:
    """Outputs with an axis of steps, compared with targets that lack it."""
    found = _misfit(loss, setup, forward)
    if found is None:
        yield from _repeated_targets(loss, setup, forward)
    elif found.shows is _raises_for_steps:
        yield _each_step(found, forward)
    elif found.shows is _pairs_steps:
        yield found.finding(unsafe(_LAST), _last_step(found.call.function), _head(forward))


def _each_step(found: Misfit, forward: ForwardFacts | None) -> Finding:
    """A loss that raised because there is an output per step or image position, but one target per row."""
    call = found.call
    scores = forward.output.shape if forward and forward.output else call.inputs.shape
    steps, is_image = prod(scores[1:-1]), len(scores) == 4
    of = "positions in an image" if is_image else "steps of a sequence"
    return Finding(
        message=f"{call.own_name or call.function} raised because it got outputs for all {steps} {of} {scores}, but one target per row "
        f"{call.targets.shape}",
        measured={"outputs": str(scores), "targets": str(call.targets.shape), "steps": steps},
        where=_head(forward) or found.where,
        proof=Proof(
            f"for {scores[0]} rows there are {scores[0] * steps} outputs and {scores[0]} targets; {call.failure}"
        ),
        repair=None if is_image else _last_step(call.function),
        fix=Fix(does=_POOLED, safety=Safety.MANUAL) if is_image else unsafe(_LAST),
    )


def _repeated_targets(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Diagnosis:
    """One target per row compared with the outputs of all steps, although training on the last step works better."""
    call = next((c for c in loss.calls if c.function in ELEMENTWISE and not c.failure and _is_per_step(c)), None)
    shape = forward.output.shape if forward and forward.output else ()
    if call is None or len(shape) != 3 or shape[2] != 1:
        return
    outcome = yield Trial(change=_last_step(call.function), steps=16)
    if not outcome.clearly_better:
        return
    rows, steps = call.inputs.shape[:2]
    yield Finding(
        message=f"{call.function} compares the outputs at all {steps} steps of a sequence {shape} with one "
        f"target per row: {rows * steps:,} pairs for {rows} rows",
        measured={"outputs": str(shape), "targets": str(call.targets.shape), "pairs": rows * steps},
        where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
        proof=outcome,
        repair=_last_step(call.function),
        fix=unsafe(_LAST),
    )


def _head(forward: ForwardFacts | None) -> Place | None:
    """The line of the last layer, not counting the head, that returned a sequence of vectors."""
    last = forward.head.name if forward and forward.head else ""
    several = [
        m.where
        for m in (forward.modules if forward else ())
        if m.leaf and m.output and len(m.output.shape) in (3, 4) and m.output.shape[-1] > 1 and m.name != last
    ]
    return several[-1] if several else None


def _last_step(function: str) -> Repair:
    def change(call: Call) -> Call:
        scores = call["logits"]
        return call.replace(logits=scores[:, -1]) if len(scores.shape) == 3 else call

    return at_loss("compare the last step's output alone", function, change)


@rule("TW427", Severity.ERROR, after="TW407")
def unflattened_scores(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """Scores (N, C, 1, …) from global pooling, for which a class loss expects targets (N, 1, …)."""
    found = _misfit(loss, setup, forward)
    if found is None or found.shows is not _has_spare_axes:
        return
    call, scores, targets = found.call, found.call.inputs.shape, found.call.targets.shape

    def change(call: Call) -> Call:
        if tuple(call["logits"].shape[2:]) != scores[2:]:
            return call
        return call.replace(logits=call.tensors.reshape(call["logits"], (-1, scores[1])))

    yield Finding(
        message=f"{call.function} of outputs {scores} and targets {targets} raised: the scores have size-1 dimensions after the {scores[1]} classes",
        measured={"outputs": str(scores), "targets": str(targets), "classes": scores[1]},
        where=found.where,
        proof=Proof(
            f"as {scores[:2]} the outputs have a row of scores for each of the {scores[0]} targets; {call.failure}"
        ),
        repair=at_loss("remove the scores' size-1 dimensions", call.function, change),
        fix=safe("flatten the outputs: a Flatten layer behind the pooling, or outputs.flatten(1)"),
    )


@rule("TW428", Severity.ERROR, after="TW407")
def column_labels(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """Labels (N, 1) for scores (N, C)."""
    found = _misfit(loss, setup, forward)
    if found is not None and found.shows is _has_column:
        yield found.finding(safe("write targets.squeeze(-1) in the loss"), _align(found.call.function))


@rule("TW462", Severity.ERROR)
def swapped_loss_arguments(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A class loss that raised on labels in place of scores."""
    call = next((c for c in loss.calls if c.failure is not None and _is_swapped(c)), None)
    if call is None:
        return
    shape = call.inputs.shape

    def swap(call: Call) -> Call:
        is_seen = tuple(call["logits"].shape) == shape
        return call.replace(logits=call["targets"], targets=call["logits"]) if is_seen else call

    yield Finding(
        message=f"{call.function} gets {call.inputs.dtype} numbers {shape} where it expects scores, and "
        f"{call.targets.dtype} numbers {call.targets.shape} where it expects labels",
        measured={"first": str(shape), "second": str(call.targets.shape)},
        where=call.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(f"the call raised {call.failure}"),
        repair=at_loss(f"exchange the arguments of {call.function}", call.function, swap),
        fix=safe("pass the model's output first, then the labels"),
    )


def _is_swapped(call: LossCall) -> bool:
    """Whether the first argument has the form of labels, and the second that of their scores."""
    first, second = call.inputs, call.targets
    labels = "int" in first.dtype and "float" in second.dtype and len(second.shape) == len(first.shape) + 1
    return call.function in CLASS_LOSSES and labels and (second.shape[0], *second.shape[2:]) == first.shape
