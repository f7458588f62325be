"""The sheet of a record: what was seen, in rows, with a mark where something stands out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from trainwright.core import Finding, Shown
from trainwright.core.guess import Guess
from trainwright.core.sheet import OWN, TRAININGS, Curve, Row, Sheet
from trainwright.rehearsal.record import Record, Training
from trainwright.review.numbers import FEWEST_VALUES, TYPED, WORSE_SHARE, Series, own_score, series_of_training
from trainwright.review.profiles import profiles
from trainwright.review.sheet_answers import class_rows, output_rows, scores
from trainwright.review.sheet_inputs import columns
from trainwright.review.sheet_pieces import layer, pieces, rows_drawn
from trainwright.review.sheet_samples import confused_rows, samples, tell_generated
from trainwright.review.sweeps import without_cut_trials
from trainwright.review.verdict import chosen_trial, verdicts

# Points of a curve: what a line of a terminal holds.
MOST_POINTS = 60
# Curves of the script's own numbers, and rows of them.
MOST_OWN_CURVES, MOST_OWN = 4, 16

# Trainings of a sweep that are judged one by one.
MOST_TRAININGS = 40

# Words in the names of numbers that judge nothing: they are not shown.
COUNTERS = {
    "epoch", "epochs", "step", "steps", "iter", "iteration", "time", "runtime", "seconds", "second", "sec", "lr", "learning",
    "size", "seed", "flos", "norm", "samples", "memory", "eta",
}  # fmt: skip


def sheet_of(record: Record, findings: Sequence[Finding] = ()) -> Sheet:
    """What was seen of a script that ran, with rows that these findings speak of."""
    every, chosen = record, chosen_trial(record)
    trial = chosen[0] if chosen is not None else None
    record = without_cut_trials(record)
    own, judging, kept = _own_series(record, trial), own_score(record, trial), _kept_update(record)
    best = None if judging is None else _best_index(judging)
    plans = [training.planned for training in record.trainings]
    return Sheet(
        updates=record.updates,
        planned=sum(plan or 0 for plan in plans) if plans and all(plans) else None,
        seconds=record.seconds,
        cut_at=_cut_at(record),
        end=_end(record),
        isolation=record.isolation,
        kept_away=record.kept_away,
        best_update=judging.updates[best] if judging is not None and best is not None else None,
        kept_update=kept,
        scores=scores(record),
        profile=profiles(record),
        own=tuple(_own(record, series, kept if series == judging else None) for series in own),
        classes=class_rows(record),
        outputs=output_rows(record),
        columns=columns(record),
        layers=tuple(map(layer, record.parameters)),
        curves=_curves(record, own),
        pieces=pieces(record),
        drawn=rows_drawn(record),
        trainings=_trainings(every),
        confused=confused_rows(record),
        samples=samples(record, findings),
        generated=tell_generated(record),
    )


def _trainings(record: Record) -> tuple[Row, ...]:
    """Each training with its verdict, if there are several."""
    if len(record.trainings) < 2:
        return ()
    return tuple(
        TRAININGS.row(
            number=training.number,
            kind=training.kind,
            begins=training.begins,
            updates=record.updates_in(training),
            planned=training.planned,
            shown=str(verdict.shown),
            why=verdict.why,
            where=training.where,
            mark=str(verdict.shown) if verdict.shown == Shown.DOES_NOT_LEARN else "",
        )
        for training, verdict in verdicts(record, MOST_TRAININGS)
    )


def _cut_at(record: Record) -> int | None:
    if record.ended.is_cut:
        return record.ended.update
    return next((t.ends for t in record.trainings if t.is_cut), None)


def _end(record: Record) -> str:
    if record.ended.failure is not None:
        return str(record.ended.failure)
    status = record.ended.status
    if not status:
        return ""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _kept_update(record: Record) -> int | None:
    """After which update the weights were that the script has at its end, or saved last; None: it kept none."""
    by_weights = {kept.weights: kept.update for kept in record.kept}
    for loaded in reversed(record.loaded):
        if loaded.after in by_weights:
            return by_weights[loaded.after]
    return next((kept.update for kept in reversed(record.kept) if kept.how == "saved"), None)


def _own_series(record: Record, training: Training | None) -> list[Series]:
    """The script's own numbers of a training, each name once; those of held-out rows first, then those with a direction."""
    names: dict[str, Series] = {}
    for one in series_of_training(record, training):
        is_course = one.direction or len(one.values) > 1  # otherwise a size, a seed or the like that was logged once
        if is_course and one.is_named and COUNTERS.isdisjoint(one.words.split()):
            names.setdefault(one.words, one)  # "eval loss" is printed what is logged as "eval_loss"
    worth = sorted(
        names.values(), key=lambda one: (not one.direction, not one.is_held_out, -one.direction, -len(one.values))
    )
    return worth[:MOST_OWN]


