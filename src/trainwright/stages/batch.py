"""Stage 2, batch: what the loader actually passes to the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwright.core import Facts, Failure, Stage
from trainwright.stages.dataset import IGNORED_LABEL
from trainwright.stages.tensor import TensorFacts

# Smaller planes are not images.
_SMALLEST_PLANE = 8
# Noise has 1.13 (2/sqrt(pi)); images of 8 x 8 up to 0.8.
_SMOOTH = 0.9
Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""The inputs of a batch by name, each (rows, …), and its labels (rows, …)."""


@dataclass(frozen=True, kw_only=True)
class LabelMaskFacts:
    """How many positions in a batch of token labels count in the loss."""

    live: int
    """Positions whose label is not -100."""
    rows: int
    eos_inputs: int = 0
    """Positions whose input is the end-of-sequence token, except padding and a row's first real position."""
    eos_live: int = 0
    """How many of them have a live label."""
    pad_live: int = 0
    """Padding positions with a live label."""
    masked_live: int = 0
    """Positions with a live label whose input is the tokenizer's mask token."""
    positions: int = 0
    equals_inputs: bool = False
    """The labels equal the inputs (for a causal model that shifts them itself)."""
    shifted_by_one: bool = False
    """The labels are the inputs, already shifted one position to the left."""


@dataclass(frozen=True, kw_only=True)
class LabelCount:
    """How many integer labels in one batch count in the loss."""

    rows: int
    positions: int
    live: int
    """Labels that are not -100."""
    dead_rows: int
    """Rows without any such label."""


@dataclass(frozen=True, kw_only=True)
class VocabularyFacts:
    """Whether the training set's token ids match the script's tokenizer and the model's checkpoint."""

    rows: int
    kept_share: float
    """Fraction of tokens that stay the same when a row is decoded and encoded again."""
    faithful_share: float
    """The same fraction for the re-encoded tokens: how well the tokenizer reproduces its own output."""
    framed: bool = False
    """The tokenizer starts every text with a special token."""
    first_share: float = 0.0
    """Share of rows that start with the most frequent first token."""
    first_is_special: bool = True
    """That token is a special token of the tokenizer."""
    checkpoint: str = ""
    """The checkpoint of the model's weights, if it is not the tokenizer's."""
    checkpoint_share: float | None = None
    """Fraction of tokens that mean the same to the checkpoint's own tokenizer; None if it has none."""
    checkpoint_kept_share: float | None = None
    """Like `kept_share`, but with the checkpoint's own tokenizer."""
    sample: str = ""
    """The beginning of a row, decoded."""


@dataclass(frozen=True, kw_only=True)
class EqualInputs:
    """Rows that all have the same inputs, as the model receives them in the first batches."""

    rows: int
    labels: int
    """How many different labels they have."""
    zero: bool
    """The inputs are zeros."""


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """A batch of images, and its roughness under two interpretations of the same memory.

    Roughness is the mean absolute difference between neighboring pixels, divided by the standard deviation. Photographs
    and drawings are far smoother than the same numbers in the wrong order.
    """

    key: str
    shape: tuple[int, ...]
    roughness: float
    """In the layout that the model expects: (rows, channels, height, width), or channels last."""
    reread_roughness: float
    """In the other layout: channels last, or channels first if the model expects channels last."""
    taken_at: int = 1
    """The dimension in which the model expects the channels: 1 or 3."""
    found_at: int | None = None
    """The dimension in which the batch has them, if it is the other one."""


