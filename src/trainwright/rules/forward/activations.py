"""What activations and layers pass on, and what the last one makes of the output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from statistics import fmean

from trainwright.core import Diagnosis, Finding, Fix, Proof, Role, Severity, Trial, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import on_model, standardise_activations, swap_activation
from trainwright.stages import (
    DISTANCES,
    BatchFacts,
    ForwardFacts,
    LossCall,
    LossFacts,
    ModuleFacts,
    ParameterFacts,
    SetupFacts,
)


@rule("TW303", Severity.ERROR)
def non_finite_activation(forward: ForwardFacts, setup: SetupFacts, loss: LossFacts) -> Iterator[Finding]:
    """A non-finite loss, and where it started inside the model. If only scores are minus infinity, that is a mask."""
    if loss.value is None or isfinite(loss.value):
        return
    weights = [p for p in forward.parameters if p.non_finite]
    if weights:
        yield _non_finite_weights(weights, setup)
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


def _non_finite_weights(weights: list[ParameterFacts], setup: SetupFacts) -> Finding:
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
        repair=on_model("set the non-finite weights to zero", lambda tensors, model: tensors.zero_non_finite(model)),
        fix=Fix(
            does="load a checkpoint from before its training diverged"
            if loaded
            else "initialize the weights with finite values"
        ),
    )


# With all-positive inputs, up to half of a new layer's units are zero for every row of a batch.
DEAD_SHARE = 0.9
FEWEST_UNITS = 8
# If only a few units recover, learning takes time at a usual rate.
STEPS_TO_REVIVE = 32


@rule("TW310", Severity.ERROR)
def dead_units(forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """A rectifier with hardly any live units; reviving them makes the batch learnable."""
    dead = [
        m
        for m in forward.modules
        if m.dead_share is not None
        and m.dead_share >= DEAD_SHARE
        and m.output
        and all(t.non_finite == 0 for t in m.inputs[:1])
        and _units(m.output.shape) >= FEWEST_UNITS
    ]
    if not dead:
        return
    revived = standardise_activations(tuple(m.name for m in dead))
    outcome = yield Trial(change=revived, steps=STEPS_TO_REVIVE)
    if not outcome.clearly_better:
        return
    first = dead[0]
    units, share = _units(first.output.shape) if first.output else 0, first.dead_share or 0.0
    spread = [(given.mean or 0.0, given.deviation or 0.0) for given in first.inputs[:1]]
    yield Finding(
        message=f"{share:.0%} of the {units} units of {first.name} are zero for every row of the batch"
        + "".join(f"; their inputs have mean {mean:.3g} and standard deviation {of:.3g}" for mean, of in spread),
        measured={"dead_share": share, "units": units},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=revived,
        fix=unsafe("center the rectifier's inputs (bias, normalization), or use LeakyReLU or GELU"),
    )


def _units(shape: tuple[int, ...]) -> int:
    return shape[1] if len(shape) == 4 else shape[-1] if shape else 0


# For inputs with deviation 1, no sigmoid value is that close to the ends of its range, and under 1 % of tanh values.
SATURATED_SHARE = 0.7
# A sigmoid bends at twice the values at which a tanh does: s(x) = (1 + tanh(x / 2)) / 2.
USUAL_DEVIATION = {"Tanh": 1.0, "Sigmoid": 2.0}
# Larger inputs are unscaled features or pixels: a fault of the data, reported by the dataset rules.
ORDINARY_INPUT = 10.0


@rule("TW311", Severity.ERROR)
def saturated_units(forward: ForwardFacts, batch: BatchFacts, setup: SetupFacts) -> Diagnosis:
    """A saturated sigmoid or tanh; scaling its inputs makes the batch learnable."""
    if any(
        t.is_float and max(abs(t.minimum or 0), abs(t.maximum or 0)) > ORDINARY_INPUT
        for k, t in batch.tensors.items()
        if k != batch.label_key
    ):
        return
    pinned = [
        m for m in forward.modules if m.kind in ("Sigmoid", "Tanh") and (m.saturated_share or 0) >= SATURATED_SHARE
    ]
    if not pinned:
        return
    usual = USUAL_DEVIATION[pinned[0].kind]
    scaled = standardise_activations(tuple(m.name for m in pinned), usual)
    outcome = yield Trial(change=scaled)
    if not outcome.clearly_better:
        return
    first, share = pinned[0], pinned[0].saturated_share or 0.0
    ends = [(given.minimum or 0.0, given.maximum or 0.0) for given in first.inputs[:1]]
    yield Finding(
        message=f"{share:.0%} of the outputs of {first.name} ({first.kind}) are within 0.01 of its limits"
        + "".join(f"; its inputs range from {least:.3g} to {most:.3g}" for least, most in ends),
        measured={"saturated_share": share},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=scaled,
        fix=unsafe(f"initialize the layer before {first.name} with smaller weights, or normalize its outputs"),
    )


@rule("TW326", Severity.WARNING, raises=False)
def linear_stack(forward: ForwardFacts, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A model of several layers whose output is an affine function of its input."""
    layers = [m for m in forward.modules if m.leaf and len(m.sizes) == 2]
    if not forward.affine or loss.failure is not None or len(layers) < 2 or not _is_chain(layers):
        return
    hidden = [m.sizes[1] for m in layers[:-1]]
    if min(hidden) < min(layers[0].sizes[0], layers[-1].sizes[1]):  # a bottleneck: as in PCA
        return
    sizes = " → ".join(str(n) for n in (layers[0].sizes[0], *hidden, layers[-1].sizes[1]))
    yield Finding(
        message=f"the model is a linear function of its input, although it has {len(layers)} layers ({sizes}): there is no "
        "activation between them",
        measured={"layers": len(layers), "widest": max(hidden)},
        where=layers[0].where or setup.place(Role.MODEL),
        proof=Proof(
            "halfway between two rows of the batch, moved to a mean of 0, the output is halfway between theirs, for all "
            "rows, with the initial weights and with perturbed ones"
        ),
        fix=unsafe("put an activation (ReLU, GELU) behind each layer but the last"),
    )


