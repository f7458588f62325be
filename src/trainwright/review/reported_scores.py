"""Scores that the script reports, beside those of the same rows: the mean over batches of an F1, and an accuracy of other rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainwright.rehearsal.record import Answers, Floats, Integers, LabelKind, PairSource, Record
from trainwright.review.numbers import Series
from trainwright.review.rows import AnsweredRows

# A score is told apart from that of the set from this difference on, and is the mean of the batches up to this one.
APART, EQUAL = 0.03, 0.005
FEWEST_BATCHES, MOST_CLASSES, LOOKS = 4, 50, 3
_NAMES = {"f1": re.compile(r"f1|f score|fscore"), "precision": re.compile("precision"), "recall": re.compile("recall")}
# A reported accuracy is none of those that its rows have, if it is so far from each.
ACCURACY_APART = 0.03


@dataclass(frozen=True, kw_only=True)
class BatchMean:
    """A score that the script reports, beside that of the same rows together."""

    series: Series
    rows: AnsweredRows
    of_set: float
    batches: int


def batch_means(record: Record, series: list[Series], held: list[AnsweredRows]) -> Iterator[BatchMean]:
    """The reported scores that are the mean of the scores of batches, and not the score of the set."""
    for one in series:
        measure = next((name for name, words in _NAMES.items() if words.search(one.words)), None)
        if measure is None or one.is_of_training:
            continue
        for rows in held:
            if not _is_read(rows):
                continue
            found = [_mean(record, measure, value, _calls(record, rows, update)) for update, value in _looks(one)]
            if found and None not in found and rows.update == one.updates[-1]:
                yield BatchMean(series=one, rows=rows, of_set=found[-1] or 0.0, batches=len(rows.calls))


def _is_read(rows: AnsweredRows) -> bool:
    """Whether each row has one class, or one answer of yes or no."""
    if rows.output.kind == LabelKind.BINARY:
        return rows.output.width == 1 and rows.values is not None
    return rows.guesses is not None and rows.output.width <= MOST_CLASSES


def _read(one: Answers) -> tuple[Integers, Integers]:
    """The class of each row, and the answered one."""
    answers = one.guesses if one.guesses is not None else np.asarray(one.values) > 0.5
    labels = one.labels if one.guesses is not None else one.labels > 0.5
    return labels.astype(np.int64).reshape(-1), answers.astype(np.int64).reshape(-1)


def _looks(series: Series) -> list[tuple[int, float]]:
    """The last reported values that are neither all nor nothing."""
    looks = [(update, value) for update, value in zip(series.updates, series.values) if 0 < value < 1]
    return looks[-LOOKS:] if looks and looks[-1][0] == series.updates[-1] else []


def _calls(record: Record, rows: AnsweredRows, update: int) -> list[Answers]:
    first = rows.calls[0]
    own = first.output, first.model, first.data, first.source, update
    return [
        one
        for one in record.answers
        if not one.trains and (one.output, one.model, one.data, one.source, one.update) == own
    ]


def _mean(record: Record, measure: str, said: float, calls: list[Answers]) -> float | None:
    """The score of the set that is nearest to what was said, where that is the mean of the batches' scores instead."""
    if len(calls) < FEWEST_BATCHES:
        return None
    labels, guesses = zip(*map(_read, calls))
    classes = np.unique(np.concatenate([*labels, *guesses]))
    of_set = _scores(measure, np.concatenate(labels), np.concatenate(guesses), classes)
    of_batches = np.stack([_scores(measure, *one, classes) for one in zip(labels, guesses)])
    means, errors = of_batches.mean(0), of_batches.std(0) / np.sqrt(len(calls))
    # Where a part of the batches was kept, their mean has a standard error.
    is_whole = any(one.number == calls[0].evaluation and one.calls == len(calls) for one in record.passes)
    limits = EQUAL + (0 if is_whole else 2) * errors
    fits = (np.abs(means - said) <= limits) & (np.abs(means - of_set) > np.maximum(APART, 1.5 * limits))
    is_of_set = bool((np.abs(of_set - said) <= np.maximum(APART, limits)).any())
    return float(of_set[np.flatnonzero(fits)[0]]) if fits.any() and not is_of_set else None


def _scores(measure: str, labels: Integers, guesses: Integers, classes: Integers) -> Floats:
    """The score of each class, their mean, that over the classes that occur, that by their rows, and that of all rows."""
    right = np.array([((labels == one) & (guesses == one)).sum() for one in classes], dtype=np.float64)
    had = np.array([(labels == one).sum() for one in classes], dtype=np.float64)
    said = np.array([(guesses == one).sum() for one in classes], dtype=np.float64)
    whole = {"f1": (had + said) / 2, "precision": said, "recall": had}[measure]
    each = right / np.maximum(whole, 1e-12) * (whole > 0)
    occurs = had + said > 0
    joined = [each.mean(), each[occurs].mean() if occurs.any() else 0.0, (each * had).sum() / max(1.0, had.sum())]
    return np.array([*each, *joined, right.sum() / max(1.0, had.sum())])


def accuracy_apart(record: Record, one: Series, rows: AnsweredRows) -> tuple[float, bool] | None:
    """The accuracy of the last whole pass over these rows, and whether what was reported is that of all passes together; None:
    not all rows of the last passes are known, or one of the accuracies that a set has was reported."""
    # Beside a loss, answers are not yet what a threshold or a vote makes of them.
    if (
        rows.source not in (PairSource.COMPARISON, PairSource.METRIC)
        or not _is_read(rows)
        or rows.update != one.updates[-1]
    ):
        return None
    passes = [(value, _calls(record, rows, update)) for update, value in zip(one.updates, one.values)]
    last = passes[-LOOKS:]
    if len(last) < LOOKS or not all(_is_whole(record, calls) for _, calls in last):
        return None
    every = [_accuracies(calls) for _, calls in passes if calls]
    # The best so far, and the mean of the passes, go by the name of accuracy as well.
    best, mean = max(of[0] for of in every), float(np.mean([of[0] for of in every]))
    for value, calls in last:
        if min(abs(value - known) for known in (*_accuracies(calls), best)) <= ACCURACY_APART:
            return None
    is_of_all = len(every) == len(passes) and abs(one.values[-1] - mean) < EQUAL
    return _accuracies(last[-1][1])[0], is_of_all


def _is_whole(record: Record, calls: list[Answers]) -> bool:
    """Whether all rows of the one pass that was made at that moment are known."""
    made = [one for one in record.passes if calls and one.number == calls[0].evaluation]
    alone = len({one.number for one in record.passes if calls and one.update == calls[0].update}) == 1
    return alone and any(one.calls == len(calls) for one in made) and all(c.total == len(c.labels) for c in calls)


def _accuracies(calls: list[Answers]) -> tuple[float, float, float]:
    """The share of rows that are right, its mean over batches, and its mean over classes."""
    read = [_read(one) for one in calls]
    labels, guesses = (np.concatenate(part) for part in zip(*read))
    right = labels == guesses
    of_batches = float(np.mean([(of == by).mean() for of, by in read]))
    return float(right.mean()), of_batches, float(np.mean([right[labels == kind].mean() for kind in np.unique(labels)]))
