"""Activations between the scores and the loss: one too many, or one too few."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Place,
    Proof,
    Repair,
    Role,
    Seam,
    SetKeyword,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.fixes import safe, set_keyword
from trainwright.rules.places import loss_place
from trainwright.rules.repairs import at_loss, scale_learning_rate
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
    change = _before_activation(call)
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
        where=_activation_place(call, forward) or call.at or setup.place(Role.MODEL),
        proof=outcome
        if outcome.clearly_better
        else Proof(f"all scores are between 0 and 1; even with the best possible ones, the loss is {floor:.4f} nats"),
        repair=change,
        fix=safe(f"remove the {word}: {call.function} applies it itself"),
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
        fix=safe(f"remove the softmax: {twice.function} applies it itself"),
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


def _activation_place(call: LossCall, forward: ForwardFacts) -> Place | None:
    """The line of the activation: the one seen, or else that of the last module of that kind."""
    kinds = ("Softmax", "Softmax2d") if call.rows_sum_to_one else ("Sigmoid",)
    modules = [m.where for m in forward.modules if m.kind in kinds and m.output and m.output.shape == call.inputs.shape]
    return call.activation_at or call.softmax_at or (modules[-1] if modules else None)


def _before_activation(call: LossCall) -> Repair:
    """Scores whose softmax (sigmoid for two-class losses) gives the probabilities that the loss got."""
    function = call.function
    use_log = call.rows_sum_to_one and function == "cross_entropy"

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        operation = call.tensors.log if use_log else call.tensors.logit
        return call.replace(logits=operation(call["logits"]))

    return Repair(f"give {function} the scores before the {'softmax' if use_log else 'sigmoid'}", Seam.LOSS, change)


_SCORES_FORM = {"binary_cross_entropy": "binary_cross_entropy_with_logits", "nll_loss": "cross_entropy"}
_FUNCTIONS = (*_SCORES_FORM, "ctc_loss")
_NORMALISED = "give it log_softmax(-1) of the scores"


@rule("TW403", Severity.ERROR)
def missing_activation(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Scores outside the domain of a loss that applies no activation."""
    call = next((c for c in loss.calls if c.function in _FUNCTIONS and _outside(c)), None)
    if call is None or call.inputs.minimum is None or call.inputs.maximum is None:
        return
    binary = call.function == "binary_cross_entropy"
    wanted = "probabilities from 0 to 1" if binary else "log-probabilities"
    kind = "probabilities" if call.rows_sum_to_one else "scores"
    yield Finding(
        message=f"{setup.words.loss(call.function)} expects {wanted}, but gets {kind} from {call.inputs.minimum:.3g} to "
        f"{call.inputs.maximum:.3g}" + (f": the loss is {call.value:.3g}" if call.value is not None else ""),
        measured={"smallest_score": call.inputs.minimum, "largest_score": call.inputs.maximum},
        where=call.at or (call.failure.where if call.failure else None) or setup.place(Role.MODEL),
        proof=Proof(f"these values are outside the range that {setup.words.loss(call.function)} accepts"),
        repair=_logits_form(call),
        fix=safe(_advice_on_form(call, setup)),
    )


def _outside(call: LossCall) -> bool:
    if call.inputs.non_finite or call.from_logits is not None:  # of those wrong-logits-flag speaks
        return False
    if call.function == "binary_cross_entropy":
        return not call.in_unit_range
    axis = -1 if call.function == "ctc_loss" else 1
    wide = len(call.inputs.shape) > 1 and call.inputs.shape[axis] > 1
    # Unnormalized log-likelihoods are all negative and may be intended; these scores are not all negative.
    return wide and not call.log_normalised and (call.rows_sum_to_one or (call.inputs.maximum or 0.0) > 0.0)


def _advice_on_form(call: LossCall, setup: SetupFacts) -> str:
    if call.rows_sum_to_one and call.function == "nll_loss":
        return "apply log_softmax instead of softmax"
    if call.function == "ctc_loss":
        return _NORMALISED
    return f"use {setup.words.loss(_SCORES_FORM[call.function])}"


def _logits_form(seen: LossCall) -> Repair:
    function = seen.function
    if function == "ctc_loss":
        return Repair(_NORMALISED, Seam.LOSS, _log_softmax)
    form = _SCORES_FORM[function]

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        scores = call.tensors.log(call["logits"]) if seen.rows_sum_to_one else call["logits"]
        return call.replace(function=form, logits=scores)

    return Repair(f"compute {form} instead of {function}", Seam.LOSS, change)


