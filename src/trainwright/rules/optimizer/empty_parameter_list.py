"""TW616 empty-parameter-list: an optimizer is given no parameters, although none of the model's is frozen.

Why it matters: The script stops before training. An iterator such as the result of `model.parameters()` can be read
only once, a filter by name may match nothing, and a model without layers has nothing to train.
Evidence: The number of the model's parameters, and what the optimizer was given.
Error: `optimizer got an empty parameter list`
Fix (safe): Call model.parameters() again, or make a list of it, before the second use.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import SetupFacts


@rule("TW616", Severity.ERROR, foretells=Fate.STOPS)
def empty_parameter_list(setup: SetupFacts) -> Iterator[Finding]:
    """An iterator that was already read, a selection that holds nothing, or a model without parameters."""
    empty = setup.empty
    if empty is None or empty.lists or any(one.meant == "__init__" for one in setup.misspelled):
        return
    model, count = setup.model_class, setup.parameters
    measured = {"parameters": count, "trainable": setup.trainable_parameters}
    if not count:
        yield Finding(
            message=f"{model} has no parameters: neither it nor a layer in it has a weight",
            measured=measured,
            where=empty.where or (setup.failure.where if setup.failure else None),
            proof=Proof(f"{model} was searched for parameters and for layers in its attributes: there are none"),
            fix=Fix(does=f"create the layers in {model}.__init__, as attributes of self"),
        )
    elif setup.trainable_parameters:
        yield Finding(
            message=f"{empty.expression} is an iterator that was already read to its end: it yields no parameter again"
            if empty.is_iterator
            else f"{empty.expression} yields none of the {count:,} parameters of {model}",
            measured=measured,
            where=setup.failure.where if setup.failure else empty.where,
            proof=Proof(f"{model} has {setup.trainable_parameters:,} trainable parameters, and the optimizer got none"),
            fix=Fix(does="make a list of it where it is assigned: list(model.parameters())", safety=Safety.SAFE)
            if empty.is_iterator
            else Fix(does="compare the names in the selection with those of model.named_parameters()"),
        )
