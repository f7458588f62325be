"""The rows that reach a collator, and which of them it accepts if it fails on a batch."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.torch.stacking import lengths_of, watching_stacks
from trainwright.tensors.items import length


def item_facts(recorder: RecordingCollator) -> dict[str, Any]:
    """The keys of the rows that reached the collator, and the lengths of those that are lists."""
    if not recorder.items:
        return {}
    items = [as_mapping(i) for i in recorder.items]
    lists = [k for k in items[0] if all(length(i.get(k)) is not None and not isinstance(i[k], str) for i in items)]
    return {
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
