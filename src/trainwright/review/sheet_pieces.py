"""The weights, pieces and drawn rows of a sheet."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from trainwright.core.sheet import DRAWN, EITHER, HELD_OUT, PIECES, TRAINING, WEIGHTS, Row
from trainwright.rehearsal.record import Drawn, Parameter, Pass, Record
from trainwright.rehearsal.record_parts import Best, KeptWeights, Loaded
from trainwright.review.drawn import leaves_rows_out
from trainwright.review.numbers import WORSE_SHARE, held_out_series

# Steps of an optimizer before weights that never moved, or have no gradient, stand out: a warm-up may begin at a rate of 0.
LEAST_STEPS = 10
# Passes, and the updates that they span, before equal weights in all of them stand out; a model that is asked after more than
# this share of the updates is a teacher (both from the prototype of the review).
LEAST_PASSES, LEAST_SPAN, TEACHER_SHARE = 3, 10, 0.3

S = TypeVar("S", Pass, KeptWeights, Loaded)


def layer(seen: Parameter) -> Row:
    """A tensor of weights, with what stands out of it."""
    return WEIGHTS.row(
        name=seen.name,
        shape=seen.shape,
        trains=seen.is_trainable and seen.is_held,
        before=seen.size_before,
        after=seen.size_after,
        moved=seen.has_moved,
        gradient=seen.had_gradient,
        mark=_mark_of(seen),
    )


def _mark_of(seen: Parameter) -> str:
    if not math.isfinite(seen.size_after):
        return "not finite"
    is_lone = len(seen.shape) < 2  # a bias may cancel out, as before a normalisation, or in an attention's keys
    marks = ["all zero"] if seen.size_after == 0 and seen.is_trainable and seen.is_held and not is_lone else []
    if is_lone and seen.has_moved == seen.had_gradient:
        return ""
    if seen.is_trainable and seen.is_held and seen.steps >= LEAST_STEPS:
        if not seen.has_moved:  # what moves without one has a gradient of rounding: a key's bias in attention
            marks.append("never moved" if seen.had_gradient else "no gradient")
    elif seen.is_trainable and not seen.is_held and seen.had_gradient:
        marks.append("in no optimizer")
    return ", ".join(marks)


def rows_drawn(record: Record) -> tuple[Row, ...]:
    """How often the rows of each set were drawn."""
    evaluated = {one.data for one in record.passes} | {one.data for one in record.answers if not one.trains}
    return tuple(_rows_drawn(one, evaluated) for one in record.drawn)


def _rows_drawn(seen: Drawn, evaluated: set[int]) -> Row:
    """A set whose rows met no loss as labels may still be trained on: it is held out only where it is evaluated."""
    distinct, draws = len(seen.draws), seen.draws.total()
    return DRAWN.row(
        name=seen.name,
        rows_of=TRAINING if seen.trains else HELD_OUT if seen.data in evaluated else EITHER,
        size=seen.size,
        distinct=distinct,
        never=max(seen.size - distinct, 0),
        draws=draws,
        each=draws / distinct if distinct else None,
        most=max(seen.draws.values(), default=0),
        where=seen.where,
        mark=f"{1 - distinct / seen.size:.0%} never drawn" if leaves_rows_out(seen) else "",
    )


def pieces(record: Record) -> tuple[Row, ...]:
    """What was evaluated, saved, copied, loaded and kept as best; what was done at one line is one row."""
    return (*_evaluated(record), *_kept(record), *_loaded(record), *map(_best, record.best))


def _evaluated(record: Record) -> list[Row]:
    lines: dict[int, set[object]] = defaultdict(set)
    for one in record.passes:
        lines[one.model].add(one.where)
    found = []
    for group in _grouped(record.passes, lambda one: (one.where, one.is_trained)):
        models = {one.model for one in group}
        unkept = record.unkept_passes.get(min(models)) if len(models) == len(lines[min(models)]) == 1 else None
        found.append(_passes(group, record.updates, unkept or (0, -1)))
    return found


def _passes(group: Sequence[Pass], updates: int, unkept: tuple[int, int]) -> Row:
    calls, noisy = sum(one.calls for one in group), sum(one.noisy_calls for one in group)
    models = {one.model for one in group}
    # Before the first update a model may be called to see its layers.
    is_marked = noisy and group[-1].update > 0
    marks = ["in training mode" if noisy >= calls else "partly in training mode"] if is_marked else []
    still = any(_is_still([one for one in group if one.model == model]) for model in models)
    is_teacher = len({one.update for one in group}) > TEACHER_SHARE * max(updates, 1)
    marks += ["the same weights each time"] if still and not is_teacher else []
    told = [f"{len(models)} models"] if len(models) > 1 else []
    told += [] if group[0].is_trained else ["another model than the trained one"]
    told += [] if noisy else ["as in evaluation mode"]
    row = _piece("evaluated", group, ", ".join(told), ", ".join(marks))
    row.times, row.last_update = row.times + unkept[0], max(row.last_update, unkept[1])
    return row


def _kept(record: Record) -> list[Row]:
    rows, most = [], max(Counter(one.model for one in record.parameters).values(), default=0)
    for group in _grouped(record.kept, lambda one: (one.how, one.where)):
        paths = list(dict.fromkeys(one.path for one in group if one.path))
        how = paths[-1] if len(paths) == 1 else f"{len(paths)} files, the last {paths[-1]}" if paths else ""
        is_still = _is_still(group) and 2 * group[-1].tensors >= most  # fewer tensors may be a metric's counts
        rows.append(_piece(group[0].how, group, how, "the same weights each time" if is_still else ""))
    return rows


def _is_still(group: Sequence[KeptWeights | Pass]) -> bool:
    """Whether the weights are the same each time, over enough updates."""
    span = group[-1].update - group[0].update
    return len(group) >= LEAST_PASSES and span >= LEAST_SPAN and len({one.weights for one in group}) == 1


def _loaded(record: Record) -> list[Row]:
    saved = {kept.weights: kept.update for kept in record.kept}
    best = min((one.regret_at(-1) for one in held_out_series(record)), default=math.inf)
    rows = []
    for group in _grouped(record.loaded, lambda one: one.where):
        last = group[-1]
        is_most = 2 * last.missing > last.tensors  # a head of one's own is left out on purpose
        marks = [f"{last.missing:,} of {last.tensors:,} tensors missing"] if is_most else []
        is_known = last.after in saved or best <= WORSE_SHARE  # the last weights may be the best
        marks += ["changed nothing"] if not is_known and all(one.after == one.before for one in group) else []
        of = f", those of update {saved[last.after]:,}" if last.after in saved else ""
        rows.append(_piece("loaded", group, f"{last.tensors - last.missing:,} tensors{of}", ", ".join(marks)))
    return rows


def _grouped(seen: Iterable[S], of: Callable[[S], object]) -> Iterable[list[S]]:
    """What was done at one line, together."""
    groups: dict[object, list[S]] = defaultdict(list)
    for one in seen:
        groups[of(one)].append(one)
    return groups.values()


def _piece(what: str, group: Sequence[S], how: str, mark: str) -> Row:
    first, last = group[0], group[-1]
    return PIECES.row(
        what=what,
        times=len(group),
        first_update=first.update,
        last_update=last.update,
        how=how,
        where=first.where,
        mark=mark,
    )


def _best(seen: Best) -> Row:
    """What a callback kept; its looks are counted from 1."""
    finite = [value for value in seen.values if math.isfinite(value)]
    is_known = seen.higher_is_better is not None and finite
    best = (max if seen.higher_is_better else min)(finite) if is_known else None
    kept = None if seen.kept is None else seen.values[seen.kept]
    at = "none of its looks" if seen.kept is None else f"{kept:.4g} at look {seen.kept + 1}"
    return PIECES.row(
        what="kept as best",
        times=1,
        how=f"by {seen.name}: {at} of {len(seen.values)}",
        mark=f"the best was {best:.4g}" if None not in (best, kept) and best != kept else "",
    )