def _best_index(series: Series) -> int | None:
    """The index of its best value; None: its direction is not known."""
    finite = [i for i, value in enumerate(series.values) if math.isfinite(value)]
    return max(finite, key=lambda i: series.values[i] * series.direction, default=None) if series.direction else None


def _own(record: Record, series: Series, kept: int | None) -> Row:
    """A row of it; with the weights that were kept, if it is the number that judges them."""
    best = _best_index(series)
    sources = (n.source for n in record.numbers if n.name == series.name and (n.source in TYPED) == series.is_typed)
    mark = "" if all(map(math.isfinite, series.values)) else "not finite"
    if kept is not None and best is not None and not mark and _is_worse(series, kept):
        mark = f"kept: update {kept:,}, not the best"
    guess = record.guesses.get(series.name, Guess(constant=0.0 if series.is_r2 else None))
    trained = [series.direction * value for update, value in zip(series.updates, series.values, strict=True) if update]
    if not mark and series.is_held_out and series.is_own and guess.constant is not None and trained:
        mark = "never better than a constant" if max(trained) <= series.direction * guess.constant else ""
    return OWN.row(
        name=series.name,
        source=next(sources),
        count=len(series.values),
        first=series.values[0],
        last=series.values[-1],
        best=None if best is None else series.values[best],
        best_update=None if best is None else series.updates[best],
        constant=guess.constant,
        random=guess.random,
        mark=mark,
    )


def _is_worse(series: Series, update: int) -> bool:
    """Whether the number is clearly worse at an update than at its best."""
    is_known = update in series.updates and len(series.values) >= FEWEST_VALUES
    return is_known and series.regret_at(series.updates.index(update)) > WORSE_SHARE


def _curves(record: Record, own: Sequence[Series]) -> tuple[Curve, ...]:
    curves = [_curve("loss", record.losses)]
    optimizers = Counter(step.optimizer for step in record.looked_updates)
    for count, (optimizer, _) in enumerate(optimizers.most_common(3), 1):
        of = f", optimizer {count}" if len(optimizers) > 1 else ""
        steps = [step for step in record.looked_updates if step.optimizer == optimizer]
        curves.append(_curve(f"learning rate{of}", [(s.number, s.rate) for s in steps]))
        norms = [(s.number, s.gradient_norm) for s in steps if s.gradient_norm is not None]
        curves.append(_curve(f"gradient norm{of}", norms))
    for series in [one for one in own if one.direction and len(one.values) > 2][:MOST_OWN_CURVES]:
        name = f"{series.name}, reported" if series.name == "loss" else series.name
        curves.append(_curve(name, list(zip(series.updates, series.values, strict=True))))
    return tuple(curve for curve in curves if curve.updates)


def _curve(name: str, points: Sequence[tuple[int, float]]) -> Curve:
    """A curve of means over equally many points each; what is not finite remains."""
    wrong = next((update for update, value in points if not math.isfinite(value)), None)
    count = min(len(points), MOST_POINTS)
    edges = [round(i * len(points) / count) for i in range(count + 1)] if count else []
    parts = [points[begin:end] for begin, end in pairwise(edges)]
    return Curve(
        name=name,
        updates=tuple(part[-1][0] for part in parts),
        values=tuple(sum(value for _, value in part) / len(part) for part in parts),
        mark="" if wrong is None else f"not finite after update {wrong:,}",
    )
