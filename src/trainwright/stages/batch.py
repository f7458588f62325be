"""Stage 2, batch: what the loader really hands to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trainwright.core.finding import Failure
from trainwright.core.stage import Facts, Stage
from trainwright.stages.tensor import TensorFacts


@dataclass(frozen=True, kw_only=True)
class LabelMaskFacts:
    """How many positions of a batch of token labels count in the loss."""

    positions: int
    live: int
    """Positions whose label is not -100."""
    dead_rows: int
    """Rows with no live position."""
    rows: int
    eos_inputs: int = 0
    """Positions whose input is the end-of-sequence token, where it is attended to or ends the text."""
    eos_live: int = 0
    """Of those, positions whose label is live."""
    pad_inputs: int = 0
    """Padding positions."""
    pad_live: int = 0
    """Of those, positions whose label is live."""
    equals_inputs: bool = False
    """The labels are the inputs (a causal model that shifts by itself)."""
    shifted_by_one: bool = False
    """The labels are already the inputs moved one to the left."""


@dataclass(frozen=True, kw_only=True)
class BatchFacts(Facts):
    """One training batch as the model will be given it, before it goes to a device."""

    stage = Stage.BATCH
    failure: Failure | None = None
    rows: int = 0
    tensors: Mapping[str, TensorFacts] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    """Keys whose values are not tensors, with their type."""
    label_key: str | None = None
    item_lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Lengths of each column over the rows that were to be collated, for columns that are lists."""
    equal_rows_collate: bool | None = None
    """After a failure: the collator takes each of the rows when it is repeated; None: no row reached it."""
    item_columns: tuple[str, ...] = ()
    """The keys of the items that reach the collator (after the framework dropped columns)."""
    dropped_columns: tuple[str, ...] = ()
    """Columns of the data set that the framework dropped, because forward does not name them."""
    collator: str = ""
    """What forms batches: the class or function's name."""
    collator_where: str = ""
    accepts: tuple[str, ...] = ()
    """Arguments that the model's forward takes."""
    accepts_any: bool = False
    """forward takes **kwargs."""
    required: tuple[str, ...] = ()
    """Arguments of forward without a default."""
    padding_share: float | None = None
    """Share of positions that are padding, from the attention mask or the padding token."""
    has_attention_mask: bool = False
    pad_id: int | None = None
    eos_id: int | None = None
    vocabulary: int | None = None
    """Rows of the model's input embedding."""
    largest_token: int | None = None
    tokenizer_size: int | None = None
    unknown_share: float | None = None
    """Share of real tokens that are the unknown token."""
    mask: LabelMaskFacts | None = None
    decoded: tuple[str, ...] = ()
    """The first rows, decoded with the tokenizer in reach."""
    evaluation_failure: Failure | None = None
    evaluation_tensors: Mapping[str, TensorFacts] = field(default_factory=dict)

    @property
    def labels(self) -> TensorFacts | None:
        """The label tensor."""
        return self.tensors.get(self.label_key) if self.label_key else None


def measure_label_mask(inputs: np.ndarray, labels: np.ndarray, attention: np.ndarray | None, *,
                       pad_id: int | None, eos_id: int | None, ignored: int = -100) -> LabelMaskFacts:  # fmt: skip
    """Return how many positions of token labels (rows, length) count, against inputs of the same shape."""
    live = labels != ignored
    if attention is not None:
        padding = attention == 0
    else:
        padding = _trailing(inputs, pad_id)
    is_eos = (inputs == eos_id) if eos_id is not None else np.zeros_like(live)
    # With pad = EOS only the first of the trailing run is a true end of the text, when no mask tells.
    true_eos = is_eos & ~padding
    shifted = inputs.shape[1] > 1 and bool(
        np.array_equal(labels[:, :-1][live[:, :-1]], inputs[:, 1:][live[:, :-1]]) and live[:, :-1].any()
    )
    return LabelMaskFacts(
        positions=int(labels.size),
        live=int(live.sum()),
        dead_rows=int((~live.any(axis=1)).sum()),
        rows=len(labels),
        eos_inputs=int(true_eos.sum()),
        eos_live=int((true_eos & live).sum()),
        pad_inputs=int(padding.sum()),
        pad_live=int((padding & live).sum()),
        equals_inputs=bool(live.any() and np.array_equal(labels[live], inputs[live])),
        shifted_by_one=shifted and not bool(np.array_equal(labels[live], inputs[live])),
    )


def _trailing(inputs: np.ndarray, pad_id: int | None) -> np.ndarray:
    """Positions of the run of padding tokens at the end of each row, but for the first of the run."""
    if pad_id is None:
        return np.zeros(inputs.shape, dtype=bool)
    is_pad = inputs == pad_id
    trailing = np.flip(np.cumprod(np.flip(is_pad, 1), axis=1), 1).astype(bool)
    return trailing
