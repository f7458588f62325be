"""TW320 wrong-number-of-axes: a layer, or the model, gets an input with more or fewer dimensions than it expects.

Why it matters: The forward pass stops with a message about two shapes. It does not say what is missing: a flatten, a
channel dimension, or a recurrent layer's outputs for all steps.
Evidence: The declared number of dimensions compared with the input's shape; whether the same values fit in another
shape.
Error: `mat1 and mat2 shapes cannot be multiplied`
Error: `is incompatible with the layer: expected ndim`
Error: `is incompatible with the layer: expected min_ndim`
Error: `Invalid input shape for input`
Fix (unsafe): Flatten the input, or add the missing dimension.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Repair, Safety, Seam, Severity, rule
from trainwright.rules.layer_sizes import size_mismatch
from trainwright.rules.refused_inputs import refusal, refused_input
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts


@rule("TW320", Severity.ERROR, after="TW301")
def wrong_number_of_axes(
    setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None
) -> Iterator[Finding]:
    """A layer that raised or rejected its input because of a missing or surplus dimension."""
    if (refused := refused_input(setup, forward)) is not None:
        if refused[0].has_other_rank:
            yield refusal(*refused, setup, forward, batch)
        return
    found = size_mismatch(forward) if forward is not None else None
    if found is None or not found.has_other_rank:
        return
    name = found.layer.name
    does = (
        f"flatten the input of {name} to {found.wanted} values per row: x.flatten(1)"
        if found.lacks_flatten
        else f"add {'a dimension for its one feature' if found.lacks_columns else 'a channel dimension'} to the input "
        f"of {name}: x.unsqueeze(1)"
    )
    yield Finding(
        message=found.message,
        measured=found.measured,
        where=found.where,
        repair=_flatten(name) if found.lacks_flatten else None,
        fix=Fix(does=does, safety=Safety.UNSAFE if found.lacks_flatten else Safety.MANUAL),
    )


def _flatten(name: str) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.flatten_before(call["model"], name)
        return call

    return Repair(f"flatten the input of {name}", Seam.TRAINER, change)
