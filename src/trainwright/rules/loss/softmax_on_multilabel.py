"""TW410 softmax-on-multilabel: rows with several labels are trained through a softmax, which shares one among them.

Why it matters: nothing fails; two true labels can have at most a half each, the loss never comes near zero, and a
threshold of 0.5 finds next to none.
Evidence: the row sums of the targets that the loss was given.
Fix (unsafe): use binary_cross_entropy_with_logits on the scores.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts


@rule("TW410", Severity.WARNING)
def softmax_on_multilabel(loss: LossFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets of 0 and 1 with several ones in a row, against scores that share a sum of one."""
    call = next((c for c in loss.calls if _shared(c)), None)
    if call is None:
        return
    several, rows = call.rows_of_several_labels, call.targets.shape[0]
    soft = call.function == "binary_cross_entropy"
    yield Finding(
        message=f"{several} of the batch's {rows} rows have several labels, and a softmax gives all labels of a row "
        "one probability together",
        measured={"rows_of_several_labels": several, "rows": rows},
        where=(call.activation_at if soft else None) or call.at or setup.place("model"),
        proof=Proof(f"the targets of {several} rows sum to more than 1, the probabilities they are compared with to 1"),
        repair=None if soft else _sigmoid_form(),
        fix=Fix(
            does="use a sigmoid instead of the softmax" if soft else "use nn.BCEWithLogitsLoss (Hugging Face: "
            'problem_type="multi_label_classification")',
            safety=Safety.UNSAFE,
        ),
    )  # fmt: skip


def _shared(call: LossCall) -> bool:
    if (
        not call.rows_of_several_labels
        or len(call.inputs.shape) != 2
        or not set(call.target_values) <= {0.0, 1.0}
    ):
        return False
    return call.function == "cross_entropy" or (
        call.function == "binary_cross_entropy" and call.rows_sum_to_one
    )


def _sigmoid_form() -> Repair:
    def change(call: Call) -> Call:
        if call["function"] != "cross_entropy":
            return call
        return call.without("weight").replace(function="binary_cross_entropy_with_logits")

    return Repair("compute binary_cross_entropy_with_logits instead of cross_entropy", Seam.LOSS, change)
