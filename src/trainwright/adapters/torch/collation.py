"""The rows that reach a collator, and which of them it accepts if it fails on a batch."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch.utils.data import default_collate

from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.torch.stacking import lengths_of, watching_stacks
from trainwright.tensors.items import length


def collator_facts(recorder: RecordingCollator, batch: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The collator's name, and of the rows that reached it the keys, and the lengths of those that are lists.

    Args:
        batch: what it has made of them.
    """
    collator = recorder.collator
    facts: dict[str, Any] = {"collator": getattr(collator, "__name__", type(collator).__name__)}
    if not recorder.items:
        return facts
    items = [as_mapping(i) for i in recorder.items]
    lists = [k for k in items[0] if all(length(i.get(k)) is not None and not isinstance(i[k], str) for i in items)]
    return {
        **facts,
        "collator_masks": batch is not None and _makes_mask(recorder, batch),
        "item_columns": tuple(items[0]),
        "item_lengths": {k: tuple(length(i[k]) or 0 for i in items) for k in lists},
        "item_shapes": {k: tuple(sorted({_shape(i[k]) for i in items})) for k in lists},
    }


def _shape(value: Any) -> tuple[int, ...]:
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None else (length(value) or 0,)


def forms_without(recorder: RecordingCollator) -> tuple[str, ...]:
    """After a failure: the columns of unequal length without which the collator works."""
    if not recorder.items or not all(hasattr(i, "keys") for i in recorder.items):
        return ()
    return tuple(name for name in _ragged(recorder.items) if _collates(recorder, name))


def _ragged(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name in list(items[0]):
        with contextlib.suppress(TypeError, KeyError):  # numbers have no length
            if len({len(i[name]) for i in items}) > 1:
                yield name


def _collates(recorder: RecordingCollator, left_out: str) -> bool:
    rows = [{k: copy.copy(v) for k, v in i.items() if k != left_out} for i in recorder.items]
    try:
        recorder.collator(rows)
    except Exception:  # then that column was not the cause
        return False
    return True


def collates_equal_rows(recorder: RecordingCollator) -> bool | None:
    """Whether the collator that failed on a batch accepts each of its rows when repeated."""
    if not recorder.items:
        return None
    try:
        for item in recorder.items:
            recorder.collator([copy.copy(item), copy.copy(item)])
    except Exception:  # then differences between rows are not the cause
        return False
    return True


def stacked_lengths(recorder: RecordingCollator) -> tuple[int, ...]:
    """After a failure: the lengths of the rows that the collate function was stacking when it raised."""
    found: list[tuple[int, ...]] = []
    with tolerated(), watching_stacks(lambda rows: found.append(lengths_of(rows))):
        recorder.collator(list(recorder.items))
    return found[-1] if found else ()


def _makes_mask(recorder: RecordingCollator, batch: Mapping[str, Any]) -> bool:
    """Whether the collator created the batch's attention mask: its rows have none, or another one."""
    mask: Any = batch.get("attention_mask")
    if not hasattr(mask, "tolist") or np.ndim(mask) != 2:
        return False
    if recorder.collator is default_collate or not _is_of(recorder.items, batch):
        return False
    own = [as_mapping(i).get("attention_mask") for i in recorder.items]
    if any(m is None or np.ndim(m) != 1 for m in own):
        return True
    return any(_trimmed(m) != _trimmed(row) for m, row in zip(own, mask.tolist()))


def _is_of(items: Sequence[Any], batch: Mapping[str, Any]) -> bool:
    """Whether the rows that reached the collator last are this batch's: a loader may be a batch ahead."""
    first, ids = as_mapping(items[0]).get("input_ids"), batch.get("input_ids")
    if first is None or ids is None:
        return True
    own, row = (" ".join(map(str, np.asarray(one).tolist())) for one in (first, ids[0]))
    return f" {own} " in f" {row} "


def _trimmed(mask: Any) -> str:
    """A mask without zeros at its ends."""
    return "".join("1" if m else "0" for m in np.asarray(mask)).strip("0")
