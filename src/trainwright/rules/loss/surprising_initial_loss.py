"""TW412 surprising-initial-loss: an untrained model's first loss is far above chance level and stays there.

Why it matters: Scores that are far too large make a model confident in wrong answers. Training spends much of its time,
or all of it, on unlearning them.
Evidence: The first loss compared with the expected one (ln C for C classes, the targets' mean square for a regression).
With the scores divided to a spread of one, the batch is learned; without, it is not.
Fix (manual): Find what makes the scores so large: a temperature, a sum that should be a mean, inputs in large units.
"""

from __future__ import annotations

import math

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Seam, Severity, Trial, rule
from trainwright.rules.places import loss_place
from trainwright.stages import LossCall, LossFacts, SetupFacts
from trainwright.stages.loss import TIMES_CHANCE

# If a regression's first loss is ten times the targets' mean square, the outputs are about three times the targets.
_TIMES_SQUARE = 10.0


@rule("TW412", Severity.WARNING, residual=True)
def surprising_initial_loss(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A first loss far above an uninformed model's, fixed by smaller scores."""
    call = loss.call
    if call is None or loss.expected is None or call.failure or call.inputs.non_finite:
        return
    if setup.loads_checkpoint or setup.trained_before:
        return
    value = call.plain_value if call.function == "cross_entropy" else call.value
    times = TIMES_CHANCE if call.function == "cross_entropy" else _TIMES_SQUARE
    if value is None or call.function not in ("cross_entropy", "mse_loss") or not value > times * loss.expected > 0:
        return
    factor = _size(call, loss.expected)
    if factor <= 1:
        return
    change = _divide(call.function, factor)
    outcome = yield Trial(change=change, steps=30)
    # Smaller scores naturally start lower, so the unchanged model must also fail to reach a constant prediction.
    if not outcome.clearly_better or min(outcome.before) < loss.expected or max(outcome.after) > loss.expected:
        return
    unit = " nats" if call.function == "cross_entropy" else ""
    yield Finding(
        message=f"the first loss is {value:.4g}{unit}; an uninformed model would score {loss.expected:.4g}",
        measured={"first_loss": value, "expected": loss.expected, "largest_score": call.inputs.maximum or 0.0},
        where=loss_place(loss, setup),
        proof=outcome,
        repair=change,
        fix=Fix(does=f"make the scores about {factor:.2g} times smaller (a temperature, a sum, inputs in large units)"),
    )


def _size(call: LossCall, expected: float) -> float:
    """By what factor the scores are too large."""
    deviation, mean = call.inputs.deviation or 0.0, call.inputs.mean or 0.0
    if call.function == "cross_entropy":
        return deviation
    return math.sqrt((deviation**2 + mean**2) / expected)


def _divide(function: str, factor: float) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(logits=call["logits"] / factor) if call["function"] == function else call

    return Repair(f"divide the scores by {factor:.3g}", Seam.LOSS, change)
