"""TW421 swapped-targets: in a model with several outputs, two losses receive each other's targets.

Why it matters: If the order of the targets differs from that of the outputs, one loss stops at numbers that are not
classes, or treats them as classes anyway, and the other learns class numbers as if they were measurements.
Evidence: A loss that expects class numbers got something else; the targets of another output are class numbers that it
accepts, and with the targets exchanged, both losses work.
Error: `Received a label value of`
Error: `Target … is out of bounds.`
Fix (safe): Give the targets in the order of the outputs, or as a dictionary keyed by the outputs' names.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, LossCall, LossFacts, SetupFacts, TensorFacts


@rule("TW421", Severity.ERROR)
def swapped_targets(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A class loss whose targets are not class numbers, although another output's targets are."""
    keys = batch.target_keys or ()
    if len(keys) != len(loss.outputs) or len(keys) < 2:
        return
    for number, call in enumerate(loss.calls[: len(keys)]):
        if not call.takes_indices or not call.targets.is_float:
            continue
        fitting = [i for i, key in enumerate(keys) if i != number and _fits(call, batch.tensors.get(key))]
        if len(fitting) == 1:
            yield _finding(call, keys[number], keys[fitting[0]], loss, setup)
            return


def _fits(call: LossCall, targets: TensorFacts | None) -> bool:
    """Whether targets are class numbers that a loss accepts."""
    if targets is None or not targets.is_integer or targets.minimum is None or targets.maximum is None:
        return False
    return targets.minimum >= 0 and targets.maximum < call.inputs.shape[-1]


def _finding(call: LossCall, given: str, other: str, loss: LossFacts, setup: SetupFacts) -> Finding:
    low, high = call.targets.minimum or 0.0, call.targets.maximum or 0.0
    return Finding(
        message=f"{call.own_name or call.function} expects class numbers 0 to {call.inputs.shape[-1] - 1}, but gets {given}, "
        f"which ranges from {low:.3g} to {high:.3g} and is not integer; {other} holds such class numbers, but goes to another loss",
        measured={"given": given, "fitting": other, "outputs": ", ".join(loss.outputs)},
        where=setup.place(Role.LABELS, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"the loss raised {loss.failure}") if loss.failure else None,
        repair=Repair(
            f"exchange {given} and {other}",
            Seam.BATCH,
            lambda batch: batch.replace(**{given: batch[other], other: batch[given]}),
        ),
        fix=Fix(
            does=f"give the targets in the order of the outputs ({', '.join(loss.outputs)}), or as a dictionary by "
            "these names",
            safety=Safety.SAFE,
        ),
    )
