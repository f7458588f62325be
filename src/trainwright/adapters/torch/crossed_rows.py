"""Whether a loss that the user computes by hand compares each output with the targets of all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from trainwright.adapters.base import Change
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.torch.all_pairs import Pairing
from trainwright.stages.loss import CrossedTargets

# A mean over the same pairs in another order differs by rounding alone.
_SAME_WITHIN = 1e-5
# Another shape that matters changes the loss of an untrained model by some hundredths at least.
_OTHER_WITHIN = 1e-3


class Steps(Protocol):
    """What is needed of the training."""

    change: Change

    def loss_of(self, batch: Any) -> float:
        """The loss of a batch, always with the same random numbers."""


def crossed_targets(
    pairings: Sequence[Pairing], training: Steps, batches: Sequence[Any]
) -> CrossedTargets | None:
    """What the loss of a batch is with the targets of its rows exchanged, and in the outputs' shape.

    None where no operation spread the two over each other, or where it matters which row a target is compared with.
    That is tried with outputs that were moved among the targets: those of an untrained model may all be alike.
    """
    if not pairings:
        return None
    pairing = pairings[0]

    def loss(*, moved: bool = False, exchanged: bool = False, aligned: bool = False) -> float:
        change = _change(pairing, moved, exchanged, aligned)
        return _loss_with(
            training, batches[0], Repair("exchange the targets of the rows", Seam.PAIRING, change)
        )

    with tolerated():  # a step that cannot be repeated shows nothing here
        if len(batches) > 1 and _same_targets(pairing, training, batches):
            return None
        now, exchanged = loss(moved=True), loss(moved=True, exchanged=True)
        in_shape, in_shape_exchanged = (loss(moved=True, exchanged=e, aligned=True) for e in (False, True))
        if not all(map(math.isfinite, (now, exchanged, in_shape, in_shape_exchanged))):
            return None
        if _differ(now, exchanged) > _SAME_WITHIN:
            return None
        if min(_differ(now, in_shape), _differ(in_shape, in_shape_exchanged)) <= _OTHER_WITHIN:
            return None
        return CrossedTargets(
            shape=pairing.targets,
            aligned_shape=pairing.outputs,
            value=loss(),
            exchanged_value=loss(exchanged=True),
            aligned_value=loss(aligned=True),
            where=pairing.where,
        )
    return None


def _same_targets(pairing: Pairing, training: Steps, batches: Sequence[Any]) -> bool:
    """Whether what the outputs of two batches meet are the same numbers: a grid, not their targets."""
    met: list[torch.Tensor] = []

    def note(call: Call) -> Call:
        shapes = (tuple(call["left"].shape), tuple(call["right"].shape))
        if pairing.targets in shapes:
            met.append(call["left" if shapes[0] == pairing.targets else "right"].detach().clone())
        return call

    found = []
    for batch in batches[:2]:
        met.clear()
        _loss_with(training, batch, Repair("note the targets", Seam.PAIRING, note))
        found += met[:1]
    return len(found) == 2 and torch.equal(*found)


def _change(pairing: Pairing, moved: bool, exchanged: bool, aligned: bool) -> Callable[[Call], Call]:
    """What a repair makes of the two sides of such an operation."""

    def change(call: Call) -> Call:
        left, right = call["left"], call["right"]
        if (tuple(left.shape), tuple(right.shape)) == (pairing.outputs, pairing.targets):
            return call.replace(**dict(zip(("left", "right"), sides(left, right))))
        if (tuple(right.shape), tuple(left.shape)) == (pairing.outputs, pairing.targets):
            return call.replace(**dict(zip(("right", "left"), sides(right, left))))
        return call

    def sides(outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if moved:
            spread = float(targets.float().std()) or 1.0
            steps = torch.linspace(-spread, spread, len(outputs), dtype=outputs.dtype, device=outputs.device)
            steps = steps + (targets.float().mean() - outputs.detach().float().mean()).to(outputs.dtype)
            outputs = outputs + steps.reshape(-1, *[1] * (outputs.dim() - 1))
        targets = targets.flip(0) if exchanged else targets
        return outputs, targets.reshape(pairing.outputs) if aligned else targets

    return change


def _loss_with(training: Steps, batch: Any, repair: Repair) -> float:
    training.change.tried = [repair]
    try:
        return training.loss_of(batch)
    finally:
        training.change.tried = []


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-12)
