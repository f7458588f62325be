"""Whether a user's handwritten loss compares each output with the targets of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from trainwright.adapters.base import ActiveRepairs
from trainwright.core import Call, Repair, Seam
from trainwright.probes.losses import crosses_rows
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.torch.all_pairs import Pairing
from trainwright.stages import CrossedTargets


class _Stepping(Protocol):
    active: ActiveRepairs

    def loss_of(self, batch: Any) -> float:
        """The loss of a batch with the repairs in force, always with the same weights and random numbers."""


def crossed_targets(pairings: Sequence[Pairing], training: _Stepping, batches: Sequence[Any]) -> CrossedTargets | None:
    """The loss of a batch with its rows' targets permuted, and in the outputs' shape.

    None if no operation broadcast the two against each other, or if it matters which target a row is compared with.
    That is tested with outputs shifted toward the targets: those of an untrained model may all be alike.
    """
    if not pairings:
        return None
    pairing = pairings[0]

    def loss(*, moved: bool = False, exchanged: bool = False, aligned: bool = False) -> float:
        change = _change(pairing, moved, exchanged, aligned)
        return _loss_with(training, batches[0], Repair("exchange the targets of the rows", Seam.PAIRING, change))

    with tolerated():  # a step that cannot be repeated tells nothing
        if len(batches) > 1 and _same_targets(pairing, training, batches):
            return None
        now, exchanged = loss(moved=True), loss(moved=True, exchanged=True)
        in_shape, in_shape_exchanged = (loss(moved=True, exchanged=e, aligned=True) for e in (False, True))
        if not crosses_rows(now, exchanged, in_shape, in_shape_exchanged):
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


def _same_targets(pairing: Pairing, training: _Stepping, batches: Sequence[Any]) -> bool:
    """Whether the outputs of two batches meet the same numbers: a grid, not their targets."""
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
    """The change that a repair makes to the two sides of such an operation."""

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


def _loss_with(training: _Stepping, batch: Any, repair: Repair) -> float:
    training.active.tried = [repair]
    try:
        return training.loss_of(batch)
    finally:
        training.active.tried = []
