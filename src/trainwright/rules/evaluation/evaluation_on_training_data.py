"""TW714 evaluation-on-training-data: the evaluation set is the training set.

Why it matters: the metrics rise as rows are memorized, and say nothing of rows that were not seen.
Evidence: both sets have as many rows, with the same inputs.
Fix (unsafe): split before training, and pass the part that was held out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.setup import SetupFacts


@rule("TW714", Severity.WARNING)
def evaluation_on_training_data(
    evaluation: EvaluationFacts, dataset: DatasetFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """One evaluation set that holds the rows of the training set; one of several is a comparison that was meant."""
    train, held = dataset.train, dataset.evaluation
    if (
        held is None
        or evaluation.set_names
        or not train.rows
        or train.rows != held.rows
        or train.hashes != held.hashes
    ):
        return
    # Inputs of a few values coincide in sets that have nothing to do with each other.
    if len(train.hashes) * 2 < train.hashed or not train.hashes:
        return
    yield Finding(
        message=f"the evaluation set holds the {train.rows:,} rows of the training set",
        measured={"rows": train.rows, "compared": train.hashed, "different": 0},
        where=setup.place(Role.EVAL_DATASET, Role.TRAINER),
        proof=Proof(f"the inputs of all {train.hashed:,} rows that were compared are the same in both sets"),
        fix=Fix(
            does="split before training (train_test_split), and pass the held-out part as "
            + setup.words.evaluation_data,
            safety=Safety.UNSAFE,
        ),
    )
