"""TW410 softmax-on-multilabel: rows with several labels are trained with a softmax, which allows only one.

Why it matters: Nothing fails. Two true labels can have a probability of at most one half each, the loss never comes
near zero, and a threshold of 0.5 finds almost none of them.
Evidence: The row sums of the targets that the loss gets.
Fix (unsafe): Use binary_cross_entropy_with_logits on the scores; in Keras, a sigmoid and binary_crossentropy.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.repairs import swap_activation
from trainwright.stages import LossCall, LossFacts, SetupFacts

# Losses that compare each output with its own target.
_ELEMENTWISE = ("binary_cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@rule("TW410", Severity.WARNING)
def softmax_on_multilabel(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets of 0 and 1 with several ones per row, compared with probabilities that sum to one."""
    call = next((c for c in loss.calls if _shared(c)), None)
    if call is None:
        return
    several, rows = call.rows_of_several_labels, call.targets.shape[0]
    soft = call.function in _ELEMENTWISE
    shared = "a softmax makes all labels of a row share a total probability of 1"
    if _divides(call):
        shared = f"{call.own_name} makes all labels of a row share a total probability of 1"
    yield Finding(
        message=f"{several} of the batch's {rows} rows have several labels, and {shared}",
        measured={"rows_of_several_labels": several, "rows": rows},
        where=(call.activation_at if soft else None) or call.at or setup.place(Role.MODEL),
        proof=Proof(
            f"the targets of {several} rows sum to more than 1, but the probabilities they are compared with sum to 1"
        ),
        repair=_binary_form(call),
        fix=Fix(does=_advice(call, setup), safety=Safety.UNSAFE),
    )


def _shared(call: LossCall) -> bool:
    """Whether rows of targets contain several ones, while the probabilities of a row sum to one."""
    several = call.rows_of_several_labels and set(call.target_values) <= {0.0, 1.0}
    if not several or len(call.inputs.shape) != 2:
        return False
    if call.function in _ELEMENTWISE:
        return call.rows_sum_to_one
    return call.function == "cross_entropy" or _divides(call)


def _divides(call: LossCall) -> bool:
    """Whether the loss takes probabilities and normalizes each row to a sum of one."""
    return call.function == "nll_loss" and call.takes_indices is False


def _advice(call: LossCall, setup: SetupFacts) -> str:
    if call.function in _ELEMENTWISE:
        return "use a sigmoid instead of the softmax"
    if call.from_logits is not False:
        return f"use {setup.words.multilabel_loss}"
    return f"use {setup.words.loss('binary_cross_entropy')}" + (
        "" if call.activation == "sigmoid" else ", and a sigmoid in the last layer"
    )


def _binary_form(seen: LossCall) -> Repair | None:
    """The loss that judges each label separately; None if both the softmax and the loss would have to be replaced."""
    function = seen.function
    if function in _ELEMENTWISE:
        return swap_activation("sigmoid", seen) if seen.activation == "softmax" else None
    if function != "cross_entropy" and seen.rows_sum_to_one:
        return None
    binary = "binary_cross_entropy" + ("_with_logits" if function == "cross_entropy" else "")

    def change(call: Call) -> Call:
        return call.without("weight").replace(function=binary) if call["function"] == function else call

    return Repair(f"compute {binary} instead of {function}", Seam.LOSS, change)
