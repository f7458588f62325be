"""TW1010 wrong-mode: the model is evaluated in training mode, or trained in evaluation mode.

Why it matters: With dropout or batch statistics in training mode a score depends on chance and on the rows beside it; a training
that stays in evaluation mode has neither.
Evidence: The mode of a model with such layers at each scored evaluation, and at the updates before and after the first one; what
it does as in training when it is asked once more in evaluation mode, after the run.
Fix (manual): Call model.eval() before the evaluation and model.train() after it, at the beginning of each epoch. Pass
training=self.training to functional dropout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Answers, Record

# Of the scored calls; statistics that are computed anew on purpose are not scored.
NOISY_SHARE, FEWEST_CALLS = 0.3, 2
# Rows that are asked so often with the same weights are asked on purpose, for the spread of the answers.
ASKED_AGAIN = 4
# Training calls in evaluation mode after the first evaluation.
QUIET_SHARE, FEWEST_UPDATES = 0.9, 10


@rule("TW1010", Severity.WARNING)
def wrong_mode(record: Record) -> Iterator[Finding]:
    """Layers that differ between the modes, in the wrong one."""
    found = _evaluated(record) or _never_at_rest(record) or _trained(record)
    if found is not None:
        yield found


def _evaluated(record: Record) -> Finding | None:
    calls = [one for one in record.answers if not one.trains]
    for model in sorted({one.model for one in calls}):
        of_model = [one for one in calls if one.model == model]
        noisy = [one for one in of_model if one.is_noisy]
        if len(noisy) < FEWEST_CALLS or len(noisy) <= NOISY_SHARE * len(of_model) or _are_asked_again(noisy):
            continue
        place = next((p.where for p in record.passes if p.number == noisy[-1].evaluation), None)
        return Finding(
            message=f"{len(noisy):,} of {len(of_model):,} scored evaluation calls run in training mode, in a model with layers "
            "that differ in it",
            measured={"in_training_mode": len(noisy), "calls": len(of_model)},
            where=place,
            proof=Proof("the mode of the model at each call without gradients whose answers were scored"),
            fix=Fix(does="call model.eval() before the evaluation, and model.train() after it"),
        )
    return None


def _never_at_rest(record: Record) -> Finding | None:
    """A function of dropout or batch statistics that evaluation mode does not reach."""
    for one in record.lasting_noise:
        is_only = {made.model for made in record.passes} == {one.model}  # so answers of unknown models are its
        models = {one.model, 0} if is_only else {one.model}
        scored = [call for call in record.answers if call.model in models and not call.trains]
        if len(scored) >= FEWEST_CALLS and not _are_asked_again(scored):
            return Finding(
                message=f"{one.operation} stays active when the model is in evaluation mode: {len(scored):,} evaluation calls "
                "were scored so",
                measured={"operation": one.operation, "calls": len(scored)},
                where=one.where,
                proof=Proof("the trained model was asked again, in evaluation mode, and this line ran"),
                fix=Fix(does=f"pass training=self.training to the functional {one.operation}"),
            )
    return None


def _are_asked_again(calls: list[Answers]) -> bool:
    seen = Counter((one.update, one.keys.tobytes()) for one in calls if one.keys is not None)
    return bool(seen) and float(np.median(list(seen.values()))) >= ASKED_AGAIN


def _trained(record: Record) -> Finding | None:
    calls = sorted((one for one in record.answers if one.trains), key=lambda one: one.update)
    for model in sorted({one.model for one in calls if one.model}):
        first = next((one for one in record.passes if one.model == model), None)
        before = [one for one in calls if one.model == model and first is not None and one.update <= first.update]
        after = [one for one in calls if one.model == model and first is not None and one.update > first.update]
        quiet = [one for one in after if not one.is_noisy]
        if (
            first is None
            or not any(one.is_noisy for one in before)
            or len({one.update for one in after}) < FEWEST_UPDATES
        ):
            continue
        if len(quiet) > QUIET_SHARE * len(after):
            return Finding(
                message=f"since the evaluation after update {first.update:,} the model trains in evaluation mode: "
                f"{len(quiet):,} of {len(after):,} training calls that were looked at, none of them before",
                measured={"in_evaluation_mode": len(quiet), "calls": len(after), "evaluation": first.update},
                where=first.where,
                proof=Proof("the mode of the model, which has layers that differ in it, at each training call"),
                fix=Fix(does="call model.train() at the beginning of each epoch"),
            )
    return None
