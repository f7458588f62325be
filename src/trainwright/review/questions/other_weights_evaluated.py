"""TW1009 other-weights-evaluated: what is evaluated is not what is trained.

Why it matters: The score stays what it is, or belongs to a copy that does not learn; a moving average that is never written, a
second model object, a phase that trains nothing. Or the weights are those that were trained, and what belongs to them was not
loaded with them: the scaling of the inputs, a vocabulary, a setting.
Evidence: A fingerprint of the evaluated model's weights at each scored evaluation pass of the run, or a held-out loss that is
reported with the same digits each time while the training loss falls.
Fix (manual): Evaluate the object that the optimizer changes, or update the copy before each evaluation; save all that the model
needs beside its weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Pass, Record
from trainwright.rehearsal.record_parts import Loaded
from trainwright.review.numbers import series_of
from trainwright.review.rows import AnsweredRows, evaluated_rows, rows_of_pass

# Scored passes, and the updates between the first and the last of them: on 236 scripts none was wrong.
FEWEST_PASSES, FEWEST_UPDATES = 3, 10
# A teacher, a target network or a reference is asked at each update or nearly so.
ASKED_SHARE = 0.3
# A loss that is equal by chance has fewer digits, or is reported less often; training falls to less than this share meanwhile.
FEWEST_REPORTED, FEWEST_DIGITS, FALLEN = 4, 4, 0.8
# Rows of an evaluation below which a gain, and its absence, say little.
FEWEST_ROWS = 30


@rule("TW1009", Severity.WARNING)
def other_weights_evaluated(record: Record) -> Iterator[Finding]:
    """A model whose scored passes find the same weights each time, or that is not itself after it was loaded."""
    yield from _lost_on_loading(record)
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
        has_learned = any(one.model == model and one.learned for one in evaluated_rows(record))
        if changing and (has_learned or not any(one.is_trained for one in here)):
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
    yield from _same_each_time(record)


def _same_each_time(record: Record) -> Iterator[Finding]:
    """A held-out loss that is reported again and again with all its digits, while that of training falls."""
    for one in series_of(record):
        value, digits = one.values[-1], repr(one.values[-1]).replace(".", "").strip("0")
        is_one = len(one.values) >= FEWEST_REPORTED and len(set(one.values)) == 1 and len(digits) >= FEWEST_DIGITS
        if not (is_one and one.is_held_out and one.is_own and one.direction < 0):
            continue
        losses = [loss for update, loss in record.losses if one.updates[0] <= update <= one.updates[-1]]
        few = max(1, len(losses) // 4)
        if len(losses) >= FEWEST_UPDATES and (last := float(np.mean(losses[-few:]))) < FALLEN * (
            first := float(np.mean(losses[:few]))
        ):
            yield Finding(
                message=f"its own {one.name} is {value:g} at each of {len(one.values)} evaluations between the updates "
                f"{one.updates[0]:,} and {one.updates[-1]:,}, while the training loss goes from {first:.3g} to {last:.3g}: weights are "
                "evaluated that are not trained",
                measured={"reported": value, "evaluations": len(one.values), "first": first, "last": last},
                where=record.where,
                proof=Proof("the values that the script reports, and the losses of its training"),
                fix=Fix(
                    does="evaluate with the parameters that the last update returned, not with those of the beginning"
                ),
            )
            return


def _lost_on_loading(record: Record) -> Iterator[Finding]:
    """Weights that had learned, and that answer like a constant once they were loaded."""
    weights = {one.number: one.weights for one in record.passes}
    for loaded in record.loaded:
        lost = next((one for one in evaluated_rows(record) if _is_lost(one, loaded, weights)), None)
        if lost is None:
            continue
        same = [
            p.number for p in record.passes if p.weights == loaded.after and p.number < (lost.calls[0].evaluation or 0)
        ]
        rows = (one for number in same for one in rows_of_pass(record, number))
        known = next((one for one in rows if one.learned and len(one.labels) >= FEWEST_ROWS), None)
        if known is not None:
            yield Finding(
                message=f"after they were loaded {lost.told}; before, the same weights, those after update {known.update:,}, "
                f"learned: {known.told}",
                measured={"update": known.update, "before": known.best.value, "loaded": lost.best.value},
                where=loaded.where,
                proof=Proof("a fingerprint of the weights at both passes"),
                fix=Fix(
                    does="save and load what the model needs beside its weights: the scaling of its inputs, its settings"
                ),
            )
            return


def _is_lost(rows: AnsweredRows, loaded: Loaded, weights: dict[int, float]) -> bool:
    """Whether these rows were answered by the loaded model as it was loaded, and like a constant."""
    evaluation = rows.calls[0].evaluation
    is_loaded = rows.model == loaded.model and evaluation is not None and weights.get(evaluation) == loaded.after
    return is_loaded and len(rows.labels) >= FEWEST_ROWS and rows.at_constant
