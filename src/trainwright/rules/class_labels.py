"""Comparisons of labels with what a loss accepts: class numbers with the scores, targets with the range 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from trainwright.core import Finding, Fix, Proof, Repair, Role
from trainwright.rules.repairs import at_loss
from trainwright.stages import (
    CLASS_LOSSES,
    IGNORED_LABEL,
    DatasetFacts,
    ForwardFacts,
    LabelFacts,
    LossCall,
    LossFacts,
    SetupFacts,
    SplitFacts,
)
from trainwright.stages.loss import BINARY_LOSSES

# Noise on labels of 0 and 1 is a known technique (for discriminators, for example).
NOISE = 0.25


@dataclass(frozen=True)
class OutOfRange:
    """Labels of one set, some of which have no score."""

    split: str
    seen: list[int]
    """All distinct labels of the set, smallest first."""
    width: int
    """Number of scores per row."""
    row: str
    """The first row with such a label, as part of a sentence."""
    numbers: Mapping[int, int] | None
    """Each label's number when counted from 0, or the number for no label; None if there are too few scores."""
    for_binary_loss: bool
    """There is a single sigmoid score, and the labels are 0 and 1."""

    @property
    def are_unlabelled(self) -> bool:
        """Whether all labels but one are valid, and that one marks rows without a label."""
        return self.numbers is not None and len(self.numbers) < len(self.seen)


def labels_out_of_range(dataset: DatasetFacts, forward: ForwardFacts, loss: LossFacts) -> OutOfRange | None:
    """The first set with labels that have no score; None if the same numbers show another fault."""
    if binary_loss_out_of_range(loss) is not None:
        return None
    call, width = loss.call, loss.classes
    by_hand = call is None and _picked_outside(loss, forward)
    if by_hand and forward.output:
        width = forward.output.shape[-1]
    elif call is None or call.function not in CLASS_LOSSES or call.targets.is_float:
        return None
    if width is None:
        return None
    ignored = call.options.get("ignore_index", IGNORED_LABEL) if call else IGNORED_LABEL
    in_batch = [int(v) for v in call.target_values if v != ignored] if call else []
    for split in dataset.splits:
        labels = _census(split) if loss.targets_are_labels or by_hand else None
        if labels is None and split.name != "train":
            continue
        seen = sorted(int(v) for v in labels.census if v != ignored) if labels else in_batch
        if not seen or (seen[0] >= 0 and seen[-1] < width) or lacks_labels(labels):
            continue
        if set(in_batch) - set(seen) and all(0 <= v < width for v in in_batch):
            continue  # the loss gets numbers that are not in the data: they are renumbered on the way
        outside = next(v for v in seen if not 0 <= v < width)
        known = labels is not None and outside in labels.first_rows
        return OutOfRange(
            split=split.name,
            seen=seen,
            width=width,
            row=f", first in row {labels.first_rows[outside]}" if labels and known else "",
            numbers=_renumbered(seen, width, int(ignored)),
            for_binary_loss=call is not None and width == 1 and call.activation == "sigmoid" and set(seen) <= {0, 1},
        )
    return None


def binary_loss_out_of_range(loss: LossFacts) -> LossCall | None:
    """A binary cross-entropy with targets outside 0 to 1, ignoring rows that a weight may leave out."""
    call = next((c for c in loss.calls if c.function in BINARY_LOSSES), None)
    low, high = (call.targets.minimum, call.targets.maximum) if call else (None, None)
    if call is None or low is None or high is None or call.targets.non_finite:
        return None
    if low >= -NOISE and high <= 1 + NOISE:
        return None
    if prod(call.inputs.shape) != prod(call.targets.shape):  # that they do not fit is another fault
        return None
    if call.options.get("reduction", "mean") == "none" or call.options.get("has_weight"):
        return None
    return call


def _picked_outside(loss: LossFacts, forward: ForwardFacts) -> bool:
    """Whether a handwritten loss raised because it indexed a score beyond the C scores of a row (N, C)."""
    shape = forward.output.shape if forward.output else ()
    return loss.failure is not None and "out of bounds" in loss.failure.message and len(shape) == 2


def lacks_labels(labels: LabelFacts | None) -> bool:
    """Whether every label of a set is -1, as where the labels of a test set are kept secret."""
    return labels is not None and labels.kind == "class" and set(labels.census) == {-1}


def refuses_unlabelled(loss: LossFacts) -> bool:
    """Whether the loss raises on a label of -1."""
    call = loss.call
    return call is not None and call.function in CLASS_LOSSES and call.options.get("ignore_index", IGNORED_LABEL) != -1


def without_labels(dataset: DatasetFacts, setup: SetupFacts) -> Finding:
    """The finding of an evaluation set whose labels are all -1: it can be predicted, not evaluated."""
    held = dataset.evaluation.labels if dataset.evaluation else None
    total = sum(held.census.values()) if held else 0
    return Finding(
        message=f"the evaluation set has no labels: all {total} of them are -1, as in test sets whose labels are kept secret",
        measured={"evaluation_rows": total, "label": -1},
        where=setup.place(Role.EVAL_DATASET) or dataset.evaluation_place or setup.place(Role.EVAL_DATASET_MADE),
        proof=Proof(f"every one of {total} evaluation rows has the label -1, and no training row has it"),
        fix=Fix(does="evaluate on a set that has labels, such as the validation set; this one can only be predicted"),
    )


def _census(split: SplitFacts) -> LabelFacts | None:
    labels = split.labels
    return labels if labels and labels.kind in ("class", "tokens") and labels.census else None


def _renumbered(seen: list[int], width: int, ignored: int) -> dict[int, int] | None:
    if seen[0] >= 0 and not (seen[0] == 1 and seen[-1] == width):
        return None
    if len(seen) <= width:
        return {v: i for i, v in enumerate(seen)} if seen[0] < 0 else {v: v - 1 for v in seen}
    if seen[0] == -1 and len(seen) == width + 1 and seen[-1] < width:
        return {-1: ignored}
    return None


def rows_not_finite(loss: LossFacts) -> Proof | None:
    """If the loss did not raise: the rows whose losses are not finite, and what they have in common."""
    if loss.value is None or math.isfinite(loss.value) or not loss.row_losses:
        return None
    bad = [i for i, x in enumerate(loss.row_losses) if not math.isfinite(x)]
    labels = {loss.row_labels[i] for i in bad} if len(loss.row_labels) == len(loss.row_losses) else set()
    told = f": the rows with label {' or '.join(f'{x:g}' for x in sorted(labels))}" if labels else ""
    return Proof(
        f"no error is raised, but the loss is {loss.value}, because that of {len(bad)} of {len(loss.row_losses)} rows is{told}"
    )


def renumber(numbers: Mapping[int, int], functions: tuple[str, ...]) -> Repair:
    """Renumber the labels that these loss functions get."""
    said = ", ".join(f"{a} as {b}" for a, b in list(numbers.items())[:4])
    return at_loss(
        f"take label {said}{', …' if len(numbers) > 4 else ''}",
        functions,
        lambda call: call.replace(targets=call.tensors.renumbered(call["targets"], numbers)),
    )
