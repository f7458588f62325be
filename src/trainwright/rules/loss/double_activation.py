"""TW402 double-activation: scores pass through a softmax or sigmoid before a loss that applies one itself.

Why it matters: Nothing fails, but the loss cannot fall below ln(1 + (C-1)/e) for C classes (0.5514 nats for three), its
gradients are small, and the model learns slowly or not at all.
Evidence: The loss gets probabilities, which implies that lower bound. Given their logarithms instead, the batch is
learned better.
Fix (safe): Give the loss the scores from the last layer, without an activation.
"""

from __future__ import annotations

import math

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
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import ForwardFacts, LossCall, LossFacts, SetupFacts

_TAKES_SCORES = ("cross_entropy", "binary_cross_entropy_with_logits")


# This scales a rate of 1 down to 1e-3, at which Adam learns, and leaves a usual rate large enough to compare the arms.
SMALLER = 1e-3


@rule("TW402", Severity.ERROR)
def double_activation(loss: LossFacts, forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """Probabilities passed to a loss that expects scores."""
    call = next((c for c in loss.calls if _given_probabilities(c)), None)
    if call is None:
        yield from _by_hand(loss, setup)
        return
    if not all(_given_probabilities(c) for c in loss.calls if c.function == call.function):
        return
    word = "softmax" if call.rows_sum_to_one else "sigmoid"
    change = _undo(call)
    outcome = yield Trial(change=change, steps=16)
    if outcome.clearly_worse:  # bounded scores bear a rate that others do not: both arms at a usual one
        outcome = yield Trial(change=change, steps=16, alongside=(scale_learning_rate(SMALLER),))
        if outcome.clearly_worse or outcome.cut_off:
            return
    floor = _floor(call)
    yield Finding(
        message=f"{call.function} expects scores but gets the result of a {word}: it cannot fall below {floor:.4f} nats",
        measured={
            "smallest_score": call.inputs.minimum or 0.0,
            "largest_score": call.inputs.maximum or 0.0,
            "lowest_loss_nats": floor,
        },
        where=_where(call, forward) or call.at or setup.place(Role.MODEL),
        proof=outcome
        if outcome.clearly_better
        else Proof(f"all scores are between 0 and 1; even with the best possible ones, the loss is {floor:.4f} nats"),
        repair=change,
        fix=Fix(does=f"remove the {word}: {call.function} applies it itself", safety=Safety.SAFE),
    )


def _by_hand(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A handwritten loss that applies (log_)softmax to the output of the model's softmax."""
    if not loss.renormalised:
        return
    twice = loss.renormalised[0]

    def change(call: Call) -> Call:
        if call["function"] != twice.function or call["module"] or tuple(call["values"].shape) != twice.shape:
            return call
        return call.replace(values=call.tensors.log(call["values"]))

    repair = Repair(f"give {twice.function} the scores before the softmax", Seam.ACTIVATION, change)
    outcome = yield Trial(change=repair, steps=16)
    if not outcome.clearly_better:
        return
    yield Finding(
        message=f"{twice.function} expects scores but gets the result {twice.shape} of a softmax",
        measured={"outputs": str(twice.shape), "function": twice.function},
        where=twice.softmax_at or twice.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=repair,
        fix=Fix(does=f"remove the softmax: {twice.function} applies it itself", safety=Safety.SAFE),
    )


def _given_probabilities(call: LossCall) -> bool:
    if (
        call.function not in _TAKES_SCORES
        or (call.from_logits is not None and call.activation_module)  # wrong-logits-flag speaks of those
        or call.failure
        or not call.in_unit_range
        or not call.inputs.requires_grad
    ):
        return False
    if call.function == "cross_entropy":
        return call.rows_sum_to_one or call.activation == "sigmoid"
    return call.activation in ("sigmoid", "softmax")


def _floor(call: LossCall) -> float:
    """The lowest loss in nats for scores from 0 to 1; for a binary loss, with targets of 1."""
    others = call.inputs.shape[1] - 1 if call.function == "cross_entropy" else 1
    return math.log(1 + others / math.e)


def _where(call: LossCall, forward: ForwardFacts) -> Place | None:
    """The line of the activation: the one seen, or else that of the last module of that kind."""
    kinds = ("Softmax", "Softmax2d") if call.rows_sum_to_one else ("Sigmoid",)
    modules = [m.where for m in forward.modules if m.kind in kinds and m.output and m.output.shape == call.inputs.shape]
    return call.activation_at or call.softmax_at or (modules[-1] if modules else None)


def _undo(call: LossCall) -> Repair:
    """Scores whose softmax (sigmoid for two-class losses) gives the probabilities that the loss got."""
    function = call.function
    use_log = call.rows_sum_to_one and function == "cross_entropy"

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        operation = call.tensors.log if use_log else call.tensors.logit
        return call.replace(logits=operation(call["logits"]))

    return Repair(f"give {function} the scores before the {'softmax' if use_log else 'sigmoid'}", Seam.LOSS, change)
