"""Trainings of one line on models of their own, as trials and folds are: what is said of the run is said of the last whole one."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from trainwright.rehearsal.record import Record, Training


def whole_trials(record: Record) -> list[Training]:
    """Of several trials those that were not cut short, or the longest; empty: the trainings are no trials."""
    trials = _trials(record)
    whole = [one for one in trials if not _is_cut(record, one)]
    return whole or sorted(trials, key=record.updates_in)[-1:]


def without_cut_trials(record: Record) -> Record:
    """The record without the answers and numbers of trials that were cut short, if another one was not, or was longer."""
    kept = whole_trials(record)
    spans = [span_of(record, one) for one in _trials(record) if one not in kept]
    if not spans:
        return record

    def is_of_cut(update: int, *, behind: bool) -> bool:
        """Behind: of a number or an evaluation, which belongs to the updates before it."""
        return any(begin < update <= end if behind else begin <= update < end for begin, end in spans)

    return replace(
        record,
        answers=[one for one in record.answers if not is_of_cut(one.update, behind=not one.trains)],
        numbers=[one for one in record.numbers if not is_of_cut(one.update, behind=True)],
    )


def _trials(record: Record) -> list[Training]:
    """The trainings of the line that has the most, if no two of them share a model and each evaluates its own."""
    line, times = next(iter(Counter(one.where for one in record.trainings).most_common(1)), (None, 0))
    trials = [one for one in record.trainings if one.where == line]
    models = [number for one in trials for number in _models(record, one)]
    evaluated = {one.model for one in record.answers if not one.trains and one.model}
    is_each_own = len(set(models)) == len(models) and evaluated <= set(models)
    return trials if times > 1 and len(models) >= times and is_each_own else []


def _models(record: Record, training: Training) -> set[int]:
    begin, end = span_of(record, training)
    seen = {one.model for one in record.answers if one.trains and one.model and begin <= one.update < end}
    return seen or set(training.models)


def span_of(record: Record, training: Training) -> tuple[int, float]:
    """The updates made before it, and before the training that follows."""
    later = (one.begins for one in record.trainings if one.number > training.number)
    return training.begins, min(later, default=math.inf)


def _is_cut(record: Record, training: Training) -> bool:
    return training.is_cut or (training.ends is None and record.ended.is_cut)
