"""What a batch holds: labels that count, shifted tokens, images, rows that are all alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.stages import IGNORED_LABEL, EqualInputs, ImageFacts, LabelMaskFacts, real_positions
from trainwright.stages.batch import LabelCount

# Smaller planes are not images.
_SMALLEST_PLANE = 8
# Noise has 1.13 (2/sqrt(pi)); images of 8 x 8 up to 0.8.
_SMOOTH = 0.9
# The share of the positions that must agree; a text repeats its own tokens now and then.
_MOST = 0.9
Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""The inputs of a batch by name, each (rows, …), and its labels (rows, …)."""


def measure_label_mask(
    inputs: np.ndarray,
    labels: np.ndarray,
    attention: np.ndarray | None,
    *,
    pad_id: int | None,
    eos_id: int | None,
    mask_id: int | None = None,
) -> LabelMaskFacts:
    """Return how many positions of token labels (rows, length) count, given inputs of the same shape.

    An end-of-sequence token at a row's first real position does not end a text: it is a separator or a start token.
    """
    live = labels != IGNORED_LABEL
    padding = ~real_positions(inputs, attention, pad_id=pad_id, eos_id=eos_id)
    first = np.cumsum(~padding, axis=1) == 1
    ends = (inputs == eos_id) & ~padding & ~first if eos_id is not None else np.zeros_like(live)
    equal = bool(live.any() and np.array_equal(labels[live], inputs[live]))
    return LabelMaskFacts(
        live=int(live.sum()),
        rows=len(labels),
        masked_live=int((live & (inputs == mask_id)).sum()) if mask_id is not None else 0,
        positions=labels.size,
        eos_inputs=int(ends.sum()),
        eos_live=int((ends & live).sum()),
        pad_live=int((padding & live).sum()),
        equals_inputs=equal,
        shifted_by_one=not equal and _is_next_token(inputs, labels, live),
    )


def _is_next_token(inputs: np.ndarray, labels: np.ndarray, live: np.ndarray) -> bool:
    """Whether every label that counts is the next token of its row."""
    seen = live[:, :-1]
    return bool(seen.any() and np.array_equal(labels[:, :-1][seen], inputs[:, 1:][seen]))


def asks_for_next_token(tokens: np.ndarray, targets: np.ndarray) -> bool:
    """Whether targets (flat or not, with or without each row's last position) are the tokens (rows, length) shifted."""
    rows, length = tokens.shape
    if targets.size == rows * length:
        aimed = targets.reshape(rows, length)[:, :-1]
    elif targets.size == rows * (length - 1):
        aimed = targets.reshape(rows, length - 1)
    else:
        return False
    live = (aimed >= 0) & (aimed <= tokens.max())
    if not live.any():
        return False
    moved, unmoved = ((aimed == other)[live].mean() for other in (tokens[:, 1:], tokens[:, :-1]))
    return bool(moved > _MOST > unmoved)


def measure_label_count(labels: np.ndarray) -> LabelCount:
    """Return how many of a batch's labels count; labels are integers of shape (rows,) or (rows, …)."""
    live = labels.reshape(len(labels), -1) != IGNORED_LABEL
    return LabelCount(
        rows=len(live), positions=int(live.size), live=int(live.sum()), dead_rows=int((~live.any(axis=1)).sum())
    )


def measure_images(key: str, images: np.ndarray, taken_at: int | None = None) -> ImageFacts | None:
    """Return the roughness of images in their own layout and with the channels on the other axis.

    Args:
        images: (rows, channels, height, width), or channels last.
        taken_at: the axis on which the model expects the channels, 1 or 3; None if unknown, which counts as 1.
    """
    at = taken_at or 1
    other = 4 - at
    rows, channels = images.shape[0], images.shape[at]
    plane = [images.shape[i] for i in (1, 2, 3) if i != at]
    if not images.std():
        return None
    base: dict[str, Any] = {"key": key, "shape": images.shape, "taken_at": at}
    if channels in (2, 3, 4) and min(plane) >= _SMALLEST_PLANE:
        reread = images.reshape(rows, *((*plane, channels) if at == 1 else (channels, *plane)))
        return ImageFacts(roughness=_roughness(images, at), reread_roughness=_roughness(reread, other), **base)
    if taken_at is not None and _channels_elsewhere(images, at):
        return ImageFacts(
            roughness=_roughness(images, at), reread_roughness=_roughness(images, other), found_at=other, **base
        )
    return None


def _channels_elsewhere(images: np.ndarray, taken_at: int) -> bool:
    """Whether the other axis is as long as a channel axis and the two remaining axes form a smooth, square image."""
    other = 4 - taken_at
    plane = [n for i, n in enumerate(images.shape) if i not in (0, other)]
    if images.shape[other] not in (1, 3, 4) or min(plane) < _SMALLEST_PLANE:
        return False
    return plane[0] == plane[1] and _roughness(images, other) < _SMOOTH


def _roughness(images: np.ndarray, channels_at: int) -> float:
    """The mean absolute difference between neighbors along the image axes, in standard deviations."""
    axes = [axis for axis in (1, 2, 3) if axis != channels_at and images.shape[axis] > 1]
    steps = [np.abs(np.diff(images, axis=axis)).mean() for axis in axes]
    return float(np.mean(steps) / images.std())


def equal_inputs(batches: Sequence[Rows]) -> EqualInputs | None:
    """Return what all rows have in common; None if their inputs differ, or if an input has no axis for the rows."""
    first: dict[str, np.ndarray] = {}
    labels: set[bytes] = set()
    rows = 0
    for inputs, targets in batches:
        if not inputs or any(not v.ndim or len(v) != len(targets) or not len(v) for v in inputs.values()):
            return None
        first = first or {name: values[0] for name, values in inputs.items()}
        if inputs.keys() != first.keys() or not all(_repeats(v, first[name]) for name, v in inputs.items()):
            return None
        labels |= {row.tobytes() for row in np.ascontiguousarray(targets)}
        rows += len(targets)
    if not first:
        return None
    return EqualInputs(rows=rows, labels=len(labels), zero=not any(row.any() for row in first.values()))


def _repeats(values: np.ndarray, row: np.ndarray) -> bool:
    return values.shape[1:] == row.shape and bool((values == row).all())
