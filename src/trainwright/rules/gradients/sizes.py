"""Gradients that are too small, too large, or not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from trainwright.core import Call, Diagnosis, Finding, Fix, Proof, Repair, Role, Seam, Severity, Trial, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import on_optimizer
from trainwright.stages import ForwardFacts, GradientFacts, GradientOf, LossFacts, OverfitFacts, SetupFacts

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


# Well-initialized networks have norms of 0.1 to 100; the Trainer clips at 1 by default.
EXPLODED = 1e3
CLIPPED_TO = 1.0


@rule("TW505", Severity.ERROR)
def exploding_gradients(gradients: GradientFacts, setup: SetupFacts, overfit: OverfitFacts) -> Diagnosis:
    """An unclipped gradient norm above a thousand; with clipping, the batch is learned."""
    norm = gradients.norm
    if norm is None or not norm > EXPLODED or gradients.clip_at is not None or overfit.learnt:
        return
    outcome = yield Trial(change=_clipping())
    if not outcome.clearly_better:
        return
    yield Finding(
        message=f"the gradient's norm is {norm:.3g} and nothing clips it; up to 100 is usual",
        measured={"norm": norm, "clip_at": "none"},
        where=setup.place(Role.MAX_GRAD_NORM, Role.ARGUMENTS, Role.TRAINER),
        proof=outcome,
        repair=_clipping(),
        fix=unsafe("clip the gradient: max_grad_norm=1.0"),
    )


def _clipping() -> Repair:
    return on_optimizer(
        f"gradients clipped to norm {CLIPPED_TO:g}",
        lambda tensors, optimizer: tensors.clip_gradients(optimizer, CLIPPED_TO),
    )


_ADVICE = {"Sqrt": "add a small constant inside the root: sqrt(x + 1e-8)", "Log": "clamp before the logarithm: x.clamp_min(1e-8)",
           "Pow": "add a small constant before the power", "Std": "take the root of variance + 1e-8",
           "Div": "add a small constant to the divisor", "Acos": "clamp to (-1 + 1e-6, 1 - 1e-6) first"}  # fmt: skip


@rule("TW506", Severity.ERROR)
def non_finite_gradients(gradients: GradientFacts, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """NaN or infinite gradients of a finite loss."""
    bad = [g for g in gradients.gradients if g.non_finite]
    # In float16, steps are skipped until a loss scale is found, so infinite gradients are normal.
    if not bad or not gradients.loss_finite or gradients.failure or setup.precision == "fp16":
        return
    operation = gradients.anomaly
    made = f"; the backward of {operation} produced the first" if operation else ""
    yield Finding(
        message=f"the loss is finite ({loss.value:.4g}), but the gradient of {len(bad)} of {len(gradients.gradients)} "
        f"parameters is not ({bad[0].name} first){made}",
        measured={"non_finite_parameters": len(bad), "first": bad[0].name, "operation": operation or "unknown"},
        where=gradients.anomaly_at or bad[0].where or setup.place(Role.COMPUTE_LOSS, Role.MODEL),
        proof=Proof(f"{bad[0].non_finite} of the values of {bad[0].name}'s gradient are NaN or infinite"),
        fix=Fix(
            does=_ADVICE.get(
                operation, f"keep {operation or 'the operation'} away from points where its slope is infinite"
            )
        ),
    )


@rule("TW517", Severity.WARNING)
def early_clipping(gradients: GradientFacts) -> Iterator[Finding]:
    """Clipping before the backward pass: it meets no gradient, and those of the step stay as they are."""
    clip, norm = gradients.clipped_early, gradients.norm
    if clip is None or norm is None:
        return
    yield Finding(
        message=f"gradients are clipped before the backward pass has made them: the norm of those that are used is {norm:.3g}",
        measured={"norm_when_clipped": clip.before, "norm_at_step": norm},
        where=clip.where,
        proof=Proof(
            f"the norm over all parameters was {clip.before:g} when they were clipped, and {norm:.4g} at the step"
        ),
        fix=safe("clip between backward() and the optimizer's step"),
    )


@rule("TW516", Severity.ERROR)
def misused_scaler(gradients: GradientFacts) -> Iterator[Finding]:
    """Clipping before the gradients are unscaled: what reaches the step is the clipped norm, divided by the scale."""
    if gradients.unscaled_late is None:
        return
    clip, divided = gradients.unscaled_late
    scale = divided.before / divided.after
    yield Finding(
        message=f"the gradients are clipped while they are still multiplied by the scaler's scale of {scale:,.0f}: their norm "
        f"goes from {clip.before:.3g} to {clip.after:.3g}, and {divided.after:.3g} of it is left at the step",
        measured={"scale": round(scale), "clipped_norm": clip.after, "norm_at_step": divided.after},
        where=clip.where,
        severity=Severity.NOTE if gradients.size_is_divided_out else Severity.WARNING,
        proof=Proof(f"the norm after clipping, {clip.after:.4g}, is {scale:,.0f} times that at the step"),
        fix=safe("call scaler.unscale_(optimizer) before clipping"),
    )
