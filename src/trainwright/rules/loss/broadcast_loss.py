"""TW407 broadcast-loss: outputs and targets of different shapes were broadcast, pairing each row with every row.

Why it matters: (N, 1) outputs against (N) targets give N x N differences and no error: the best that the model can
learn is the mean of the targets.
Evidence: the two shapes at the loss call; aligned, the loss has another value. Of a loss written by hand: it stays the same
when the targets of the rows are exchanged, and with the targets in the other shape it is another one, that does not.
Where each row's one target is compared with the output at every step of a sequence, the last step alone is learnt
better. Of torch's class losses that raised: axes of 1 that a pooling left behind the classes. Of a loss given to Keras's
compile: over some rows it is the mean over all pairs of an output and a target.
Error: `The size of tensor a … must match the size of tensor b`
Error: `Using a target size … that is different to the input size`
Error: `Target size … must be the same as input size …`
Error: `0D or 1D target tensor expected, multi-target not supported`
Error: `required broadcastable shapes`
Error: `Incompatible shapes for broadcasting`
Error: `logits and labels must have the same shape`
Error: `Arguments `target` and `output` must have the same shape`
Fix (safe): give both the same shape (squeeze(-1) the outputs, or unsqueeze(-1) the targets).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import Diagnosis, rule
from trainwright.core.trial import Trial
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.stages.setup import SetupFacts

_ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                "binary_cross_entropy_with_logits")  # fmt: skip
_CLASSES = ("cross_entropy", "nll_loss")
_POOLED = "put a Flatten or a global pooling layer between the last convolution and the head"
_LAST = "give the loss the output of the last step (return_sequences=False, or outputs[:, -1])"


@rule("TW407", Severity.ERROR)
def broadcast_loss(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Diagnosis:
    """An element-wise loss over more elements than either side has, or over shapes that do not fit."""
    stopped = next((c for c in loss.calls if c.failure is not None and _sequence_for_rows(c, forward)), None)
    if stopped is not None:
        yield _each_step(stopped, loss, setup, forward)
        return
    if (pooled := next((c for c in loss.calls if _spare_axes(c)), None)) is not None:
        yield _left_by_pooling(pooled, loss, setup)
        return
    call = next((c for c in loss.calls if (c.function in _ELEMENTWISE and _crossed(c)) or _column(c)), None)
    if call is None:
        yield from _by_hand(loss, setup)
        yield from _over_pairs(loss, setup)
        yield from _repeated_targets(loss, setup, forward)
        return
    scores, targets = call.inputs.shape, call.targets.shape
    spread = _spread(scores, targets)
    what = f"compares {math.prod(spread):,} pairs" if spread and not call.failure else "raised"
    yield Finding(
        message=f"{call.function} of outputs {scores} and targets {targets} {what}, for {targets[0]} rows"
        + _values(call),
        measured={"outputs": str(scores), "targets": str(targets), "pairs": math.prod(spread or ())},
        where=(_head(forward) if _per_step(call) else None) or call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(_proof(call, spread)),
        repair=_align(call.function)
        if _same_numbers(call) or _column(call)
        else _last_step(call.function)
        if _per_step(call)
        else None,
        fix=Fix(does=_LAST if _per_step(call) else _advice(scores, targets), safety=Safety.SAFE),
    )


def _by_hand(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss that no function of a library's computes, and that does not change when the rows' targets are exchanged."""
    crossed = loss.crossed
    if crossed is None:
        return
    shape, aligned, rows = crossed.shape, crossed.aligned_shape, crossed.shape[0]
    now, in_shape = f"{crossed.value:.4g}", f"{crossed.aligned_value:.4g}"
    values = f": {now}, and {in_shape} with the targets as {aligned}" if now != in_shape else ""
    yield Finding(
        message=f"the loss of targets {shape} compares {rows * rows:,} pairs, for {rows} rows{values}",
        measured={
            "targets": str(shape),
            "aligned": str(aligned),
            "pairs": rows * rows,
            "loss": crossed.value,
            "aligned_loss": crossed.aligned_value,
        },
        where=crossed.where or setup.place(Role.COMPUTE_LOSS, Role.TRAIN_STEP, Role.LOSS, Role.MODEL),
        proof=Proof(
            f"with the targets of the rows exchanged the loss is {crossed.exchanged_value:.6g}, and {crossed.value:.6g} "
            f"before: each output is compared with the targets of all rows; as {aligned} their order matters"
        ),
        repair=Repair("give the targets the outputs' shape", Seam.BATCH, _reshape(aligned[1:]))
        if crossed.where is None
        else Repair("give the targets the outputs' shape", Seam.PAIRING, _reshape_pair(shape, aligned)),
        fix=Fix(
            does=f"give the loss outputs and targets of one shape: targets as {aligned}", safety=Safety.SAFE
        ),
    )


