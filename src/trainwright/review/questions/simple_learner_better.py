"""TW1015 simple-learner-better: nearest neighbours or a ridge regression on the model's inputs are clearly better than the model.

Why it matters: What the labels need reaches the model, and its training does not get it: a schedule in the wrong unit, lost
gradients, weights that are not loaded, a mask that hides the rows.
Evidence: Both learners on the rows that the model was trained on, as it received them, and on the same evaluated rows, by
accuracy and by mean recall; each is controlled on training rows without themselves. It is a note where the loss still falls: the
training may only be too short.
Fix (manual): Look at what lies between the inputs and the weights: rate, schedule, gradients, frozen parts, masks.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.review.learner import better_learner
from trainwright.review.losses import is_falling
from trainwright.review.rows import held_out_rows

# Each takes up to a second.
MOST_SETS = 3


@rule("TW1015", Severity.WARNING)
def simple_learner_better(record: Record) -> Iterator[Finding]:
    """A learner of a second that is better than the whole training."""
    held = held_out_rows(record)
    last = max((rows.update for rows in held), default=0)  # in the middle of a training, nothing is learned to its end
    for rows in [one for one in held if one.update == last][:MOST_SETS]:
        learner = better_learner(record, rows)
        if learner is not None:
            falls = is_falling(record, rows)
            yield Finding(
                severity=Severity.NOTE if falls else Severity.WARNING,
                message=f"{learner.told}{'; the loss is still falling' if falls else ''}",
                measured={"simple_learner": learner.value, "model": learner.model, "rows": learner.rows},
                where=rows.where,
                proof=Proof(
                    f"{learner.measure} of both on the same {learner.rows:,} evaluated rows; it saw {learner.trained:,} of the "
                    "rows that were trained on"
                ),
                fix=Fix(
                    does="look at rate, schedule, gradients, frozen parts and masks: the inputs tell more than is learned"
                ),
            )
            return
