"""TW206 missing-targets: the loss needs targets, but the data yields only inputs.

Why it matters: Training stops in the loss, with a message about None, the dtype `object` or an array of None, which
does not say that the data lacks its second part.
Evidence: The structure of one batch, and the compiled loss.
Error: `None values not supported.`
Error: `Invalid dtype: object`
Error: `None is not a valid value for jnp.array`
Error: `Attempt to convert a value (None) with an unsupported type`
Fix (manual): Provide (x, y): targets as the second argument of fit, or pairs from the data set or generator.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.rules.batch.labels_inside_inputs import misplaced_labels
from trainwright.stages import BatchFacts, SetupFacts


@rule("TW206", Severity.ERROR, foretells=Fate.STOPS)
def missing_targets(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs without targets, for a loss that needs them."""
    if batch.target_keys != () or not batch.targets_wanted_by or not batch.tensors or misplaced_labels(batch):
        return
    keys, loss = ", ".join(batch.tensors), batch.targets_wanted_by
    # For arrays, the call lacks its second argument; for other data, each batch lacks its second part.
    made = (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)
    roles = (*(() if batch.collator == "fit" else made), Role.TRAIN_CALL)
    yield Finding(
        message=f'the loss "{loss}" needs targets, but the data yields none: a batch holds only {keys}',
        measured={"loss": loss, "keys": keys, "rows": batch.rows},
        where=setup.place(*roles),
        proof=Proof(f"a batch of {batch.rows} rows has no second part"),
        fix=Fix(does="provide the targets: fit(x, y), or pairs (inputs, targets) from the data set or generator"),
    )
