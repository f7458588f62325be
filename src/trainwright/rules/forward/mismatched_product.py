"""TW322 mismatched-product: a matrix product in the model's code has factors with incompatible shapes.

Why it matters: The forward pass stops. The message gives two shapes, but no layer has a size to correct.
Evidence: The module that raised the error has no declared size of its own.
Error: `mat1 and mat2 shapes cannot be multiplied`
Error: `Expected size for first two dimensions of batch2 tensor to be`
Fix (manual): Make the last dimension of the first factor as long as the first dimension of the second.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.frameworks.error_texts import MISMATCHED_PRODUCT
from trainwright.frameworks.layers import TAKES
from trainwright.rules.layer_sizes import failed_layer
from trainwright.stages import ForwardFacts


@rule("TW322", Severity.ERROR, after="TW301")
def mismatched_product(forward: ForwardFacts) -> Iterator[Finding]:
    """A module without a declared size that raised in a matrix product."""
    failed = failed_layer(forward)
    if failed is None or not any(text in failed[1].message for text in MISMATCHED_PRODUCT):
        return
    layer, failure = failed
    if layer.kind in TAKES and layer.sizes and layer.inputs and len(layer.inputs[0].shape) > 1:
        return
    yield Finding(
        message=f"a matrix product in {layer.name or 'the model'} ({layer.kind}) has factors with incompatible shapes: "
        f"{failure.message}",
        where=failure.where,
        proof=Proof(f"{layer.kind} has no declared size of its own, and raised {failure.type}"),
        fix=Fix(does="make the last dimension of the first factor as long as the first dimension of the second"),
    )
