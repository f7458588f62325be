"""What a Trainer does to rows before batching, and what its collator accepts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.adapters.torch.vocabulary import SAMPLED_ROWS
from trainwright.probes.splits.values import evenly
from trainwright.tensors.items import length

_TOKENS = "input_ids"


def changes_of_rows(trainer: Any, recorder: Any = None, batch: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What becomes of rows on their way into a batch, as fields of BatchFacts.

    Args:
        recorder: the collator that has made the batch, and keeps its items.
    """
    collator = trainer.data_collator
    return {
        "dropped_columns": dropped_columns(trainer),
        "collator": getattr(collator, "__name__", type(collator).__name__),
        "collator_masks": recorder is not None and batch is not None and collator_masks(recorder, batch),
    }


def dropped_columns(trainer: Any) -> tuple[str, ...]:
    """Columns that the Trainer removes because the model's forward does not name them."""
    if not trainer.args.remove_unused_columns:
        return ()
    with contextlib.suppress(Exception):  # rows that cannot be read are reported by the dataset stage
        data = trainer.train_dataset
        columns = getattr(data, "column_names", None) or tuple(_first_row(data) or ())
        trainer._set_signature_columns_if_needed()
        return tuple(c for c in columns if c not in trainer._signature_columns)
    return ()


def _first_row(data: Any) -> Mapping[str, Any] | None:
    """The first row of a map-style set whose rows are mappings; others lose no columns."""
    row = data[0] if length(data) else None
    return as_mapping(row) if hasattr(row, "keys") else None


def collator_masks(recorder: RecordingCollator, batch: Mapping[str, Any]) -> bool:
    """Whether the collator created the batch's attention mask: its rows have none, or another one."""
    mask: Any = batch.get("attention_mask")
    if not recorder.items or not hasattr(mask, "tolist") or np.ndim(mask) != 2:
        return False
    own = [as_mapping(i).get("attention_mask") for i in recorder.items]
    if any(m is None or np.ndim(m) != 1 for m in own):
        return True
    return any(_trimmed(m) != _trimmed(row) for m, row in zip(own, mask.tolist()))


def _trimmed(mask: Any) -> str:
    """A mask without zeros at its ends."""
    return "".join("1" if m else "0" for m in np.asarray(mask)).strip("0")


def token_rows(data: Any) -> list[list[int]]:
    """Token ids of evenly spaced rows of a map-style set; empty if it has none."""
    count = length(data)
    if not count:
        return []
    with contextlib.suppress(Exception):  # rows that cannot be read are reported by the dataset stage
        chosen = evenly(range(count), SAMPLED_ROWS)
        first = as_mapping(data[0])
        if _TOKENS not in first or np.ndim(first[_TOKENS]) != 1:
            return []
        masks = "attention_mask" in first
        rows = [as_mapping(data[i]) for i in chosen]
        return [_real(r[_TOKENS], r["attention_mask"] if masks else None) for r in rows]
    return []


def _real(tokens: Any, mask: Any) -> list[int]:
    ids = np.asarray(tokens)
    return [int(i) for i in (ids[np.asarray(mask) != 0] if mask is not None else ids)]
