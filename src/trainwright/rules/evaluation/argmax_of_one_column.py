"""TW704 argmax-of-one-column: the evaluation takes the argmax over a single output, which is always 0.

Why it matters: The accuracy is the share of class 0, whatever the model learns.
Evidence: The metrics are the same for perfect scores, for their opposite and for the model's own. In a loop: the index
was taken over a dimension of size one and compared with labels of several classes.
Fix (unsafe): Compare the output with a threshold: 0 for a logit, 0.5 for a probability.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.comparisons import classes_instead, equalities
from trainwright.rules.metrics import equal, first_of, insensitive
from trainwright.stages import EvaluationFacts, Given, SetupFacts


@rule("TW704", Severity.ERROR)
def argmax_of_one_column(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Metrics that do not depend on the scores, but do once there are two columns."""
    yield from _in_loop(evaluation)
    perfect = evaluation.when(Given.PERFECT_TWO_COLUMNS)
    if not insensitive(evaluation) or len(evaluation.label_values) < 2:
        return
    if not any(equal(v, 1.0) for v in perfect.values()):
        return
    same = first_of(evaluation.returned)
    yield Finding(
        message=f"{evaluation.metrics_by} takes the argmax of {evaluation.predictions[0].shape} scores, one per row: "
        f"it is 0 for every row, and {same} whatever the scores",
        measured={"columns": 1, "rows": evaluation.predictions[0].shape[0]},
        where=setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(
            f"perfect scores and their opposite both give {same}; as two columns, perfect scores give "
            f"{first_of(perfect)}"
        ),
        repair=Repair("pass two columns to the metrics, the threshold and the score", Seam.METRICS, _two_columns),
        fix=Fix(does="write predictions = (logits[:, 0] > 0).astype(int) instead of the argmax", safety=Safety.UNSAFE),
    )


def _in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in equalities(evaluation):
        labels = one.labels
        if one.columns != 1 or one.predictions.maximum != 0 or labels.minimum == labels.maximum:
            continue
        right = f"; with a threshold it is {one.right_share:.1%}" if one.right_share is not None else ""
        share = f"{one.equal_share:.1%} of the labels are 0" if one.equal_share is not None else "it is 0"
        yield Finding(
            message=f"the argmax is taken over 1 score per row: it is 0 for each of "
            f"{one.predictions.shape[0]} rows, and the accuracy is the share of class 0",
            measured={"columns": 1, "rows": one.predictions.shape[0], "scores": str(one.scores)},
            where=one.indexed_at or one.where,
            proof=Proof(f"all predictions are 0 and {share}, which is the accuracy{right}"),
            repair=classes_instead(of_one_column=True),
            fix=Fix(
                does="write (outputs.squeeze(1) > 0).long() instead of the argmax (0.5 for probabilities)",
                safety=Safety.UNSAFE,
            ),
        )


def _two_columns(call: Call) -> Call:
    scores = call["predictions"]
    scores = scores[0] if isinstance(scores, tuple) else scores
    if scores.ndim < 2:  # another comparison, of what was made of the scores
        return call
    middle = 0.5 if scores.min() >= 0 and scores.max() <= 1 else 0.0
    return call.replace(predictions=np.concatenate([np.full_like(scores, middle), scores], axis=1))
