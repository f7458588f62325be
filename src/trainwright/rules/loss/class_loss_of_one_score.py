"""TW424 class-loss-of-one-score: one sigmoid score per row is passed to a loss that needs a score for each class.

Why it matters: The loss stops at the first label 1, or becomes NaN under a compiler. The message asks for more
classes, although the loss, not the model, is wrong.
Evidence: The model ends in one sigmoid unit and the labels are 0 and 1; with binary cross-entropy the loss is finite.
Error: `Received a label value of`
Fix (safe): Compute the binary cross-entropy; or end the model with two units and a softmax.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Repair, Safety, Seam, Severity, rule
from trainwright.rules.class_labels import labels_out_of_range, rows_not_finite
from trainwright.rules.places import loss_place, rename_loss
from trainwright.stages import DatasetFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW424", Severity.ERROR, after="TW401")
def class_loss_of_one_score(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """One probability for two labels: the fix is a loss that accepts it, not another layer."""
    labels, call = labels_out_of_range(dataset, forward, loss), loss.call
    if labels is None or not labels.for_binary_loss or call is None:
        return
    where, name = loss_place(loss, setup), call.own_name or call.function
    binary = "binary_crossentropy" if call.own_name else "binary_cross_entropy"
    yield Finding(
        message=f"the model outputs one sigmoid score per row, but {name} needs one score per class",
        measured={"outputs": 1, "smallest_label": 0, "largest_label": 1},
        where=where,
        proof=rows_not_finite(loss),
        repair=_binary(call.function, f"compute {binary} instead of {name}"),
        fix=Fix(
            does=f"use {binary}, the loss of one sigmoid unit; or end the model with 2 units and a softmax",
            safety=Safety.SAFE,
            edits=rename_loss(call.own_name, binary, where, setup),
        ),
    )


def _binary(function: str, does: str) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        targets = call.tensors.reshape(call["targets"], (-1, *call["logits"].shape[1:]))
        return call.replace(function="binary_cross_entropy", targets=call.tensors.cast(targets, "float32"))

    return Repair(does, Seam.LOSS, change)
