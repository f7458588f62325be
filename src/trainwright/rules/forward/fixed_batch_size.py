"""TW302 fixed-batch-size: the model works with only one batch size.

Why it matters: The last batch of an epoch and the batches of the evaluation have other sizes. Training stops there,
often after a whole epoch.
Evidence: The forward pass with the batch sizes that training and evaluation will use, and the error that each raised.
Error: `shape '…' is invalid for input of size`
Error: `Expected hidden size`
Error: `Expected more than 1 value per channel when training`
Fix (unsafe): Take the batch size from the input (x.size(0), or -1 in a view), or drop incomplete batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.layer_sizes import size_mismatch
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts


@rule("TW302", Severity.ERROR)
def fixed_batch_size(forward: ForwardFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A forward pass that raises for a batch size still to come, or only for the first batch's size."""
    failure = forward.other_rows_failure
    if failure is not None and forward.fails_at_rows is not None:
        rows, alone = (forward.fails_at_rows, forward.fails_at_rows == 1 and "more than 1 value" in failure.message)
        yield Finding(
            message=f"the model works with {batch.rows} rows but fails with {rows}, the size of {forward.other_rows_from}: {failure}",
            measured={"works_with_rows": batch.rows, "fails_with_rows": rows, "batch": forward.other_rows_from},
            where=setup.place(Role.ARGUMENTS) if alone else forward.fixed_at or setup.place(Role.MODEL),
            proof=Proof(f"called with {rows} rows it raises {failure.type}"),
            repair=Repair("drop incomplete batches", Seam.TRAINER, _drop_last),
            fix=Fix(
                does=f"drop incomplete batches ({setup.words.drop_last}): batch statistics need two rows"
                if alone
                else f"take the batch size from the input instead of {batch.rows}, or drop incomplete batches",
                safety=Safety.UNSAFE,
            ),
        )
        return
    if forward.failure is None or forward.works_at_rows is None or size_mismatch(forward) is not None:
        return
    if forward.failure.where is not None:
        yield Finding(
            message=f"the model fails with the {batch.rows} rows of a batch but works with {forward.works_at_rows}: {forward.failure}",
            measured={"works_with_rows": forward.works_at_rows, "fails_with_rows": batch.rows},
            where=forward.failure.where or setup.place(Role.MODEL),
            proof=Proof(f"called with {forward.works_at_rows} rows it works"),
            fix=Fix(does="take the number of rows from the input, x.size(0), instead of a fixed number"),
        )


def _drop_last(call: Call) -> Call:
    arguments = call["arguments"]
    object.__setattr__(arguments, "dataloader_drop_last", True)
    if hasattr(arguments, "per_device_train_batch_size"):
        object.__setattr__(arguments, "per_device_eval_batch_size", arguments.per_device_train_batch_size)
    return call
