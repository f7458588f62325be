"""How an output and its labels are read: kinds, widths, and the arrays of `Answers`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainwright.rehearsal.record import SAMPLED_WIDTH, Integers, LabelKind, Output, PairSource
from trainwright.rehearsal.recorder import MOST_ROWS, spread
from trainwright.rehearsal.watch.labelled import read_scores
from trainwright.rehearsal.watch.torch.samples import plain
from trainwright.rehearsal.watch.torch.state import OuterCall
from trainwright.stages import IGNORED_LABEL

# Scores that are read of one call: fewer rows where there are many classes.
MOST_SCORES = 2_000_000

_KINDS = {
    "classes": LabelKind.CLASSES,
    "logits": LabelKind.BINARY,
    "binary": LabelKind.BINARY,
    "signs": LabelKind.BINARY,
    "numbers": LabelKind.NUMBERS,
}


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
    return Output(_KINDS[form], width) if width and answer.numel() else None


def values_of(meeting: Meeting, output: Output) -> tuple[Integers, int, int, dict[str, Any]] | None:
    """The places of the rows that are read, how many there are, how many of them each row of the model has, and the
    arrays of `Answers`; None where the shapes do not fit each other."""
    answer, target = plain(meeting.output), plain(meeting.target)
    if output.kind == LabelKind.CLASSES:
        return _classes(meeting, output, answer, target)
    if answer.shape != target.shape:
        if answer.numel() != target.numel() or (
            answer.dim() > 1 and target.dim() > 1 and 1 not in (*answer.shape, *target.shape)
        ):
            return None
        if answer.squeeze().shape != target.squeeze().shape or _widens(answer, target):
            return None
        target = target.reshape(answer.shape)
    rows = answer.shape[0] if answer.dim() else 1
    answer, target = (_columns(one.reshape(rows, -1), output.width) for one in (answer, target))
    index = spread(rows, MOST_ROWS)
    answer, target = (one[index.tolist()].double().cpu().numpy() for one in (answer, target))
    if meeting.form == "logits" or meeting.form == "signs":
        answer = 1 / (1 + np.exp(-answer))
    if meeting.form == "signs":
        target = (target > 0).astype(np.float64)
    return index, rows, 1, {"labels": target, "values": answer}


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


def _classes(
    meeting: Meeting, output: Output, answer: Any, target: Any
) -> tuple[Integers, int, int, dict[str, Any]] | None:
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
    labels: NDArray[Any] = known[index].astype(np.int64)
    raw = scores[torch.from_numpy(index).to(scores.device)].float().cpu().numpy().astype(np.float64)
    guesses, losses, certainties = read_scores(raw, labels)
    values = {"labels": labels, "guesses": guesses, "log_losses": losses, "certainties": certainties}
    return index, len(places), per_row, values
