"""TW303 non-finite-activation: NaN or infinity appears inside the model.

Why it matters: The loss is NaN from the first step, and every weight follows. Some trainers log it as 0.0.
Evidence: The first call whose input is finite and whose result is not, or the weights that are not finite themselves.
Fix (manual): Keep the operation within its domain. If the weights are NaN, use another checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Seam, Severity, rule
from trainwright.stages import ForwardFacts, LossFacts, ParameterFacts, SetupFacts


@rule("TW303", Severity.ERROR)
def non_finite_activation(forward: ForwardFacts, setup: SetupFacts, loss: LossFacts) -> Iterator[Finding]:
    """A non-finite loss, and where it started inside the model. If only scores are minus infinity, that is a mask."""
    if loss.value is None or isfinite(loss.value):
        return
    weights = [p for p in forward.parameters if p.non_finite]
    if weights:
        yield _weights(weights, setup)
        return
    origin = forward.non_finite_from
    seen = forward.output is not None and forward.output.non_finite > 0
    first = next(
        (
            m
            for m in forward.modules
            if m.leaf and m.output and m.output.non_finite and not any(i.non_finite for i in m.inputs)
        ),
        None,
    )
    if not seen or (origin is None and first is None):
        return
    module = origin.module if origin else first.name if first else ""
    operation = origin.operation if origin else first.kind if first else ""
    count = origin.count if origin else first.output.non_finite if first and first.output else 0
    named = f"{operation} in {module}" if module else operation
    yield Finding(
        message=f"{named} produced {count:,} non-finite {'value' if count == 1 else 'values'} from finite ones; the loss is {loss.value}",
        measured={"operation": operation, "module": module, "non_finite": count},
        where=(origin.where if origin else None) or forward.place_of(module) or setup.place(Role.MODEL),
        proof=Proof(f"the input of {operation} is finite, its result is not"),
        fix=Fix(does=f"keep the input of {operation} inside its domain (clamp it, or add a small constant)"),
    )


def _weights(weights: list[ParameterFacts], setup: SetupFacts) -> Finding:
    total = sum(p.non_finite for p in weights)
    more = f" and {len(weights) - 1} more" if len(weights) > 1 else ""
    loaded = " of the checkpoint" if setup.loads_checkpoint else ""
    verb = "hold" if len(weights) > 1 else "holds"
    return Finding(
        message=f"{weights[0].name}{more}{loaded} {verb} {total:,} non-finite {'weight' if total == 1 else 'weights'} before the first step",
        measured={"parameter": weights[0].name, "parameters": len(weights), "non_finite": total},
        where=setup.place(Role.MODEL),
        proof=Proof(
            f"{weights[0].non_finite:,} of the values of {weights[0].name} {weights[0].shape} are NaN or infinite"
        ),
        repair=Repair("set the non-finite weights to zero", Seam.TRAINER, _to_zero),
        fix=Fix(
            does="load a checkpoint from before its training diverged"
            if loaded
            else "initialize the weights with finite values"
        ),
    )


def _to_zero(call: Call) -> Call:
    call.tensors.zero_non_finite(call["model"])
    return call
