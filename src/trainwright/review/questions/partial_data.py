"""TW1004 partial-data: training sees only a part of its data.

Why it matters: What is never drawn is never learned, and the loss on what is drawn looks excellent.
Evidence: The numbers of the rows that the loader drew, the labels of all updates, and the rows of each of them.
Fix (manual): Look at the sampler, at the slice for a quick test that was left in, at the place where an iterator is made
anew, at what masks the labels, and shuffle rows that are sorted by class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import SAMPLED_WIDTH, Answers, LabelKind, Record
from trainwright.review.drawn import FEWEST_UPDATES, leaves_rows_out, one_batch
from trainwright.review.losses import batches_of, list_unapplied
from trainwright.review.rows import trained_rows

FEWEST_LABELS = 50
# Variety (1 - sum of squared shares) of the classes within an update, of that of all.
VARIETY, LEAST_VARIETY, FEWEST_IN_BATCH, MOST_CLASSES = 0.3, 0.2, 8, 50


@rule("TW1004", Severity.WARNING)
def partial_data(record: Record) -> Iterator[Finding]:
    """Rows that are not drawn, one class only, one batch only, or one class at a time."""
    checks = (_few_rows(record), _same_batch(record), _one_class(record), _one_at_a_time(record))
    found = next((one for one in checks if one is not None), None)
    if found is not None:
        yield found
    elif left := list_unapplied(record):
        yield Finding(
            severity=Severity.NOTE,
            message=f"the gradients of the last {len(left)} of {len(record.losses):,} batches are never applied: each update "
            f"takes {batches_of(record)}, and the last window is incomplete",
            measured={"unapplied": len(left), "batches_per_update": batches_of(record)},
            where=record.where,
            proof=Proof(f"backward was called {len(left)} more times behind the last of {record.updates:,} updates"),
            fix=Fix(does="step also at the last batch of the last epoch, or drop the batches that fill no window"),
        )


def _few_rows(record: Record) -> Finding | None:
    for drawn in record.drawn:
        total, distinct = sum(drawn.draws.values()), len(drawn.draws)
        if leaves_rows_out(drawn):
            return Finding(
                message=f"{distinct:,} of the {drawn.size:,} rows of a {drawn.name} are ever drawn, in {total:,} draws",
                measured={"drawn": distinct, "rows": drawn.size, "draws": total},
                where=drawn.where,
                proof=Proof(f"{total / drawn.size:.1f} passes over the set were drawn, by the loader's row numbers"),
                fix=Fix(does="let the loader draw from the whole set, or cut the set down openly"),
            )
    return None


def _same_batch(record: Record) -> Finding | None:
    one = one_batch(record)
    if one is None:
        return None
    held = f"each of {one.updates:,} updates that were looked at sees the same {one.rows} rows; the set has {one.drawn.size:,}"
    return Finding(
        severity=Severity.NOTE if one.is_chosen else Severity.WARNING,
        message=held + (", and no other batch was asked for: one batch is learned by heart" if one.is_chosen else ""),
        measured={"rows": one.rows, "set": one.drawn.size, "updates": one.updates},
        where=one.drawn.where or record.where,
        proof=Proof("the rows that the model received, update by update"),
        fix=Fix(
            does="to train on the set, loop over its loader; as a test whether one batch can be learned, leave it"
            if one.is_chosen
            else "make the iterator over the loader once for each epoch, not for each update"
        ),
    )


def _one_class(record: Record) -> Finding | None:
    evaluated = {one.output for one in record.answers if not one.trains}
    for output, labels in record.trained_labels.items():
        if output not in evaluated and not labels.classes.keys() - {0}:
            continue  # made: the first of several candidates is right, as in contrastive losses, or all rows are real
        if output.kind == LabelKind.CLASSES and output.width > 1:
            total, kinds = sum(labels.classes.values()), len(labels.classes)
            which = f"class {next(iter(labels.classes), 0)}"
        elif output.kind == LabelKind.BINARY and output.width < SAMPLED_WIDTH and labels.total is not None:
            total, share = labels.count, labels.total / max(1, labels.count)
            kinds = 1 if bool((share <= 0).all() or (share >= 1).all()) else 2
            which = "yes" if bool((share >= 1).all()) else "no"
        else:
            continue
        if total >= FEWEST_LABELS and kinds == 1:
            return Finding(
                message=f"all {total:,} labels that were trained on are the same: {which}",
                measured={"labels": total, "classes": 1},
                where=record.where,
                proof=Proof("the labels given to the loss in all updates"),
                fix=Fix(does="look at what makes, masks or casts the labels on their way to the loss"),
            )
    return None


def _one_at_a_time(record: Record) -> Finding | None:
    for output, labels in record.trained_labels.items():
        if output.kind != LabelKind.CLASSES or not 2 <= len(labels.classes) <= MOST_CLASSES:
            continue
        if not any(one.output == output for one in trained_rows(record)):
            continue  # labels that are made
        updates: dict[int, list[Answers]] = {}
        for one in record.answers:
            if one.trains and one.output == output:
                updates.setdefault(one.update, []).append(one)
        batches = [np.concatenate([one.labels for one in calls]) for calls in updates.values()]
        big = [one for one in batches if len(one) >= FEWEST_IN_BATCH]
        if len(big) < FEWEST_UPDATES:
            continue
        inside = float(np.mean([_variety(Counter(one.tolist())) for one in big]))
        whole = _variety(labels.classes)
        if whole > LEAST_VARIETY and inside < VARIETY * whole:
            return Finding(
                message=f"the updates see nearly one class at a time: two rows of an update differ in class with a "
                f"probability of {inside:.2f}, any two rows with {whole:.2f}",
                measured={"variety_in_update": inside, "variety": whole, "updates": len(big)},
                where=record.where,
                proof=Proof(f"the labels of {len(big):,} updates"),
                fix=Fix(does="shuffle the training rows: shuffle=True, or a random order for each epoch"),
            )
    return None


def _variety(counts: Counter[int]) -> float:
    total = sum(counts.values())
    return 1 - sum((one / total) ** 2 for one in counts.values())
