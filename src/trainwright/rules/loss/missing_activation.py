"""TW403 missing-activation: a loss that expects probabilities or their logarithms gets raw scores.

Why it matters: The loss stops with an error, or becomes NaN or negative and keeps falling without anything being
learned.
Evidence: The range of the scores compared with what the loss expects; the variant of the loss for scores works.
Error: `all elements of input should be between 0 and 1`
Error: `Assertion … input_val >= zero && input_val <= one`
Fix (safe): Use the loss that takes scores (cross_entropy, binary_cross_entropy_with_logits).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import LossCall, LossFacts, SetupFacts

_TAKES_SCORES = {"binary_cross_entropy": "binary_cross_entropy_with_logits", "nll_loss": "cross_entropy"}
_FUNCTIONS = (*_TAKES_SCORES, "ctc_loss")
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
        fix=Fix(does=_advice(call, setup), safety=Safety.SAFE),
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


def _advice(call: LossCall, setup: SetupFacts) -> str:
    if call.rows_sum_to_one and call.function == "nll_loss":
        return "apply log_softmax instead of softmax"
    if call.function == "ctc_loss":
        return _NORMALISED
    return f"use {setup.words.loss(_TAKES_SCORES[call.function])}"


def _logits_form(seen: LossCall) -> Repair:
    function = seen.function
    if function == "ctc_loss":
        return Repair(_NORMALISED, Seam.LOSS, _log_softmax)
    form = _TAKES_SCORES[function]

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
