"""How an output and its labels are read: kinds, widths, and the arrays of `Answers`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trainwright.rehearsal.record import SAMPLED_WIDTH, Integers, LabelKind, Output, PairSource
from trainwright.rehearsal.recorder import MOST_ROWS, spread
from trainwright.rehearsal.watch.labelled import KINDS, compare
from trainwright.rehearsal.watch.torch.samples import plain
from trainwright.rehearsal.watch.torch.state import OuterCall
from trainwright.stages import IGNORED_LABEL

# Scores that are read of one call: fewer rows where there are many classes.
MOST_SCORES = 2_000_000


@dataclass(eq=False)
class Meeting:
    """An output and its labels, given to the same function."""

    form: str
    """`classes` (scores), `logits`, `binary` (probabilities), `signs` or `numbers`."""
    output: Any
    target: Any
    source: PairSource
    call: OuterCall | None
    update: int
    ignored: int = IGNORED_LABEL
    node: int | None = None
    """The number of what was computed from them in the graph; None: it has none."""
    value: Any = None
    """The loss, where it is a plain mean."""


def shape_of(form: str, answer: Any) -> Output | None:
    """The kind and the width of an output."""
    shape = tuple(answer.shape)
    if form == "classes":
        width = shape[1] if len(shape) > 1 else shape[0] if shape else 0
    else:
        width = min(SAMPLED_WIDTH, math.prod(shape[1:]))
    return Output(KINDS[form], width) if width and answer.numel() else None


def values_of(meeting: Meeting, output: Output) -> tuple[Integers, int, dict[str, Any]] | None:
    """The places of the rows that are read, how many there are, and what `Answers` keeps of them; None where the shapes do
    not fit each other."""
    answer, target = plain(meeting.output), plain(meeting.target)
    if output.kind == LabelKind.CLASSES:
        return _classes(meeting, output, answer, target)
    if answer.squeeze().shape != target.squeeze().shape or _widens(answer, target):
        return None
    rows = answer.shape[0] if answer.dim() else 1
    index = spread(rows, MOST_ROWS)
    read = (
        _columns(t.reshape(rows, -1), output.width)[index.tolist()].double().cpu().numpy() for t in (answer, target)
    )
    found = compare(meeting.form, *read)
    return (index, rows, found.arrays()) if found is not None else None


def flat_rows(target: Any, width: int) -> Any:
    """Labels as rows of this width; None where they are none."""
    if target.dim() <= 1:
        return target.reshape(-1, 1).float() if width == 1 else None
    wide = _columns(target.reshape(target.shape[0], -1), width).float()
    return wide if wide.shape[1] == width else None


def _columns(rows: Any, width: int) -> Any:
    """So many of the rows' numbers, spread evenly: the first ones of a picture are its border."""
    return rows if rows.shape[1] <= width else rows[:, spread(rows.shape[1], width).tolist()]


def _widens(answer: Any, target: Any) -> bool:
    """Whether a difference of these has more values than each of them."""
    wide: int = torch.broadcast_shapes(answer.shape, target.shape).numel()
    return wide > int(answer.numel())


def _classes(meeting: Meeting, output: Output, answer: Any, target: Any) -> tuple[Integers, int, dict[str, Any]] | None:
    if answer.dim() == 1:
        answer, target = answer[None], target[None] if target.is_floating_point() else target.reshape(1)
    if target.is_floating_point():
        if target.shape != answer.shape:
            return None
        target = target.argmax(1)
    per_row = int(np.prod(answer.shape[2:], dtype=np.int64))
    flat = target.reshape(-1)
    if flat.numel() != answer.shape[0] * per_row:
        return None
    if meeting.call is not None and per_row == 1 and answer.shape[0] != meeting.call.rows:
        rows = meeting.call.rows
        per_row = answer.shape[0] // rows if rows and answer.shape[0] % rows == 0 else 1
    scores = answer.movedim(1, -1).reshape(-1, answer.shape[1])
    known = flat.cpu().numpy()
    places = np.flatnonzero((known != meeting.ignored) & (known >= 0) & (known < output.width))
    index = places[spread(len(places), max(32, min(MOST_ROWS, MOST_SCORES // output.width)))]
    raw = scores[torch.from_numpy(index).to(scores.device)].float().cpu().numpy()
    found = compare("classes", raw, known[index])
    return (index, len(places), found.arrays() | {"per_row": per_row}) if found is not None else None
