"""TW714 evaluation-on-training-data: the evaluation set is the training set.

Why it matters: The metrics rise as rows are memorized, and say nothing about unseen rows.
Evidence: Both sets have the same number of rows, with the same inputs.
Fix (unsafe): Split before training, and evaluate on the held-out part.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, EvaluationFacts, SetupFacts


@rule("TW714", Severity.WARNING)
def evaluation_on_training_data(
    evaluation: EvaluationFacts, dataset: DatasetFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """A single evaluation set with the rows of the training set; as one of several sets, it is intentional."""
    train, held = dataset.train, dataset.evaluation
    if held is None or evaluation.set_names or not train.rows or train.rows != held.rows or train.hashes != held.hashes:
        return
    # Inputs with only a few distinct values coincide even in unrelated sets.
    if len(train.hashes) * 2 < train.hashed or not train.hashes:
        return
    yield Finding(
        message=f"the evaluation set consists of the {train.rows:,} rows of the training set",
        measured={"rows": train.rows, "compared": train.hashed, "different": 0},
        where=setup.place(Role.EVAL_DATASET) or dataset.evaluation_place or setup.place(Role.TRAINER),
        proof=Proof(f"the inputs of all {train.hashed:,} rows that were compared are the same in both sets"),
        fix=Fix(
            does="split before training (train_test_split), and pass the held-out part as "
            + setup.words.evaluation_data,
            safety=Safety.UNSAFE,
        ),
    )
