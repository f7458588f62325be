"""The rows that a walk formed, in a report: chosen and made readable as those of a rehearsal."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.base import Looked, ReceivedRows
from trainwright.core.sample import Sample
from trainwright.core.sheet import HELD_OUT, TRAINING
from trainwright.probes.row_losses import LossRows
from trainwright.rehearsal.names import seek_names
from trainwright.rehearsal.readable import Names, read_all
from trainwright.rehearsal.record import Answers, Kind, Output, Sampled, Source
from trainwright.rehearsal.sampling import Arrays, Offer, Sampler, lengths_of
from trainwright.rehearsal.told import MOST_SETS, ordered, told
from trainwright.stages.loss import CLASS_LOSSES, DISTANCES

IGNORED = -100


def samples_of(looked: Looked) -> tuple[Sample, ...]:
    """A few rows of each set; held-out rows first."""
    sampler, names = Sampler(), Names()
    for one in looked.rows:
        for offer in _offers(one):
            sampler.offer(offer)
    seek_names(names, looked.scope.items())
    return _told(read_all(sampler.chosen(), names), names)


def _told(rows: list[Sampled], names: Names) -> tuple[Sample, ...]:
    groups: dict[tuple[Output, bool], list[Sampled]] = {}
    for row in rows:
        groups.setdefault((row.output, row.trains), []).append(row)
    several = len({output for output, _ in groups}) > 1
    by_set = sorted(groups.items(), key=lambda group: group[0][1])[:MOST_SETS]
    found = [
        [
            told(
                row,
                names.classes_of(output),
                output=str(output) if several else "",
                rows_of=TRAINING if trains else HELD_OUT,
            )
            for row in ordered(of_set)
        ]
        for (output, trains), of_set in by_set
    ]
    return tuple(itertools.chain.from_iterable(found))


def _offers(one: ReceivedRows) -> list[Offer]:
    """The rows of a batch with the answers to each loss; to none, with what the batch has as labels."""
    given = {name: values for name, values in one.batch.given.items() if values.dtype.kind in "fiubOSU"}
    if not given:
        return []
    made = [_of_loss(loss, number, one) for number, loss in enumerate(one.batch.losses)]
    known = [pair for pair in made if pair is not None] or [_of_labels(one.batch.labels, one)]
    keys = _keys(given, one.rows)
    return [_offer(replace(answers, keys=keys[rows]), rows, labels, given) for answers, rows, labels in known]


def _keys(given: Mapping[str, NDArray[Any]], rows: int) -> NDArray[np.int64]:
    """One number for each row: equal rows have equal ones, and of these one is shown."""
    found = [0] * rows
    for values in given.values():
        for row in range(rows):
            held = np.asarray(values[row])
            text = repr(held.tolist()).encode() if held.dtype.kind in "OSU" else held.tobytes()
            found[row] = zlib.crc32(text, found[row])
    return np.array(found, dtype=np.int64)


Found = tuple[Answers, NDArray[Any], NDArray[Any] | None]
"""Answers, the row that each of them is of, and the labels of each row, where one has several."""


def _offer(
    answers: Answers, rows: NDArray[Any], labels: NDArray[Any] | None, given: Mapping[str, NDArray[Any]]
) -> Offer:
    def take(row: int) -> Arrays:
        return [(name, np.array(values[row])) for name, values in given.items()]

    def labels_of(row: int) -> NDArray[Any]:
        assert labels is not None
        return np.asarray(labels[row])

    return Offer(
        answers=answers,
        rows=rows,
        take=take,
        lengths=lengths_of(list(given.items())),
        labels=None if labels is None else labels_of,
        ignored=IGNORED,
    )


def _of_loss(loss: LossRows, number: int, one: ReceivedRows) -> Found | None:
    count = len(loss.targets)
    if loss.answers is None or not count or count % one.rows:
        return None
    per_row = count // one.rows
    rows = np.arange(count) // per_row
    if loss.function not in CLASS_LOSSES:
        if per_row > 1:
            return None
        kind = Kind.NUMBERS if loss.function in DISTANCES else Kind.BINARY
        return _answers(Output(kind, loss.width, number), one, loss.targets, values=loss.answers), rows, None
    labels = loss.targets if loss.targets.ndim == 1 else loss.targets.argmax(1)
    weights = loss.scored.weights
    counted = np.flatnonzero((weights > 0) & (labels >= 0) & (labels < loss.width))
    certainties = loss.certainties
    answers = _answers(
        Output(Kind.CLASSES, loss.width, number),
        one,
        labels[counted],
        guesses=loss.answers[counted],
        log_losses=loss.scored.losses[counted] / weights[counted],
        certainties=None if certainties is None else certainties[counted],
    )
    whole = np.where(weights > 0, labels, IGNORED).reshape(one.rows, per_row) if per_row > 1 else None
    return (answers, rows[counted], whole) if len(counted) else None


def _of_labels(labels: NDArray[Any] | None, one: ReceivedRows) -> Found:
    """What the batch has as labels, not answered."""
    rows = np.arange(one.rows)
    if labels is None or len(labels) != one.rows or labels.dtype.kind not in "iufb":
        return _answers(Output(Kind.NUMBERS, 0), one, np.zeros((one.rows, 0))), rows, None
    flat = labels.reshape(one.rows, -1)
    if labels.dtype.kind == "f" or not flat.size:
        return _answers(Output(Kind.NUMBERS, flat.shape[1]), one, flat), rows, None
    output = Output(Kind.CLASSES, int(flat.max(initial=0)) + 1)
    if flat.shape[1] == 1:
        return _answers(output, one, flat[:, 0]), rows, None
    return _answers(output, one, flat[:, 0]), rows, flat


def _answers(output: Output, one: ReceivedRows, labels: NDArray[Any], **given: Any) -> Answers:
    return Answers(
        output=output,
        update=one.updates,
        trains=not one.is_held_out,
        evaluation=1 if one.is_held_out else None,
        labels=labels,
        source=Source.LOSS,
        **given,
    )