def _over_pairs(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss of the user's own given to compile: Keras aligns (N) with (N, 1) for its own alone."""
    paired = loss.paired
    if paired is None:
        return
    rows = paired.rows
    yield Finding(
        message=f"the loss compares each output with the targets of all rows: for {rows} rows it is {paired.value:.4g}, the mean "
        f"over all {rows * rows} pairs; row by row it is {paired.by_row:.4g}",
        measured={"rows": rows, "pairs": rows * rows, "loss": paired.value, "loss_by_row": paired.by_row},
        where=loss.at or setup.place(Role.LOSS, Role.MODEL),
        proof=Proof(
            f"the loss of {rows} rows is the mean of the {rows * rows} losses of single outputs and targets, to rounding"
        ),
        fix=Fix(
            does="give both sides one shape within the loss: y_true = ops.reshape(y_true, ops.shape(y_pred))"
        ),
    )


def _reshape(rest: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        return call.replace(y=call.tensors.reshape(call["y"], (-1, *rest)))

    return change


def _reshape_pair(targets: tuple[int, ...], outputs: tuple[int, ...]) -> Callable[[Call], Call]:
    def change(call: Call) -> Call:
        left, right = call["left"], call["right"]
        if len(left.shape) == len(targets) and len(right.shape) == len(outputs):
            return call.replace(left=call.tensors.reshape(left, tuple(right.shape)))
        if len(right.shape) == len(targets) and len(left.shape) == len(outputs):
            return call.replace(right=call.tensors.reshape(right, tuple(left.shape)))
        return call

    return change


def _each_step(call: LossCall, loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Finding:
    """A loss that stopped at an output for every step of a sequence or place of an image, where each row has one target."""
    scores = forward.output.shape if forward and forward.output else call.inputs.shape
    steps, is_image = math.prod(scores[1:-1]), len(scores) == 4
    of = "places of an image" if is_image else "steps of a sequence"
    return Finding(
        message=f"{call.own_name or call.function} is given the outputs at all {steps} {of} {scores}, and one target a row "
        f"{call.targets.shape}: it raised",
        measured={"outputs": str(scores), "targets": str(call.targets.shape), "steps": steps},
        where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(
            f"for {scores[0]} rows there are {scores[0] * steps} outputs and {scores[0]} targets; {call.failure}"
        ),
        repair=None if is_image else _last_step(call.function),
        fix=Fix(does=_POOLED, safety=Safety.MANUAL) if is_image else Fix(does=_LAST, safety=Safety.UNSAFE),
    )


def _left_by_pooling(call: LossCall, loss: LossFacts, setup: SetupFacts) -> Finding:
    """Scores (N, C, 1, …) that a pooling over all places gave, of a class loss that then wants targets (N, 1, …)."""
    scores, targets, function = call.inputs.shape, call.targets.shape, call.function

    def change(call: Call) -> Call:
        if call["function"] != function or tuple(call["logits"].shape[2:]) != scores[2:]:
            return call
        return call.replace(logits=call.tensors.reshape(call["logits"], (-1, scores[1])))

    return Finding(
        message=f"{function} of outputs {scores} and targets {targets} raised: behind the {scores[1]} classes are axes of 1",
        measured={"outputs": str(scores), "targets": str(targets), "classes": scores[1]},
        where=call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(
            f"as {scores[:2]} the outputs have a row of scores for each of the {scores[0]} targets; {call.failure}"
        ),
        repair=Repair("give the loss the outputs without axes of 1", Seam.LOSS, change),
        fix=Fix(
            does="flatten the outputs: nn.Flatten() behind the pooling, or outputs.flatten(1)",
            safety=Safety.SAFE,
        ),
    )


def _repeated_targets(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Diagnosis:
    """One target a row compared with an output at every step of a sequence, where the last step alone is learnt better."""
    call = next(
        (c for c in loss.calls if c.function in _ELEMENTWISE and not c.failure and _per_step(c)), None
    )
    if (
        call is None
        or forward is None
        or forward.output is None
        or len(forward.output.shape) != 3
        or forward.output.shape[2] != 1
    ):
        return
    outcome = yield Trial(change=_last_step(call.function), steps=16)
    if not outcome.clearly_better:
        return
    rows, steps = call.inputs.shape[:2]
    yield Finding(
        message=f"{call.function} compares the outputs at all {steps} steps of a sequence {forward.output.shape} with one "
        f"target a row: {rows * steps:,} pairs for {rows} rows",
        measured={
            "outputs": str(forward.output.shape),
            "targets": str(call.targets.shape),
            "pairs": rows * steps,
        },
        where=_head(forward) or call.at or loss.at or setup.place(Role.MODEL),
        proof=outcome,
        repair=_last_step(call.function),
        fix=Fix(does=_LAST, safety=Safety.UNSAFE),
    )


def _per_step(call: LossCall) -> bool:
    """Whether there is one target for all steps of a row."""
    scores, targets = call.inputs.shape, call.targets.shape
    return (
        len(scores) in (2, 3)
        and scores[1] > 1
        and math.prod(targets) == scores[0]
        and math.prod(scores[2:]) == 1
    )


def _sequence_for_rows(call: LossCall, forward: ForwardFacts | None) -> bool:
    """Whether the model's answer has an axis of steps that the targets lack.

    A class loss that does not say what targets it takes is torch's, whose classes are on axis 1 and not on the last.
    """
    if call.function in _CLASSES and call.takes_indices is None:
        return False
    scores = forward.output.shape if forward and forward.output else ()
    if len(scores) not in (3, 4) or scores[1] < 2:
        return False
    if call.takes_indices is not None and not call.takes_indices:
        return call.targets.shape == (scores[0], scores[-1])
    one_output = call.takes_indices or scores[-1] == 1
    return one_output and call.targets.shape in ((scores[0],), (scores[0], 1))


def _head(forward: ForwardFacts | None) -> Place | None:
    """The line of the layer, but the head, that last gave a sequence of vectors."""
    last = forward.head.name if forward and forward.head else ""
    several = [
        m.where
        for m in (forward.modules if forward else ())
        if m.leaf and m.output and len(m.output.shape) in (3, 4) and m.output.shape[-1] > 1 and m.name != last
    ]
    return several[-1] if several else None


def _last_step(function: str) -> Repair:
    def change(call: Call) -> Call:
        scores = call["logits"]
        if call["function"] != function or len(scores.shape) != 3:
            return call
        return call.replace(logits=scores[:, -1])

    return Repair("compare the last step's output alone", Seam.LOSS, change)


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
    if len(scores) == 1 and targets == (*scores, *scores):
        return True  # the pairs were made on the way to the loss, as in rewards + values.unsqueeze(1)
    spread = _spread(scores, targets)
    # Where one side is merely repeated along the other (a weight a row, one target for all steps) it may be meant.
    return spread is not None and math.prod(spread) > max(math.prod(scores), math.prod(targets))


def _column(call: LossCall) -> bool:
    """Whether a class loss was given its (N) labels as a column (N, 1)."""
    scores, targets = call.inputs.shape, call.targets.shape
    return call.function in _CLASSES and call.failure is not None and targets == (*scores[:1], 1) != scores


def _spare_axes(call: LossCall) -> bool:
    """Whether torch's class loss was given scores (N, C, 1, …) and one label a row."""
    scores, targets = call.inputs.shape, call.targets.shape
    if call.function not in _CLASSES or call.takes_indices is not None or call.failure is None:
        return False
    return len(scores) > 2 and math.prod(scores[2:]) == 1 < scores[1] and targets == scores[:1]


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
