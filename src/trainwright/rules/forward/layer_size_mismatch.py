"""TW301 layer-size-mismatch: a layer was built for a different input size than it gets.

Why it matters: The forward pass stops, and the message gives two shapes but neither the layer nor its line.
Evidence: The layer's declared size compared with its input's shape; whether another dimension of the input has that
size.
Error: `mat1 and mat2 shapes cannot be multiplied`
Error: `expected input… to have … channels, but got … channels`
Error: `Given normalized_shape=…, expected input with shape`
Error: `running_mean should contain … elements not`
Error: `input.size(-1) must be equal to input_size`
Error: `is incompatible with the layer: expected axis`
Error: `is incompatible with the layer: expected shape`
Error: `Matrix size-incompatible`
Fix (unsafe): Build the layer for the size of its input, or give the input the shape that the layer expects.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Repair, Safety, Severity, rule
from trainwright.rules.layer_sizes import SizeMismatch, resize, size_mismatch
from trainwright.rules.refused_inputs import refusal, refused_input
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts


@rule("TW301", Severity.ERROR, foretells=Fate.STOPS)
def layer_size_mismatch(setup: SetupFacts, forward: ForwardFacts | None, batch: BatchFacts | None) -> Iterator[Finding]:
    """A layer that raised because its input has a different size."""
    if (refused := refused_input(setup, forward)) is not None:
        if not refused[0].has_other_rank:
            yield refusal(*refused, setup, forward, batch)
        return
    found = size_mismatch(forward) if forward is not None else None
    if found is None or found.has_other_rank:
        return
    does, repair = _fit(found)
    yield Finding(
        message=found.message,
        measured=found.measured,
        where=found.where,
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _fit(found: SizeMismatch) -> tuple[str, Repair | None]:
    """What makes the input fit: a description and, if possible, a repair."""
    name, shape, wanted = found.layer.name, found.shape, found.wanted
    other = [i for i, size in enumerate(shape[1:], 1) if size == wanted]
    if other:
        axis = 1 if found.argument in ("in_channels", "num_features") else len(shape) - 1
        return f"move dimension {other[0]} of {name}'s input, which has size {wanted}, to dimension {axis}", None
    if found.layer.fixed_size:  # its size is that of the declared input, which its weights were drawn for
        return f"declare an input of {found.came} values, or pass inputs of {wanted} values", None
    return (f"build {name} with {found.argument}={found.came}, or pass it {wanted} values", resize(name, found.came))