def _is_chain(layers: list[ModuleFacts]) -> bool:
    """Whether each layer takes what the one before it gives, possibly flattened, rather than the same input."""
    return all(
        right.sizes[0] % left.sizes[1] == 0 and left.sizes[1] != layers[-1].sizes[1] for left, right in pairwise(layers)
    )


# A library's softmax of one number may be the number before 1.
ROUNDING = 1e-6


@rule("TW304", Severity.ERROR)
def one_unit_softmax(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Scores produced by a softmax over a single unit."""
    call = loss.call
    if call is None or call.activation not in ("softmax", "log_softmax"):
        return
    scores, constant = call.inputs, 1.0 if call.activation == "softmax" else 0.0
    one_unit = len(scores.shape) == 1 or scores.shape[-1] == 1
    highest = scores.maximum
    is_known = highest is not None and scores.minimum == highest and abs(highest - constant) < ROUNDING
    if not one_unit or not is_known or (len(scores.shape) == 1 and scores.shape[0] < 2):
        return
    yield Finding(
        message=f"{call.activation} runs over a dimension of size 1: each of the {scores.shape[0]} outputs is {constant}, whatever the input",
        measured={"units": 1, "outputs": scores.shape[0], "value": constant},
        where=call.activation_at or setup.place(Role.MODEL),
        proof=Proof(f"all {scores.shape[0]} outputs of the batch are {constant}"),
        repair=swap_activation("sigmoid", call),
        fix=unsafe("use a sigmoid for one unit, or give the head one unit per class"),
    )


_RANGES = {"sigmoid": "0 to 1", "softmax": "0 to 1", "tanh": "-1 to 1", "relu": "nothing below 0", "relu6": "0 to 6"}
# A model that explains 95 % of the variance is a good one; a range that excludes more than that does harm.
UNREACHABLE_SHARE = 0.05


@rule("TW305", Severity.ERROR)
def bounded_regression_output(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Regression targets outside the range of the activation that produced the output."""
    for call in loss.calls or filter(None, (loss.call,)):
        if call.function in DISTANCES and call.activation in _RANGES:
            yield from _of_call(call, setup)


def _of_call(call: LossCall, setup: SetupFacts) -> Iterator[Finding]:
    share, least, most = call.unreachable_share, call.targets.minimum, call.targets.maximum
    if share is None or share < UNREACHABLE_SHARE or least is None or most is None:
        return
    bounds = _RANGES[call.activation]
    shown = f"{share:.0%}" if share < 10 else f"{share:,.0f} times"
    yield Finding(
        message=f"the targets of a batch range from {least:.4g} to {most:.4g}, but the final {call.activation} outputs {bounds}: "
        f"{shown} {'of ' if share < 10 else ''}the targets' variance is out of reach",
        measured={
            "smallest_target": least,
            "largest_target": most,
            "activation": call.activation,
            "unreachable_share": share,
        },
        where=call.activation_at or setup.place(Role.MODEL),
        proof=Proof(f"the nearest possible outputs of the {call.activation} are that far from the targets"),
        repair=swap_activation("identity", call),
        fix=unsafe(f"remove the {call.activation}, or scale the targets to its range"),
    )


_TAKES_SCORES = ("cross_entropy", "binary_cross_entropy_with_logits")
# The activation that belongs before a loss that expects probabilities.
_OF_PROBABILITIES = {"nll_loss": "softmax", "binary_cross_entropy": "sigmoid"}
# New layers give as many scores below zero as above; with a bias that keeps nearly all above, the ReLU has no effect.
ZERO_SHARE = 0.1
STEPS = 24


@rule("TW306", Severity.ERROR)
def rectified_logits(loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """Scores produced by a rectifier; without it, the batch is learned."""
    call = next((c for c in loss.calls if _is_rectified(c)), None)
    if call is None:
        return
    fitting, share = _fitting(call), call.inputs.zero_share
    change = swap_activation(fitting, call)
    outcome = yield Trial(change=change, steps=STEPS)
    if not outcome.clearly_better:
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    without = "without it" if fitting == "identity" else f"with a {fitting} instead"
    yield Finding(
        message=f"the scores given to {call.own_name or call.function} come from a {call.activation}: {share:.0%} of them "
        f"are zero; after {outcome.steps} updates the loss is {before:.3g}, {without} {after:.3g}",
        measured={"zero_share": round(share, 3), "loss": before, "loss_without": after},
        where=call.activation_at or setup.place(Role.MODEL),
        proof=outcome,
        repair=change,
        fix=safe(_advice_on_rectifier(call, fitting)),
    )


def _is_rectified(call: LossCall) -> bool:
    if call.activation not in ("relu", "relu6") or call.failure or not _fitting(call):
        return False
    return call.inputs.zero_share >= ZERO_SHARE


def _fitting(call: LossCall) -> str:
    """The activation that belongs before the loss: identity for none; empty for other kinds of losses."""
    if call.function in _TAKES_SCORES:
        return "identity"
    return _OF_PROBABILITIES.get(call.function, "") if call.from_logits is False else ""


def _advice_on_rectifier(call: LossCall, fitting: str) -> str:
    if fitting == "identity":
        return f"remove the {call.activation}: the loss takes scores of any sign"
    return f"make the last {call.activation} a {fitting}"
