"""TW407 broadcast-loss: outputs and targets of different shapes were spread against each other, row by every row.

Why it matters: (N, 1) outputs against (N) targets give N x N differences and no error: the best that the model can
learn is the mean of the targets.
Evidence: the two shapes at the loss call; aligned, the loss has another value.
Error: `The size of tensor a … must match the size of tensor b`
Error: `Using a target size … that is different to the input size`
Error: `Target size … must be the same as input size …`
Error: `0D or 1D target tensor expected, multi-target not supported`
Fix (safe): give both the same shape (squeeze(-1) the outputs, or unsqueeze(-1) the targets).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts

_ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                "binary_cross_entropy_with_logits")  # fmt: skip
_CLASSES = ("cross_entropy", "nll_loss")


@rule("TW407", Severity.ERROR)
def broadcast_loss(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An element-wise loss over more elements than either side has, or over shapes that do not fit."""
    call = next((c for c in loss.calls if (c.function in _ELEMENTWISE and _crossed(c)) or _column(c)), None)
    if call is None:
        return
    scores, targets = call.inputs.shape, call.targets.shape
    spread = _spread(scores, targets)
    what = f"compares {math.prod(spread):,} pairs" if spread and not call.failure else "raised"
    yield Finding(
        message=f"{call.function} of outputs {scores} and targets {targets} {what}, for {targets[0]} rows"
        + _values(call),
        measured={"outputs": str(scores), "targets": str(targets), "pairs": math.prod(spread or ())},
        where=call.at or loss.at or setup.place("model"),
        proof=Proof(_proof(call, spread)),
        repair=_align(call.function) if _same_numbers(call) or _column(call) else None,
        fix=Fix(does=_advice(scores, targets), safety=Safety.SAFE),
    )


def _values(call: LossCall) -> str:
    """Both values of the loss, as the end of a sentence; empty where four digits do not tell them apart."""
    if call.value is None or call.aligned_value is None:
        return ""
    crossed, aligned = f"{call.value:.4g}", f"{call.aligned_value:.4g}"
    return f": {crossed}, and {aligned} in one shape" if crossed != aligned else ""


def _proof(call: LossCall, spread: tuple[int, ...] | None) -> str:
    scores, targets = call.inputs.shape, call.targets.shape
    if call.failure is not None:
        return f"{scores} and {targets} hold {math.prod(scores):,} and {math.prod(targets):,} numbers"
    return (
        f"{scores} and {targets} are spread to {spread}: each output is compared with the targets of all rows, "
        f"and only one pair in {math.prod(spread or ()) // math.prod(scores):,} belongs together"
    )


def _crossed(call: LossCall) -> bool:
    """Whether the shapes spread over each other, or fit only in another shape."""
    scores, targets = call.inputs.shape, call.targets.shape
    if scores == targets or not scores or not targets or min(math.prod(scores), math.prod(targets)) < 2:
        return False
    if call.failure is not None:
        return _same_numbers(call)
    spread = _spread(scores, targets)
    # Where one side is merely repeated along the other (a weight a row, one target for all steps) it may be meant.
    return spread is not None and math.prod(spread) > max(math.prod(scores), math.prod(targets))


def _column(call: LossCall) -> bool:
    """Whether a class loss was given its (N) labels as a column (N, 1)."""
    scores, targets = call.inputs.shape, call.targets.shape
    return call.function in _CLASSES and call.failure is not None and targets == (*scores[:1], 1) != scores


def _same_numbers(call: LossCall) -> bool:
    """Whether both shapes are the same but for axes of one."""
    return [n for n in call.inputs.shape if n != 1] == [n for n in call.targets.shape if n != 1]


def _spread(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that broadcasting gives; None where it gives none."""
    longest = max(len(left), len(right))
    pairs = list(zip((1,) * (longest - len(left)) + left, (1,) * (longest - len(right)) + right))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple(max(a, b) for a, b in pairs)


def _advice(scores: tuple[int, ...], targets: tuple[int, ...]) -> str:
    if len(scores) == len(targets) + 1 and scores[-1] == 1:
        return "write outputs.squeeze(-1) in the loss"
    if len(targets) == len(scores) + 1 and targets[-1] == 1:
        return "write targets.squeeze(-1) in the loss"
    return f"give outputs {scores} and targets {targets} one shape"


def _align(function: str) -> Repair:
    def change(call: Call) -> Call:
        scores, targets = call["logits"], call["targets"]
        if call["function"] != function or tuple(scores.shape) == tuple(targets.shape):
            return call
        shape = tuple(scores.shape[:1]) if function in _CLASSES else tuple(scores.shape)
        return call.replace(targets=call.tensors.reshape(targets, shape))

    return Repair("give the targets the shape that goes with the outputs", Seam.LOSS, change)
