"""TW416 shadowed-loss: the loss function's name was reassigned to the loss value, so the next step calls a tensor.

Why it matters: The first step works, and the second raises an error that does not mention the assignment.
Evidence: The second step raised an error; the line that assigns another value to the called name.
Error: `'Tensor' object is not callable`
Error: `cannot assign 'torch…' as child module '…'`
Fix (safe): Use different names for the loss value and the loss function.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Failure, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.frameworks.error_texts import SHADOWED
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts


@rule("TW416", Severity.ERROR)
def shadowed_loss(forward: ForwardFacts, loss: LossFacts | None, setup: SetupFacts) -> Iterator[Finding]:
    """A step that calls a tensor whose name used to be a function's."""
    failure = _failure(forward, loss)
    if failure is None:
        return
    second = loss is not None and failure is loss.second_step
    yield Finding(
        message=f"the {'second' if second else 'first'} step raised {failure.type}: {failure.message.splitlines()[0]}; "
        "the loss function's name was reassigned to the loss value",
        measured={"step": 2 if second else 1},
        where=(loss.rebound_at if loss else None) or failure.where or setup.place(Role.TRAINER),
        proof=Proof("the first step completed, and the same step raised when repeated" if second else failure.message),
        fix=Fix(does="use another name for the loss value: loss = self.loss_fn(outputs, labels)", safety=Safety.SAFE),
    )


def _failure(forward: ForwardFacts, loss: LossFacts | None) -> Failure | None:
    """The failure that shows it: the second step's, or the first step's."""
    for failure in (loss.second_step, loss.failure) if loss else (forward.failure,):
        if failure is not None and failure.where is not None and any(s in failure.message for s in SHADOWED):
            return failure
    return None
