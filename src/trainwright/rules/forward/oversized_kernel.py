"""TW323 oversized-kernel: a convolution or pooling has a window that is larger than what is left of its input.

Why it matters: Each stride and pooling shrinks an image. A network made for larger images stops at the layer for which
nothing is left, with a message that names sizes but no layer.
Evidence: The size of the layer's input, and that of its window or of the output that it would have.
Error: `Kernel size can't be greater than actual input size`
Error: `Output size is too small`
Error: `Computed output size would be zero or negative`
Fix (manual): Pass larger inputs, leave out a pooling or a stride before the layer, or pad its input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Failure, Finding, Fix, Proof, Severity, rule
from trainwright.frameworks.error_texts import NOTHING_LEFT, PADDED_INPUT, POOLED_TO_NOTHING
from trainwright.stages import ForwardFacts, SetupFacts


@rule("TW323", Severity.ERROR)
def oversized_kernel(setup: SetupFacts, forward: ForwardFacts | None) -> Iterator[Finding]:
    """A layer that raised because no output is left."""
    failure = forward.failure if forward is not None else setup.failure
    sizes = _sizes(failure) if failure is not None else None
    if failure is None or sizes is None:
        return
    given, told = sizes
    layer = forward.failed_module if forward is not None else None
    name = f"{layer.name} ({layer.kind})" if layer is not None and layer.leaf and layer.name else "a layer"
    first = forward.modules[0].inputs if forward is not None and forward.modules else ()
    measured = {"input": given, **({"model_input": str(first[0].shape)} if first else {})}
    yield Finding(
        message=f"{name} gets an input of {given}, {told}",
        measured=measured,
        where=(layer.where if layer is not None and layer.leaf else None) or failure.where,
        proof=Proof(f"{failure}"),
        fix=Fix(
            does="pass larger inputs, leave out a pooling or a stride before this layer, or give it padding or a smaller "
            "window"
        ),
    )


def _sizes(failure: Failure) -> tuple[str, str] | None:
    """The input's size, and what the window would make of it."""
    if found := PADDED_INPUT.search(failure.message):
        return f"{found['input']} (with padding)", f"and its kernel is {found['kernel']}"
    if found := POOLED_TO_NOTHING.search(failure.message):
        return _spaced(found["input"]), f"of which it would leave {_spaced(found['output'])}"
    if found := NOTHING_LEFT.search(failure.message):
        _, *given = _numbers(found["input"])
        window = _numbers(found["kernel"])[: len(given) - 1]
        return " x ".join(given), f"and its window is {' x '.join(window)}"
    return None


def _spaced(sizes: str) -> str:
    return " x ".join(_numbers(sizes))


def _numbers(sizes: str) -> list[str]:
    """The sizes, separated in any way; the number of rows may be None."""
    return re.findall(r"\d+|None", sizes)
