"""TW425 binary-targets-out-of-range: a binary cross-entropy gets targets outside 0 to 1.

Why it matters: No error is raised. For such a target the loss has no minimum: it keeps falling below zero, and nothing
is learned.
Evidence: The smallest and largest target passed to the loss.
Fix (unsafe): Number the two classes 0 and 1, or scale the targets to the range 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.class_labels import BINARY, binary_loss_out_of_range, renumber
from trainwright.stages import LossFacts, SetupFacts


@rule("TW425", Severity.ERROR, after="TW401")
def binary_targets_out_of_range(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Targets for which a binary cross-entropy has no minimum."""
    call = binary_loss_out_of_range(loss)
    if call is None:
        return
    low, high = call.targets.minimum or 0.0, call.targets.maximum or 0.0
    does, repair = _brought(sorted(call.target_values), low, high)
    yield Finding(
        message=f"the targets range from {low:g} to {high:g}, but a binary cross-entropy expects 0 to 1",
        measured={"smallest_label": low, "largest_label": high},
        where=setup.place(Role.LABELS_MADE, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof("the loss of a target outside 0 to 1 has no minimum: it keeps falling as the score grows"),
        repair=repair,
        fix=Fix(does=does, safety=Safety.UNSAFE if repair else Safety.MANUAL),
    )


def _brought(values: list[float], low: float, high: float) -> tuple[str, Repair | None]:
    """How to bring the targets into range: a description and, if possible, a repair."""
    are_classes = all(v == int(v) for v in values)
    if are_classes and len(values) == 2:
        numbers = {int(v): i for i, v in enumerate(values)}
        does = f"number the two classes 0 and 1, not {values[0]:g} and {values[1]:g}"
        return does, renumber(numbers, BINARY)
    if are_classes and len(values) > 2:
        return (f"give the model an output for each of the {len(values)} classes, and use a cross-entropy", None)
    way = f"divide by {high:g}" if low >= 0 else f"add {-low:g} and divide by {high - low:g}"
    rather = "" if low >= 0 else ", or use a linear output and the squared error for targets of both signs"
    return f"scale the targets to 0 to 1: {way}{rather}", _to_unit_range(low, high)


def _to_unit_range(low: float, high: float) -> Repair:
    def change(call: Call) -> Call:
        if call["function"] not in BINARY:
            return call
        start = min(low, 0.0)
        targets = call.tensors.cast(call["targets"], "float32")
        return call.replace(targets=(targets - start) / (high - start))

    return Repair("scale the targets of the binary cross-entropy to 0 to 1", Seam.LOSS, change)
