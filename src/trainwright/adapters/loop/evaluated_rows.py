"""The evaluation rows of a loop without an evaluation loader: arrays of the script that its code passes to the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from trainwright.adapters.loop.named_rows import HELD_OUT
from trainwright.adapters.loop.sliced_rows import Columns
from trainwright.adapters.loop.training import LoopTraining
from trainwright.core.finding import Place
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.loops.evaluated_names import Evaluated, evaluated_names
from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.stages.dataset import Split

# Fewer rows are an example to look at, not an evaluation.
FEWEST_ROWS = 16


def evaluated_rows(training: LoopTraining, train: Split, labels: Sequence[str]) -> tuple[Columns, Place] | None:
    """Rows with the columns of the training set, and the line that evaluates them; None if there are none.

    All rows together are often evaluated to plot them, and rows of the training set to compare. The former are no
    evaluation set, and the latter are one only if the script calls them so.
    """
    loop, name = getattr(training.body, "loop", None), next((n for n in labels if n in train.columns), None)
    inputs = [n for n in train.columns if n != name]
    if not isinstance(loop, Loop) or name is None or len(inputs) != 1:
        return None
    if getattr(training.body, "trained_later", None):  # what comes after the loop may judge a later training
        return None
    if not all(_even(train.columns[n]) for n in (inputs[0], name)):
        return None
    trained, targets = (np.asarray(train.columns[n]) for n in (inputs[0], name))
    known = {row.tobytes() for row in np.ascontiguousarray(trained)}
    with tolerated():  # a slice that its array rejects is reported where the script makes it
        for one in sorted(
            evaluated_names(loop, list(callers(loop.frame)), training.parts.roots), key=lambda e: not _is_named(e)
        ):
            rows = _like(one.inputs, trained)
            beside = next((a for v in one.labels if (a := _like(v, targets, loose=True)) is not None), None)
            if rows is None or beside is None or len(rows) < FEWEST_ROWS:
                continue
            found = {row.tobytes() for row in np.ascontiguousarray(rows)}
            if not known < found and (_is_named(one) or not found <= known):
                return Columns({inputs[0]: rows, name: beside}), one.where
    return None


def _even(column: Sequence[Any]) -> bool:
    """Whether all rows have one shape."""
    return isinstance(column, np.ndarray) or len({np.shape(row) for row in column}) <= 1


def _is_named(one: Evaluated) -> bool:
    return any(word in name.lower() for name in one.names for word in HELD_OUT)


def _like(values: Any, column: np.ndarray, *, loose: bool = False) -> np.ndarray | None:
    """The values as rows of a column: of its shape and its type; None if they are of another kind.

    Args:
        loose: integers and floats that hold whole numbers count as one kind, (rows,) and (rows, 1) as one shape.
    """
    found = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values
    if loose and found.size == len(found) and column.size == len(column):
        if found.dtype.kind != column.dtype.kind and not (_whole(found) and _whole(column)):
            return None
        return np.asarray(found.reshape(len(found), *column.shape[1:]).astype(column.dtype))
    if found.shape[1:] != column.shape[1:] or (found.dtype.kind == "f") != (column.dtype.kind == "f"):
        return None
    return np.asarray(found.astype(column.dtype))


def _whole(values: np.ndarray) -> bool:
    return values.dtype.kind in "iub" or (values.dtype.kind == "f" and bool((values == np.round(values)).all()))
