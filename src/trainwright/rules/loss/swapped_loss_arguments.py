"""TW462 swapped-loss-arguments: the loss gets the labels where it expects the scores, and the scores as labels.

Why it matters: The loss raises an error about a kernel or a shape that names neither argument.
Evidence: The call that raised got whole numbers without a class dimension first, and real numbers with one second.
Error: `"log_softmax_lastdim_kernel_impl" not implemented for 'Long'`
Error: `"nll_loss_out_frame" not implemented for 'Long'`
Fix (safe): Pass the model's output first, then the labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import LossCall, LossFacts, SetupFacts

CLASS_LOSSES = ("cross_entropy", "nll_loss")


@rule("TW462", Severity.ERROR)
def swapped_loss_arguments(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A class loss that raised on labels in place of scores."""
    call = next((c for c in loss.calls if c.failure is not None and _is_swapped(c)), None)
    if call is None:
        return
    yield Finding(
        message=f"{call.function} gets {call.inputs.dtype} numbers {call.inputs.shape} where it expects scores, and "
        f"{call.targets.dtype} numbers {call.targets.shape} where it expects labels",
        measured={"first": str(call.inputs.shape), "second": str(call.targets.shape)},
        where=call.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(f"the call raised {call.failure}"),
        repair=_swap(call),
        fix=Fix(does="pass the model's output first, then the labels", safety=Safety.SAFE),
    )


def _is_swapped(call: LossCall) -> bool:
    """Whether the first argument has the form of labels, and the second that of their scores."""
    first, second = call.inputs, call.targets
    labels = "int" in first.dtype and "float" in second.dtype and len(second.shape) == len(first.shape) + 1
    return call.function in CLASS_LOSSES and labels and (second.shape[0], *second.shape[2:]) == first.shape


def _swap(seen: LossCall) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] != seen.function or tuple(call["logits"].shape) != seen.inputs.shape:
            return call
        return call.replace(logits=call["targets"], targets=call["logits"])

    return Repair(f"exchange the arguments of {seen.function}", Seam.LOSS, change)