def _log_softmax(call: Call) -> Call:
    """The same CTC loss call with log-probabilities over the classes, the last axis of (steps, rows, classes)."""
    scores = call["logits"]
    if call["function"] != "ctc_loss":
        return call
    if len(scores.shape) == 2:
        return call.replace(logits=call.tensors.log_softmax(scores))
    swapped = call.tensors.log_softmax(call.tensors.permute(scores, (0, 2, 1)))
    return call.replace(logits=call.tensors.permute(swapped, (0, 2, 1)))


@rule("TW404", Severity.ERROR)
def wrong_logits_flag(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A loss whose from_logits setting does not fit the range of its inputs."""
    call = next((c for c in loss.calls if c.misreads_scores or _reads_probabilities(c)), None)
    if call is None or call.from_logits is None:
        return
    if call.misreads_scores:
        yield _taken_for_probabilities(call, loss, setup)
        return
    change = _set_flag(call, from_logits=False)
    outcome = yield Trial(change=change, steps=16)
    if outcome.clearly_worse:
        return
    floor = math.log(1 + (call.inputs.shape[-1] - 1 if _of_classes(call) else 1) / math.e)
    word = call.activation or "softmax"
    yield Finding(
        message=f"{_name(call)} has from_logits=True but gets the result of a {word}: it cannot fall below "
        f"{floor:.4f} nats",
        measured={
            "from_logits": 1,
            "smallest_score": call.inputs.minimum or 0.0,
            "largest_score": call.inputs.maximum or 0.0,
            "lowest_loss_nats": floor,
        },
        where=call.activation_at or loss_place(loss, setup),
        proof=outcome
        if outcome.clearly_better
        else Proof(f"all scores are between 0 and 1; even with the best possible ones, the loss is {floor:.4f} nats"),
        repair=change,
        fix=safe(f"remove the {word} from the last layer, or set from_logits=False"),
    )


def _taken_for_probabilities(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    """Scores that the loss treats as probabilities."""
    low, high = call.inputs.minimum or 0.0, call.inputs.maximum or 0.0
    value = f": the loss is {call.value:.4g}" if call.value is not None else ""
    return Finding(
        message=f"{_name(call)} expects probabilities (from_logits=False) but gets scores from {low:.3g} to "
        f"{high:.3g}{value}",
        measured={"from_logits": 0, "smallest_score": low, "largest_score": high},
        where=loss_place(loss, setup),
        proof=Proof(f"a probability is between 0 and 1; {low:.3g} is not")
        if low < 0
        else Proof(f"a probability is between 0 and 1; {high:.3g} is not"),
        repair=_set_flag(call, from_logits=True),
        fix=safe(
            f"pass {_class_name(call)}(from_logits=True) as the loss, or end the model with a "
            f"{'softmax' if _of_classes(call) else 'sigmoid'}",
            _edits_of_flag(call, setup),
        ),
    )


def _reads_probabilities(call: LossCall) -> bool:
    """Whether the loss treats probabilities as scores."""
    if call.from_logits is not True or not call.in_unit_range or call.failure or not call.activation_module:
        return False  # what the script's own code made probabilities is double-activation's
    if _of_classes(call):
        return call.rows_sum_to_one or call.activation == "sigmoid"
    return call.activation in ("sigmoid", "softmax")


def _of_classes(call: LossCall) -> bool:
    return call.takes_indices is not None


def _name(call: LossCall) -> str:
    return call.own_name or call.function


def _class_name(call: LossCall) -> str:
    """The class of a loss function: SparseCategoricalCrossentropy for sparse_categorical_crossentropy."""
    name = "".join(word.capitalize() for word in _name(call).split("_"))
    return f"{call.library}.losses.{name}" if call.library else name


def _edits_of_flag(call: LossCall, setup: SetupFacts) -> tuple[SetKeyword, ...]:
    """Replace the loss's name with an object, if the script's own name for the library is known."""
    named = setup.arguments.get("loss")
    if not call.library or named is None or not isinstance(named.value, str):
        return ()
    return set_keyword(setup.place(Role.LOSS), "loss", f"{_class_name(call)}(from_logits=True)", "compile", position=1)


def _set_flag(seen: LossCall, *, from_logits: bool) -> Repair:
    function = seen.function

    return at_loss(
        f"compute {_name(seen)} with from_logits={from_logits}",
        function,
        lambda call: call.replace(from_logits=from_logits),
    )
