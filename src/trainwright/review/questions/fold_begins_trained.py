"""TW1017 fold-begins-trained: a training begins with weights that were trained on its evaluation rows.

Why it matters: In a cross-validation whose model goes on from fold to fold, each later fold has seen its held-out rows: the
scores of these folds are those of training rows.
Evidence: The rows evaluated in this training, those trained on before it, and the fingerprint of the weights at its beginning.
Fix (manual): Make the model, the optimizer and the scaler anew for each fold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record, Training

# Of the evaluated rows: trained on before, and not in this training. Of this training's rows: trained on before, as folds share
# most of their rows and a task that follows another one has rows of its own.
SEEN_SHARE, NOW_SHARE, SHARED_SHARE = 0.5, 0.1, 0.3
FEWEST_ROWS = 10


@rule("TW1017", Severity.WARNING)
def fold_begins_trained(record: Record) -> Iterator[Finding]:
    """A later training that goes on with weights which know its evaluation rows."""
    for earlier, training in zip(record.trainings, record.trainings[1:]):
        if not _goes_on(record, earlier, training):
            continue
        end = training.ends if training.ends is not None else record.updates
        evaluated = _keys(record, training, end, trains=False)
        trained = _keys(record, training, end, trains=True)
        before = {key for key, update in record.first_trained.items() if update < training.begins}
        if len(evaluated) < FEWEST_ROWS or len(trained) < FEWEST_ROWS:
            continue
        seen, now = _share(evaluated, before), _share(evaluated, trained)
        if seen > SEEN_SHARE and now < NOW_SHARE and _share(trained, before) > SHARED_SHARE:
            yield Finding(
                message=f"training {training.number} begins with the weights of training {earlier.number}, which were trained on "
                f"{seen:.0%} of its {len(evaluated):,} evaluation rows",
                measured={"training": training.number, "seen": seen, "rows": len(evaluated)},
                where=training.where,
                proof=Proof("the weights at its beginning, and the rows that the model received before and in it"),
                fix=Fix(does="make the model and the optimizer anew for each fold"),
            )
            return


def _goes_on(record: Record, earlier: Training, training: Training) -> bool:
    """Whether the weights at its beginning are trained ones: those of the training before, and not its first ones again."""
    start, end = training.weights_before, earlier.weights_after
    if start is None or end is None:
        return False
    return start == end and start not in {
        one.weights_before for one in record.trainings if one.number < training.number
    }


def _keys(record: Record, training: Training, end: int, *, trains: bool) -> set[int]:
    found: set[int] = set()
    for one in record.answers:
        within = training.begins <= one.update < end if trains else training.begins < one.update <= end
        if one.trains == trains and within and one.keys is not None:
            found.update(one.keys.tolist())
    return found


def _share(rows: set[int], known: set[int]) -> float:
    return float(np.mean([one in known for one in rows]))
