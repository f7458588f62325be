"""TW603 frozen-model: no parameter of the model requires a gradient, so there is nothing to train.

Why it matters: Backward, or the optimizer's constructor, raises an error that does not say which line froze what.
Evidence: The number of trainable parameters, which is 0, and the line that set requires_grad to False.
Error: `optimizer got an empty parameter list`
Error: `element 0 of tensors does not require grad and does not have a grad_fn`
Fix (manual): Do not freeze the layers that should learn.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.frameworks.error_texts import EMPTY_LIST
from trainwright.rules.repairs import unfreeze_model
from trainwright.stages import SetupFacts


@rule("TW603", Severity.ERROR, foretells=Fate.STANDS_STILL)
def frozen_model(setup: SetupFacts) -> Iterator[Finding]:
    """A model whose parameters are all frozen, or an optimizer that got no parameters for that reason."""
    # Without the model's numbers, a line that froze something is all that is known.
    empty = setup.failure is not None and EMPTY_LIST in setup.failure.message and setup.empty is None
    frozen = setup.parameters > 0 and setup.trainable_parameters == 0
    if not (frozen or (empty and setup.frozen_at)):
        return
    count = (
        f"all {setup.parameters:,} parameters of {setup.model_class} are"
        if frozen
        else "every parameter given to it is"
    )
    yield Finding(
        message=f"{count} frozen: nothing is left to train",
        measured={"parameters": setup.parameters, "trainable": 0},
        where=next(iter(setup.frozen_at), None) or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof("none of them is trainable when training starts" if frozen else f"{setup.failure}"),
        repair=unfreeze_model() if frozen else None,
        fix=Fix(does="do not freeze the layers that should learn, at least not the head"),
    )
