"""TW504 vanishing-gradients: hardly any of the gradient reaches the first layers.

Why it matters: The early layers keep their random weights, and the later ones learn from random features.
Evidence: The gradient per weight of the first layers compared with that of the last. With an activation that passes
gradients (ReLU on standardized values) in place of sigmoid or tanh, the batch is learned clearly better, on three
seeds.
Fix (manual): Use ReLU or GELU between the layers, with normalization or residual connections.
"""

from __future__ import annotations

import math
from statistics import median

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Role, Seam, Severity, Trial, rule
from trainwright.stages import ForwardFacts, GradientFacts, GradientOf, SetupFacts

# Ratio of early to late gradients, per weight: 0.01 to 10 in networks that learn (ReLU MLPs, BERT, GPT-2 and ResNet at
# initialization); ten sigmoid layers with torch's initialization have 1e-7. The limit is three decades below normal.
VANISHED = 1e-5
# Sigmoid's slope is at most 1/4: fewer layers cannot cost three decades.
FEWEST_LAYERS = 4


@rule("TW504", Severity.ERROR)
def vanishing_gradients(gradients: GradientFacts, forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """Early layers with a gradient far below the late layers', fixed by another activation."""
    layers = _layers(gradients, forward)
    if len(layers) < FEWEST_LAYERS or gradients.failure is not None:
        return
    third = max(1, len(layers) // 3)
    early, late = median(map(_per_weight, layers[:third])), median(map(_per_weight, layers[-third:]))
    squashing = [m for m in forward.modules if m.kind in ("Sigmoid", "Tanh") and m.output]
    if late == 0 or early / late > VANISHED or not squashing:
        return
    inner = [m.name for m in squashing if forward.output is None or m.output.shape != forward.output.shape]  # type: ignore[union-attr]
    outcome = yield Trial(change=_passing(frozenset(inner)), steps=24)
    if not outcome.clearly_better:
        return
    kind = squashing[0].kind.lower()
    yield Finding(
        message=f"the gradient per weight of the first {third} layers is {early / late:.1g} of that of the last {third}, "
        f"behind {len(inner)} {kind} layers",
        measured={"ratio": early / late, "layers": len(layers), "activation": kind},
        where=next((m.where for m in squashing if m.where), None) or layers[0].where or setup.place(Role.MODEL),
        proof=outcome,
        repair=_passing(frozenset(inner)),
        fix=Fix(does=f"use ReLU or GELU instead of {kind} between the layers, with LayerNorm or residual connections"),
    )


def _layers(gradients: GradientFacts, forward: ForwardFacts) -> list[GradientOf]:
    """Weights of linear and convolution layers that got a gradient, in call order."""
    order = {m.name: i for i, m in enumerate(forward.modules) if m.kind.startswith(("Linear", "Dense", "Conv"))}
    found = [g for g in gradients.gradients if g.module in order and len(g.shape) > 1 and g.norm is not None]
    return sorted(found, key=lambda g: order[g.module])


def _per_weight(gradient: GradientOf) -> float:
    return (gradient.norm or 0.0) / math.sqrt(math.prod(gradient.shape))


def _passing(names: frozenset[str]) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] not in ("sigmoid", "tanh") or call["module"] not in names:
            return call
        return call.replace(function="relu", values=call.tensors.normalise_rows(call["values"]))

    return Repair("ReLU of standardized values between the layers", Seam.ACTIVATION, change)
