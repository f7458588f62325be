"""Stage 2, batch: what the loader actually passes to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trainwright.core import Facts, Failure, Stage
from trainwright.stages.tensor import TensorFacts


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
