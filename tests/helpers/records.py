"""Records made by hand: what a sound training leaves behind, to be changed by a test."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from trainwright.rehearsal.record import (
    Answers,
    Drawn,
    LabelKind,
    Number,
    Output,
    Parameter,
    Pass,
    Record,
    TrainedLabels,
    Training,
    Update,
)

UPDATES, MODEL, TRAIN_SET, TEST_SET = 200, 1, 10, 11
ROWS, BATCH = 400, 20


def guesses_for(labels: np.ndarray, right: float, width: int, rng: np.random.Generator) -> np.ndarray:
    """Answers that are right so often, and otherwise any other class."""
    wrong = (labels + rng.integers(1, width, len(labels))) % width
    return np.where(rng.random(len(labels)) < right, labels, wrong)


def of_classes(
    labels: Any,
    guesses: Any,
    *,
    update: int,
    trains: bool = False,
    width: int | None = None,
    sure: float = 0.9,
    **more: Any,
) -> Answers:
    """Answers of a call with classes; `sure`: the probability of what is answered."""
    labels, guesses = np.asarray(labels), np.asarray(guesses)
    width = width or int(max(labels.max(), guesses.max())) + 1
    other = (1 - sure) / max(1, width - 1)
    log_losses = -np.log(np.where(labels == guesses, sure, other))
    return Answers(
        output=Output(LabelKind.CLASSES, width),
        update=update,
        trains=trains,
        labels=labels,
        guesses=guesses,
        log_losses=log_losses,
        total=len(labels),
        **{"model": MODEL, "data": TRAIN_SET if trains else TEST_SET, "loss": float(log_losses.mean()), **more},
    )


def of_values(
    labels: Any, values: Any, *, update: int, kind: LabelKind = LabelKind.NUMBERS, trains: bool = False, **more: Any
) -> Answers:
    """Answers of a call with numbers, or yes and no; (n,) or (n, width)."""
    labels, values = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (labels, values))
    return Answers(
        output=Output(kind, labels.shape[1]),
        update=update,
        trains=trains,
        labels=labels,
        values=values,
        total=len(labels),
        **{"model": MODEL, "data": TRAIN_SET if trains else TEST_SET, **more},
    )


def parameters(count: int = 4, **more: Any) -> list[Parameter]:
    return [
        Parameter(
            **{
                "name": f"layer.{n}.weight", "shape": (8, 8), "is_trainable": True, "is_held": True, "had_gradient": True,
                "has_moved": True, "steps": UPDATES, "size_before": 0.1, "size_after": 0.2, "model": MODEL, **more,
            }
        )
        for n in range(count)
    ]  # fmt: skip


def empty(updates: int = UPDATES, **more: Any) -> Record:
    """A training without labels: losses, steps, weights."""
    record = Record(updates=updates, parameters=parameters(), **more)
    record.losses = [(u, 1.5 * 0.99**u + 0.1) for u in range(updates)]
    record.looked_updates = [Update(number=u + 1, optimizer=1, rate=0.01, gradient_norm=1.0) for u in range(updates)]
    record.trainings = [
        Training(number=1, kind="loop", begins=0, ends=updates, planned=updates, weights_before=0.5, weights_after=9.5, models=(MODEL,))
    ]  # fmt: skip
    record.drawn = [Drawn(data=TRAIN_SET, size=ROWS, name="Rows", draws=Counter(list(range(ROWS)) * 5), trains=True)]
    return record


def add_calls(record: Record, *calls: Answers) -> None:
    """Add calls as the recorder would: training labels are counted, rows are known by their keys."""
    for one in calls:
        record.answers.append(one)
        if not one.trains:
            continue
        counts = record.trained_labels.setdefault(one.output, TrainedLabels())
        if one.output.kind == LabelKind.CLASSES:
            counts.classes.update(one.labels.tolist())
        else:
            zero = np.zeros(one.output.width)
            counts.count += len(one.labels)
            counts.total = (zero if counts.total is None else counts.total) + one.labels.sum(0)
            counts.squares = (zero if counts.squares is None else counts.squares) + (one.labels**2).sum(0)
        for key, label in zip([] if one.keys is None else one.keys.tolist(), one.labels):
            record.trained_keys[key] = record.trained_keys.get(key, 0) + 1
            record.first_trained.setdefault(key, one.update)
            if one.output.kind == LabelKind.CLASSES:
                record.answers_of.setdefault(one.output, {}).setdefault(key, Counter())[int(label)] += 1


def add_pass(record: Record, update: int, **more: Any) -> int:
    """Add an evaluation pass, and give its number."""
    number = len(record.passes) + 1
    made = {"model": MODEL, "is_trained": True, "weights": float(update), "data": TEST_SET, "calls": 1, **more}
    record.passes.append(Pass(number=number, update=update, **made))
    return number


def classifier(
    right: float = 0.9,
    held_out: float = 0.85,
    width: int = 4,
    *,
    updates: int = UPDATES,
    rows: int = 360,
    seed: int = 0,
    shares: Any = None,
) -> Record:
    """A classifier of rows of 8 numbers: training calls with keys, three evaluation passes, inputs that tell the labels."""
    rng = np.random.default_rng(seed)
    record = empty(updates)
    centres = 3 * rng.standard_normal((width, 8))
    labels = rng.choice(width, ROWS, p=shares)
    inputs = centres[labels] + rng.standard_normal((ROWS, 8))
    order = np.concatenate([rng.permutation(ROWS) for _ in range(updates * BATCH // ROWS + 1)])
    for update in range(updates):
        drawn = order[update * BATCH : (update + 1) * BATCH]
        share = 1 / width + (right - 1 / width) * min(1.0, 2 * update / updates)
        given = guesses_for(labels[drawn], share, width, rng)
        add_calls(record, of_classes(labels[drawn], given, update=update, trains=True, width=width, keys=1000 + drawn))
    record.trained_rows[Output(LabelKind.CLASSES, width)] = inputs, labels, 1000 + np.arange(ROWS)
    truth = rng.choice(width, rows, p=shares)
    there = centres[truth] + rng.standard_normal((rows, 8))
    for number, update in enumerate((updates // 4, updates // 2, updates)):
        share = 1 / width + (held_out - 1 / width) * (number + 1) / 3
        where = add_pass(record, update)
        given = guesses_for(truth, share, width, rng)
        add_calls(
            record,
            of_classes(
                truth, given, update=update, width=width, keys=5000 + np.arange(rows), evaluation=where, inputs=there
            ),
        )
        record.numbers.append(
            Number(update=update, name="val_accuracy", value=float((given == truth).mean()), source="logged")
        )
    return record


def regressor(
    good: float = 0.9, held_out: float = 0.85, width: int = 1, *, updates: int = UPDATES, seed: int = 0
) -> Record:
    """Numbers that are told with so much of their deviation; no inputs are known."""
    rng = np.random.default_rng(seed)
    record = empty(updates)
    for update in range(updates):
        labels = 5 + 2 * rng.standard_normal((BATCH, width))
        values = 5 + good * (labels - 5) + 2 * (1 - good) * rng.standard_normal((BATCH, width))
        add_calls(record, of_values(labels, values, update=update, trains=True))
    labels = 5 + 2 * rng.standard_normal((200, width))
    for update in (updates // 4, updates // 2, updates):
        values = 5 + held_out * (labels - 5) + 2 * (1 - held_out) * rng.standard_normal((200, width))
        add_calls(record, of_values(labels, values, update=update, evaluation=add_pass(record, update)))
    return record
