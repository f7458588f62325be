"""What is wrong with the shapes of outputs and targets at a loss call, and how rules describe it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from trainwright.core import Call, Repair, Seam
from trainwright.stages import CLASS_LOSSES, ELEMENTWISE, ForwardFacts, LossCall, LossFacts


class Misfit(Enum):
    """The faults that shapes at a loss call can show; a call shows at most one."""

    EACH_STEP = auto()
    """Outputs for every step of a sequence, but one target per row: the loss raised."""
    EACH_STEP_PAIRED = auto()
    """The same, but each output is compared with the targets of all rows."""
    SPARE_AXES = auto()
    """Axes of size 1 after the class axis."""
    COLUMN = auto()
    """The labels of a class loss as a column."""
    PAIRS = auto()
    """Each row is paired with every row; or the loss raised for shapes that differ only in axes of size 1."""


@dataclass(frozen=True)
class Misfitting:
    """A loss call whose shapes do not match."""

    kind: Misfit
    call: LossCall


def misfitting(loss: LossFacts, forward: ForwardFacts | None) -> Misfitting | None:
    """The first call that shows one of these faults, with the fault."""
    for call in loss.calls:
        if call.failure is not None and _sequence_for_rows(call, forward):
            return Misfitting(Misfit.EACH_STEP, call)
    for call in loss.calls:
        if _spare_axes(call):
            return Misfitting(Misfit.SPARE_AXES, call)
    for call in loss.calls:
        if _column(call):
            return Misfitting(Misfit.COLUMN, call)
        if call.function in ELEMENTWISE and _crossed(call):
            return Misfitting(Misfit.EACH_STEP_PAIRED if is_per_step(call) else Misfit.PAIRS, call)
    return None


def _sequence_for_rows(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether the model's output has an axis of steps that the targets lack.

    A class loss that does not say which targets it expects has its classes on axis 1, not on the last axis.
    """
    if call.function in CLASS_LOSSES and call.takes_indices is None:
        return False
    scores = forward.output.shape if forward and forward.output else ()
    if len(scores) not in (3, 4) or scores[1] < 2:
        return False
    if call.takes_indices is not None and not call.takes_indices:
        return call.targets.shape == (scores[0], scores[-1])
    one_output = call.takes_indices or scores[-1] == 1
    return one_output and call.targets.shape in ((scores[0],), (scores[0], 1))


def _spare_axes(call: LossCall) -> bool:
    """Whether a class loss with its classes on axis 1 got scores (N, C, 1, …) and one label per row."""
    scores, targets = call.inputs.shape, call.targets.shape
    if call.function not in CLASS_LOSSES or call.takes_indices is not None or call.failure is None:
        return False
    return len(scores) > 2 and prod(scores[2:]) == 1 < scores[1] and targets == scores[:1]


def _column(call: LossCall) -> bool:
    """Whether a class loss got its labels (N,) as a column (N, 1)."""
    scores, targets = call.inputs.shape, call.targets.shape
    return call.function in CLASS_LOSSES and call.failure is not None and targets == (*scores[:1], 1) != scores


def _crossed(call: LossCall) -> bool:
    """Whether the shapes broadcast to a larger one, or match only after a reshape."""
    scores, targets = call.inputs.shape, call.targets.shape
    if scores == targets or not scores or not targets or min(prod(scores), prod(targets)) < 2:
        return False
    if call.failure is not None:
        return have_same_numbers(call)
    if len(scores) == 1 and targets == (*scores, *scores):
        return True  # the pairs were made on the way to the loss, as in rewards + values.unsqueeze(1)
    spread = _spread(scores, targets)
    # If one side is merely repeated along the other (one weight per row, one target for all steps), it may be intended.
    return spread is not None and prod(spread) > max(prod(scores), prod(targets))


def is_per_step(call: LossCall) -> bool:
    """Whether there is a single target for all steps of a row."""
    scores, targets = call.inputs.shape, call.targets.shape
    return len(scores) in (2, 3) and scores[1] > 1 and prod(targets) == scores[0] and prod(scores[2:]) == 1


def have_same_numbers(call: LossCall) -> bool:
    """Whether both shapes are the same except for axes of size 1."""
    return [n for n in call.inputs.shape if n != 1] == [n for n in call.targets.shape if n != 1]


def _spread(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that broadcasting gives; None if the shapes cannot be broadcast."""
    longest = max(len(left), len(right))
    pairs = list(zip((1,) * (longest - len(left)) + left, (1,) * (longest - len(right)) + right))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(max(a, b) for a, b in pairs)


def message_of(call: LossCall) -> str:
    """The two shapes, and what the loss did with them."""
    scores, targets = call.inputs.shape, call.targets.shape
    spread = _spread(scores, targets)
    what = f"compares {prod(spread):,} pairs" if spread and not call.failure else "raised"
    return f"{call.function} of outputs {scores} and targets {targets} {what}, for {targets[0]} rows{_values(call)}"


def measured_of(call: LossCall) -> dict[str, float | int | str]:
    """The numbers in the message."""
    scores, targets = call.inputs.shape, call.targets.shape
    return {"outputs": str(scores), "targets": str(targets), "pairs": prod(_spread(scores, targets) or ())}


def proof_of(call: LossCall) -> str:
    """How few of the pairs belong together, or that the shapes do not match."""
    scores, targets = call.inputs.shape, call.targets.shape
    if call.failure is not None:
        return f"{scores} and {targets} hold {prod(scores):,} and {prod(targets):,} numbers"
    spread = _spread(scores, targets)
    return (
        f"{scores} and {targets} are broadcast to {spread}: each output is compared with the targets of all rows, "
        f"and only one pair in {prod(spread or ()) // prod(scores):,} belongs together"
    )


def _values(call: LossCall) -> str:
    """Both values of the loss, as the end of a sentence; empty if they agree to four digits."""
    if call.value is None or call.aligned_value is None:
        return ""
    crossed, aligned = f"{call.value:.4g}", f"{call.aligned_value:.4g}"
    return f": {crossed}, and {aligned} in the same shape" if crossed != aligned else ""


def advice(scores: tuple[int, ...], targets: tuple[int, ...]) -> str:
    """What to write so that both have the same shape."""
    if len(scores) == len(targets) + 1 and scores[-1] == 1:
        return "write outputs.squeeze(-1) in the loss"
    if len(targets) == len(scores) + 1 and targets[-1] == 1:
        return "write targets.squeeze(-1) in the loss"
    return f"give outputs {scores} and targets {targets} the same shape"


def align(function: str) -> Repair:
    """Give a loss function's targets the shape that it expects."""

    def change(call: Call) -> Call:
        scores, targets = call["logits"], call["targets"]
        if call["function"] != function or tuple(scores.shape) == tuple(targets.shape):
            return call
        shape = tuple(scores.shape[:1]) if function in CLASS_LOSSES else tuple(scores.shape)
        return call.replace(targets=call.tensors.reshape(targets, shape))

    return Repair("give the targets the shape that goes with the outputs", Seam.LOSS, change)
