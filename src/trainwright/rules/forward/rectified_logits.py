"""TW306 rectified-logits: there is a ReLU between the last layer and the loss of a classification.

Why it matters: No score can fall below zero, so a class is never ruled out, and a score that is zero for a row gets no
gradient from it. A loss that expects probabilities does not get them.
Evidence: The share of scores that are exactly zero. With the activation that the loss expects in place of the ReLU, the
batch is learned clearly better, on three seeds.
Fix (safe): Remove the ReLU. If the loss expects probabilities, use a softmax or sigmoid instead.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.repairs import swap_activation
from trainwright.stages import LossCall, LossFacts, SetupFacts

_RECTIFIERS = ("relu", "relu6")
_TAKES_SCORES = ("cross_entropy", "binary_cross_entropy_with_logits")
# The activation that belongs before a loss that expects probabilities.
_OF_PROBABILITIES = {"nll_loss": "softmax", "binary_cross_entropy": "sigmoid"}
# New layers give as many scores below zero as above; with a bias that keeps nearly all above, the ReLU has no effect.
ZERO_SHARE = 0.1
STEPS = 24


@rule("TW306", Severity.ERROR)
def rectified_logits(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """Scores produced by a rectifier; without it, the batch is learned."""
    call = next((c for c in loss.calls if _is_rectified(c)), None)
    if call is None:
        return
    fitting, share = _fitting(call), call.inputs.zero_share
    change = swap_activation(fitting, call)
    outcome = yield Trial(change=change, steps=STEPS)
    if not outcome.clearly_better:
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    without = "without it" if fitting == "identity" else f"with a {fitting} instead"
    yield Finding(
        message=f"the scores given to {call.own_name or call.function} come from a {call.activation}: {share:.0%} of them "
        f"are zero; after {outcome.steps} updates the loss is {before:.3g}, {without} {after:.3g}",
        measured={"zero_share": round(share, 3), "loss": before, "loss_without": after},
        where=call.activation_at or setup.place(Role.MODEL),
        proof=outcome,
        repair=change,
        fix=Fix(does=_advice(call, fitting), safety=Safety.SAFE),
    )


def _is_rectified(call: LossCall) -> bool:
    if call.activation not in _RECTIFIERS or call.failure or not _fitting(call):
        return False
    return call.inputs.zero_share >= ZERO_SHARE


def _fitting(call: LossCall) -> str:
    """The activation that belongs before the loss: identity for none; empty for other kinds of losses."""
    if call.function in _TAKES_SCORES:
        return "identity"
    return _OF_PROBABILITIES.get(call.function, "") if call.from_logits is False else ""


def _advice(call: LossCall, fitting: str) -> str:
    if fitting == "identity":
        return f"remove the {call.activation}: the loss takes scores of any sign"
    return f"make the last {call.activation} a {fitting}"
