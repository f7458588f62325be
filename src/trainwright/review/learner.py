"""Simple learners on what the model receives: nearest rows and ridge regression, on the model's own evaluation rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.probes.ridge import ridge, squared_distances, standardise
from trainwright.rehearsal.record import Answers, Floats, Integers, LabelKind, Output, Record
from trainwright.review.rows import AnsweredRows, had_its_chance, mixes_rows
from trainwright.review.scores import errors_of

# Clearly better: this many standard errors, by so much, and by such a share of what the model leaves; by accuracy and by mean
# recall. Of 70 sound scripts one was wrong by accuracy alone (a sampler that balances classes), of 41 further ones two by less than
# this gain (a frozen trunk, a short fine-tuning).
ERRORS, GAIN, ROOM_SHARE = 4.0, 0.15, 0.45
# Above a frozen trunk a small head cannot learn all that the inputs tell.
FROZEN_ROOM_SHARE = 0.6
NEIGHBOURS = 7
FEWEST_ROWS, MOST_TRAINED, MOST_EVALUATED = 40, 1000, 800
# More numbers a row are projected to as many; more classes and numbers are no task for it (a reconstruction).
MOST_COLUMNS, MOST_CLASSES, MOST_NUMBERS = 512, 100, 4
# Ridge regression: shrinkage for each row and for each column.
SHRINKS_ROWS, SHRINKS_COLUMNS = 0.1, 1.0


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A simple learner that is clearly better than the model, on the same rows."""

    name: str
    value: float
    model: float
    """The model's score."""
    rows: int
    trained: int
    measure: str

    @property
    def told(self) -> str:
        """In words."""
        how = "has an R2 of" if self.measure == "R2" else "is right at"
        return f"{self.name} on what the model receives {how} {self.value:.2f} on {self.rows:,} of these rows, the model {self.model:.2f}"


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """Scores row by row: plain, and with the same weight for each class."""

    plain: Floats
    balanced: Floats
    perfect: float


def better_learner(record: Record, rows: AnsweredRows) -> Learner | None:
    """The simple learner that is clearly better than the model; None if there is none, or nothing to compare."""
    output = rows.output
    is_earlier = bool(record.trainings) and rows.update <= record.trainings[-1].begins
    found = _tables(record, rows) if had_its_chance(record) and not is_earlier else None
    if found is None:
        return None  # or the trained rows are those of a later training
    train, labels, test, truth, model = found
    mine = _score(output, truth, model)
    for name, answers, left_out in _answers(output, train, labels, test):
        theirs, control = _score(output, truth, answers), _score(output, labels, left_out)
        share = FROZEN_ROOM_SHARE if _is_mostly_frozen(record) else ROOM_SHARE
        if _is_clearly_better(theirs, mine, share) and float(control.plain.mean()) >= float(mine.plain.mean()) + GAIN:
            shift = 1.0 if output.kind == LabelKind.NUMBERS else 0.0
            return Learner(
                name=name,
                value=float(theirs.plain.mean()) + shift,
                model=float(mine.plain.mean()) + shift,
                rows=len(truth),
                trained=len(labels),
                measure="R2" if output.kind == LabelKind.NUMBERS else "accuracy",
            )
    return None


def simple_scores(record: Record, rows: AnsweredRows) -> dict[str, float]:
    """What the better of the simple learners reaches on evaluated rows, by the name of the score; empty: it was not tried."""
    output, found = rows.output, _tables(record, rows)
    if found is None:
        return {}
    train, labels, test, truth, _ = found
    scored = [_score(output, truth, answers) for _, answers, _ in _answers(output, train, labels, test)]
    best = max(scored, key=lambda one: float(one.plain.mean()))
    if output.kind == LabelKind.NUMBERS:
        return {"R2": 1 + float(best.plain.mean())}
    balanced = {"mean recall": float(best.balanced.mean())} if output.kind == LabelKind.CLASSES else {}
    return {"accuracy": float(best.plain.mean()), **balanced}


def left_out_scores(output: Output, rows: Floats, labels: NDArray[Any]) -> list[Floats]:
    """Row by row, what each simple learner reaches that learned from all other rows: accuracy or R2 as its mean."""
    prepared = _prepare(rows, rows[:1])
    if prepared is None:
        return []
    shift = 1.0 if output.kind == LabelKind.NUMBERS else 0.0
    return [
        _score(output, labels, left_out).plain + shift
        for _, _, left_out in _answers(output, prepared[0], labels, prepared[1])
    ]


def prepare_columns(rows: Floats) -> Floats | None:
    """Each column with a mean of 0 and a deviation of 1; many are projected to fewer; None: all are constant."""
    prepared = _prepare(rows, rows[:1])
    return None if prepared is None else prepared[0]


def _is_mostly_frozen(record: Record) -> bool:
    """Whether the script trains a small part of its model only: what the rest gives it bounds what can be learned."""
    held = sum(one.is_trainable and one.is_held for one in record.parameters)
    return 2 * held < len(record.parameters)


