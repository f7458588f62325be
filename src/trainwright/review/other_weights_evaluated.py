"""TW1009 other-weights-evaluated: what is evaluated is not what is trained.

Why it matters: The score stays what it is, or belongs to a copy that does not learn; a moving average that is never written, a
second model object, a phase that trains nothing.
Evidence: A fingerprint of the evaluated model's weights at each scored evaluation pass of the run.
Fix (manual): Evaluate the object that the optimizer changes, or update the copy before each evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Pass, Record
from trainwright.review._rows import evaluated_rows

# Scored passes, and the updates between the first and the last of them: on 236 scripts none was wrong.
FEWEST_PASSES, FEWEST_UPDATES = 3, 10
# A teacher, a target network or a reference is asked at each update or nearly so.
ASKED_SHARE = 0.3


@rule("TW1009", Severity.WARNING)
def other_weights_evaluated(record: Record) -> Iterator[Finding]:
    """A model whose scored passes find the same weights each time."""
    scored = {one.evaluation for one in record.answers if one.evaluation is not None and not one.trains}
    passes: dict[int, list[Pass]] = {}
    for one in record.passes:
        passes.setdefault(one.model, []).append(one)
    changing = {m for m, of_model in passes.items() if len({p.weights for p in of_model if p.number in scored}) > 1}
    for model, of_model in passes.items():
        here = [one for one in of_model if one.number in scored]
        updates, asked = sorted({one.update for one in here}), {one.update for one in of_model}
        if len(updates) < FEWEST_PASSES or updates[-1] - updates[0] < FEWEST_UPDATES:
            continue
        if len({one.weights for one in here}) > 1 or len(asked) > ASKED_SHARE * (max(asked) - min(asked)):
            continue
        if changing and (not any(one.is_trained for one in here) or _has_learned(record, model)):
            continue  # evaluated beside what is trained, on purpose: a teacher, a reference
        yield Finding(
            message=f"the evaluated model has the same weights at {len(updates)} scored passes between the updates "
            f"{updates[0]:,} and {updates[-1]:,}",
            measured={"passes": len(updates), "first": updates[0], "last": updates[-1]},
            where=here[-1].where,
            proof=Proof("a fingerprint of its weights at each pass"),
            fix=Fix(does="evaluate the object that the optimizer changes, or update the copy before each evaluation"),
        )
        return


def _has_learned(record: Record, model: int) -> bool:
    return any(one.model == model and one.learned for one in evaluated_rows(record))
