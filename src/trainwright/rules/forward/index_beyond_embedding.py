"""TW321 index-beyond-embedding: an embedding gets an index, computed inside the model, for which it has no row.

Why it matters: On a CPU the forward pass stops with an index error, on a GPU with a device-side assert far from its
cause.
Evidence: The smallest and largest index passed to the layer, compared with its number of rows.
Error: `index out of range in self`
Fix (unsafe): Build the layer with a row for each index, or number the indices from 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Safety, Severity, rule
from trainwright.rules.layer_sizes import resize
from trainwright.stages import ForwardFacts, SetupFacts


@rule("TW321", Severity.ERROR, after="TW301", foretells=Fate.STOPS)
def index_beyond_embedding(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An embedding that raised."""
    layer = forward.failed_module
    if layer is None or layer.kind != "Embedding":
        return
    given = layer.inputs[0] if layer.inputs else None
    if given is None or given.maximum is None or given.minimum is None or not layer.sizes:
        return
    rows, largest, smallest = layer.sizes[0], int(given.maximum), int(given.minimum)
    if smallest >= 0 and largest < rows:
        return
    fits = smallest >= 0
    yield Finding(
        message=f"{layer.name} (Embedding) has {rows} rows, for indices 0 to {rows - 1}, but gets indices {smallest} "
        f"to {largest}",
        measured={"layer": layer.name, "declared": rows, "largest": largest, "smallest": smallest},
        where=layer.where,
        repair=resize(layer.name, largest + 1) if fits and not layer.fixed_size else None,
        fix=Fix(
            does=f"build {layer.name} with {setup.words.embedding_rows}={largest + 1} or more"
            if fits
            else "number the indices from 0",
            safety=Safety.UNSAFE if fits else Safety.MANUAL,
        ),
    )