def _is_clearly_better(theirs: _Scored, mine: _Scored, share: float) -> bool:
    for one, other in ((theirs.plain, mine.plain), (theirs.balanced, mine.balanced)):
        gain, room = float(one.mean() - other.mean()), theirs.perfect - float(other.mean())
        if gain < max(GAIN, share * room) or errors_of(one - other) < ERRORS:
            return False
    return True


def _tables(
    record: Record, rows: AnsweredRows
) -> tuple[Floats, NDArray[Any], Floats, NDArray[Any], NDArray[Any]] | None:
    """Inputs and labels of training rows; inputs, labels and the model's answers of evaluated ones."""
    output, stored = rows.output, record.trained_rows.get(rows.output)
    too_wide = output.width > (MOST_CLASSES if output.kind == LabelKind.CLASSES else MOST_NUMBERS)
    if stored is None or too_wide or rows.trains or mixes_rows(record):
        return None
    inputs, labels, keys = stored
    calls = [one for one in rows.calls if one.inputs is not None and one.inputs.shape[1:] == inputs.shape[1:]]
    evaluated = {key for one in rows.calls if one.keys is not None for key in one.keys.tolist()}
    kept = np.array([key not in evaluated for key in keys.tolist()], dtype=bool)
    if not calls or kept.sum() < FEWEST_ROWS or sum(len(one.labels) for one in calls) < FEWEST_ROWS:
        return None
    train, labels = inputs[kept][:MOST_TRAINED], labels[kept][:MOST_TRAINED]
    test = np.concatenate([one.inputs for one in calls if one.inputs is not None])[:MOST_EVALUATED]
    truth = np.concatenate([one.labels for one in calls])[:MOST_EVALUATED]
    model = np.concatenate([_given(one) for one in calls])[:MOST_EVALUATED]
    if not (np.isfinite(train).all() and np.isfinite(test).all() and np.isfinite(model).all()):
        return None
    prepared = _prepare(train, test)
    return None if prepared is None else (prepared[0], labels, prepared[1], truth, model)


def _given(one: Answers) -> NDArray[Any]:
    given = one.guesses if one.guesses is not None else one.values
    return np.full(len(one.labels), np.nan) if given is None else given


def _prepare(train: Floats, test: Floats) -> tuple[Floats, Floats] | None:
    """Standardised by the training rows; many columns are projected to fewer."""
    both = np.concatenate([train, test]).astype(np.float64)
    mean, deviation = both[: len(train)].mean(0), both[: len(train)].std(0)
    live = deviation > 1e-8
    if not live.any():
        return None
    both = standardise(both[:, live], mean[live], deviation[live])
    if both.shape[1] > MOST_COLUMNS:
        generator = np.random.default_rng(0)  # its own: no state of the script's
        both = both @ generator.standard_normal((both.shape[1], MOST_COLUMNS)) / np.sqrt(MOST_COLUMNS)
    return both[: len(train)], both[len(train) :]


def _score(output: Output, truth: NDArray[Any], answers: NDArray[Any]) -> _Scored:
    if output.kind == LabelKind.CLASSES:
        right = (answers == truth).astype(np.float64)
        classes, inverse, counts = np.unique(truth, return_inverse=True, return_counts=True)
        return _Scored(plain=right, balanced=right * (len(truth) / len(classes) / counts)[inverse], perfect=1.0)
    wide, given = truth.reshape(len(truth), -1), answers.reshape(len(truth), -1)
    if output.kind == LabelKind.BINARY:
        yes = wide > 0.5
        share = np.clip(yes.mean(0), 1e-3, 1 - 1e-3)
        each = np.where(yes, 0.5 / share, 0.5 / (1 - share))
        right = (given > 0.5) == yes
        return _Scored(plain=right.mean(1), balanced=(right * each).mean(1), perfect=1.0)
    variance = np.maximum(wide.var(0), 0.01 * wide.var(0).max()) + 1e-12
    error = -((given - wide) ** 2 / variance).mean(1)
    return _Scored(plain=error, balanced=error, perfect=0.0)


def _answers(
    output: Output, train: Floats, labels: NDArray[Any], test: Floats
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Each learner's answers for the evaluated rows, and for each training row without itself."""
    if output.kind == LabelKind.CLASSES:
        classes = np.unique(labels)
        target = (labels[:, None] == classes[None]).astype(np.float64)
    else:
        classes, target = None, labels.reshape(len(labels), -1).astype(np.float64)

    def chosen(scores: Floats) -> NDArray[Any]:
        return scores if classes is None else classes[scores.argmax(1)]

    own = squared_distances(train, train)
    np.fill_diagonal(own, np.inf)
    near, near_own = _nearest(squared_distances(test, train)), _nearest(own)
    yield "the vote of the 7 nearest rows", chosen(target[near].mean(1)), chosen(target[near_own].mean(1))
    mean = target.mean(0)
    shrink = SHRINKS_ROWS * len(train) + SHRINKS_COLUMNS * train.shape[1]
    weights, missed = ridge(train @ train.T, target - mean, shrink)
    yield "a ridge regression", chosen(test @ train.T @ weights + mean), chosen(target - missed)


def _nearest(distances: Floats) -> Integers:
    found: Integers = np.argpartition(distances, min(NEIGHBOURS, distances.shape[1] - 1), 1)[:, :NEIGHBOURS]
    return found
