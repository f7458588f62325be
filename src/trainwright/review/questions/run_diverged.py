"""TW1002 run-diverged: in the course of the run the loss or the gradients stop being finite, or the loss jumps and stays up.

Why it matters: From there on nothing is learned, and what was learned is lost. Short trials do not see it.
Evidence: The first loss, gradients, weights or answers that are not finite, with their update; or a loss a hundred times as large as
before, that does not come down again.
Fix (manual): Look at the batch of that update (a value that is missing, a row without labels, a logarithm of 0), at the
learning rate there, and clip gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Broken

# Loss scaling skips single steps with infinite gradients; more than this share of those looked at, and so many, are no such.
SKIPPED_SHARE, SKIPPED = 0.1, 2
# A loss that is so many times what it was, in the median of as many losses as follow, is no spike and no curriculum.
JUMP, FEWEST_LOSSES = 100.0, 40
# A learning rate or a norm of the gradients that is so many times what it was is mentioned.
GROWN = 3.0
# Among the evaluated answers.
NAN_SHARE = 0.05

_ADVICE = (
    "look at the batch of that update (a missing value, a row without labels, a division by 0) and at the learning rate "
    "there; clip the gradients"
)


@rule("TW1002", Severity.ERROR)
def run_diverged(record: Record) -> Iterator[Finding]:
    """The first number that is not finite, or a hundredfold loss that stays."""
    found = _not_finite(record) or _jumped(record)
    if found is not None:
        yield found


def _not_finite(record: Record) -> Finding | None:
    bad = [update for update, value in record.losses if not math.isfinite(value)]
    if bad and not _are_skipped(record, len(bad)):
        broken = record.broken
        return Finding(
            message=f"the loss is not finite from update {bad[0] + 1:,} of {record.updates:,} on{_told_of(broken)}"
            f"{'' if broken is not None and broken.rows else _describe_steps(record, bad[0])}",
            measured={
                "update": bad[0] + 1,
                "updates": record.updates,
                "not_finite": len(bad),
                **({"row": broken.rows[0]} if broken is not None and broken.is_numbered else {}),
            },
            where=record.where,
            proof=Proof(f"{len(bad):,} of {len(record.losses):,} losses of the run are not finite"),
            fix=Fix(does=_cure(broken)),
        )
    norms = [(one.number, one.gradient_norm) for one in record.looked_updates if one.gradient_norm is not None]
    bad = [number for number, norm in norms if not math.isfinite(norm)]
    if len(bad) > max(SKIPPED, SKIPPED_SHARE * len(norms)):
        return Finding(
            message=f"the gradients are not finite in {len(bad):,} of {len(norms):,} updates that were looked at, "
            f"first in update {bad[0]:,}",
            measured={"update": bad[0], "not_finite": len(bad), "looked_at": len(norms)},
            where=record.where,
            proof=Proof("the norm of the gradients before the step"),
            fix=Fix(does=_ADVICE),
        )
    return _weights_not_finite(record) or _answers_not_finite(record)


def _told_of(broken: Broken | None) -> str:
    """The rows of the batch that hold such a number."""
    if broken is None:
        return ""
    if not broken.rows:
        return "; the numbers that it was made from are finite"
    further = f" and {broken.count - 1:,} more" if broken.count > 1 else ""
    which = f"row {broken.rows[0]:,}{further} of the {broken.size:,} of {broken.data}"
    if not broken.is_numbered:
        which = f"row {broken.rows[0]:,}{further} of its batch"
    column = f" of its {broken.column}" if broken.column else ""
    origin = f". It is {broken.origin}{f', {broken.where}' if broken.where else ''}" if broken.origin else ""
    return f": {which} holds {broken.value:g} at place {broken.position:,}{column}{origin}"


def _describe_steps(record: Record, update: int) -> str:
    """The learning rate and the gradients before an update, where they are much larger than at first."""
    steps = [one for one in record.looked_updates if one.number <= update]
    if not steps:
        return ""
    first, last = steps[0], steps[-1]
    told = ""
    if last.rate > GROWN * first.rate > 0:
        told += f"; the learning rate was {first.rate:.3g} at first, and is {last.rate:.3g} before it"
    norms = [one.gradient_norm for one in steps if one.gradient_norm is not None and math.isfinite(one.gradient_norm)]
    usual = float(np.median(norms[: len(norms) // 2])) if len(norms) > 1 else 0.0
    if usual > 0 and norms[-1] > GROWN * usual:
        told += f"; the gradients' norm was {usual:.3g}, and is {norms[-1]:.3g} before it"
    return told


def _cure(broken: Broken | None) -> str:
    if broken is None or not broken.rows:
        return _ADVICE
    return "correct or drop the row that is named, or let the code handle such values"


def _weights_not_finite(record: Record) -> Finding | None:
    trained = [one for one in record.parameters if one.steps]
    broken = [one for one in trained if math.isfinite(one.size_before) and not math.isfinite(one.size_after)]
    if not broken:
        return None
    return Finding(
        message=(
            f"after {record.updates:,} updates {len(broken):,} of {len(trained):,} tensors of weights hold numbers that are "
            f"not finite, {broken[0].name} among them{_told_of(record.broken)}"
        ),
        measured={"tensors": len(trained), "not_finite": len(broken), "updates": record.updates},
        where=record.where,
        proof=Proof("the weights at the end of the run"),
        fix=Fix(does=_cure(record.broken)),
    )


def _answers_not_finite(record: Record) -> Finding | None:
    last = max((one.update for one in record.answers if not one.trains), default=0)
    total = broken = 0
    for one in record.answers:
        given = one.log_losses if one.log_losses is not None else one.values
        if not one.trains and one.update == last and given is not None:
            total += len(given)
            broken += int(np.isnan(given).reshape(len(given), -1).any(1).sum())
    if not broken or broken < NAN_SHARE * total:
        return None
    return Finding(
        message=f"after {last:,} updates the model answers {broken:,} of {total:,} evaluated rows with numbers that are "
        "not finite",
        measured={"update": last, "rows": total, "not_finite": broken},
        proof=Proof("the model's own answers in the last evaluation"),
        fix=Fix(does=_ADVICE),
    )


def _are_skipped(record: Record, count: int) -> bool:
    """Whether a few losses were not finite and the run went on soundly, as with a script that leaves such batches out."""
    tail = [value for _, value in record.losses[-len(record.losses) // 4 :]]
    finite = [math.isfinite(value) for value in tail]
    return count <= SKIPPED + SKIPPED_SHARE * len(record.losses) and len(tail) > SKIPPED and all(finite)


def _jumped(record: Record) -> Finding | None:
    if len({one.optimizer for one in record.looked_updates}) > 1 or len(record.trainings) > 1:
        return None  # losses of several kinds
    values = np.array([value for _, value in record.losses if math.isfinite(value)])
    if len(values) < FEWEST_LOSSES or (values <= 0).any():
        return None
    quarter = len(values) // 4
    low = float(np.median(values[:quarter]))
    for start in range(quarter, len(values) - quarter // 2):
        if values[start] > JUMP * low and float(np.median(values[start:])) > JUMP * low:
            late, before = float(np.median(values[start:])), float(np.median(values[:start]))
            if late <= JUMP * before:
                return None
            update = record.losses[start][0] + 1
            return Finding(
                severity=Severity.WARNING,
                message=f"the loss jumps at update {update:,} of {record.updates:,} from {before:.3g} to {late:.3g}, "
                f"{late / before:,.0f} times as much, and stays there",
                measured={"update": update, "before": before, "after": late},
                where=record.where,
                proof=Proof(f"medians of the {start:,} losses before it and the {len(values) - start:,} from it on"),
                fix=Fix(does=_ADVICE),
            )
    return None