@dataclass(frozen=True, kw_only=True)
class BatchFacts(Facts):
    """One training batch as the model will receive it, before it is moved to a device."""

    stage = Stage.BATCH
    failure: Failure | None = None
    rows: int = 0
    tensors: Mapping[str, TensorFacts] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    """Keys whose values are not tensors, with the type of each value."""
    label_key: str | None = None
    item_lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For list columns: the length of each row in the batch."""
    equal_rows_collate: bool | None = None
    """After a failure: the collator accepts a batch made of copies of any one row; None: no row reached it."""
    item_shapes: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """The distinct shapes of each such column, smallest first."""
    stacked_lengths: tuple[int, ...] = ()
    """After a failure in user code that was stacking rows into one tensor: the lengths of those rows."""
    forms_without: tuple[str, ...] = ()
    """After a failure: the columns of unequal lengths; without them, the batch can be formed."""
    item_columns: tuple[str, ...] = ()
    """The keys of the items that reach the collator (after the framework has dropped columns)."""
    dropped_columns: tuple[str, ...] = ()
    """Columns of the data set that the framework dropped because forward has no argument of that name."""
    collator: str = ""
    """The class or function that forms batches."""
    accepts: tuple[str, ...] = ()
    """Arguments that the model's forward takes."""
    accepts_any: bool = False
    """forward takes **kwargs."""
    padding_share: float | None = None
    """Share of positions that are padding, from the attention mask or the padding token."""
    has_attention_mask: bool = False
    pad_id: int | None = None
    eos_id: int | None = None
    vocabulary: int | None = None
    """Number of rows of the model's input embedding."""
    embedding: str = ""
    """That layer's name, if the model does not declare its input embedding."""
    token_key: str = "input_ids"
    """The key of the token ids."""
    largest_token: int | None = None
    tokenizer_size: int | None = None
    mask: LabelMaskFacts | None = None
    masks: tuple[LabelMaskFacts, ...] = ()
    """The same for each of the first batches."""
    label_counts: tuple[LabelCount, ...] = ()
    """One for each of the first batches, for integer labels."""
    padding_shares: tuple[float, ...] = ()
    """The padding share of each of the first batches."""
    weightless_rows: int = 0
    """Number of rows read if all of them have weight 0 in the loss; otherwise 0."""
    all_weightless: bool = False
    """These rows are the whole training set."""
    text_inputs: tuple[str, ...] = ()
    """Raw-text inputs that are fed to a layer that expects numbers."""
    first_layer: str = ""
    """That layer's class."""
    unmasked_zeros: float = 0.0
    """Share of positions that are trailing zeros, if the embedding does not mask them."""
    vocabulary_facts: VocabularyFacts | None = None
    images: ImageFacts | None = None
    equal_inputs: EqualInputs | None = None
    """None if the inputs of the rows differ, or if a row has no labels."""
    attended_padding: int = 0
    """Padding tokens at the ends of rows that the attention mask includes."""
    hidden_tokens: int = 0
    """Tokens other than padding that the attention mask excludes."""
    padding_tokens: int = 0
    """Padding tokens at the ends of rows, whatever the mask says."""
    collator_masks: bool = False
    """The collator made the attention mask: the rows it received have none, or a different one."""
    target_keys: tuple[str, ...] | None = None
    """The names of this batch's targets, if the framework separates inputs and targets; otherwise None."""
    targets_wanted_by: str = ""
    """The loss that needs these targets; empty if none is known."""
    targets_found: bool = False
    """A library's training step uses labels among the inputs as targets, and passes them to the model too."""
    made_floats: tuple[str, ...] = ()
    """Integer inputs that the model converts to floating-point numbers."""
    evaluation_tensors: Mapping[str, TensorFacts] = field(default_factory=dict)

    @property
    def labels(self) -> TensorFacts | None:
        """The label tensor."""
        return self.tensors.get(self.label_key) if self.label_key else None


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


def real_positions(
    inputs: np.ndarray, attention: np.ndarray | None, *, pad_id: int | None, eos_id: int | None = None
) -> np.ndarray:
    """Return which positions of token ids (rows, length) hold text: from the attention mask, or else from the padding.

    Without a mask, if the padding token is also the end-of-sequence token, the one next to the text counts as text.
    """
    if attention is not None:
        return np.asarray(attention != 0)
    if pad_id is None:
        return np.ones(inputs.shape, dtype=bool)
    is_pad = inputs == pad_id
    after = np.flip(np.cumprod(np.flip(is_pad, 1), axis=1), 1).astype(bool)
    before = np.cumprod(is_pad, axis=1).astype(bool)
    if pad_id == eos_id:
        after[:, 1:] &= after[:, :-1]
        after[:, 0] = False
        before[:, :-1] &= before[:, 1:]
    real: np.ndarray = ~(after | before)
    return real


def _is_next_token(inputs: np.ndarray, labels: np.ndarray, live: np.ndarray) -> bool:
    """Whether every label that counts is the next token of its row."""
    seen = live[:, :-1]
    return bool(seen.any() and np.array_equal(labels[:, :-1][seen], inputs[:, 1:][seen]))


# The share of the positions that must agree; a text repeats its own tokens now and then.
_MOST = 0.9


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
