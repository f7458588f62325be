"""The question whether evaluated rows are training rows once more, on records."""

import numpy as np
import pytest

from records import UPDATES, add_calls, empty, of_classes, of_values
from trainwright.registry import load_rules
from trainwright.rehearsal.record import LabelKind, Output, Record
from trainwright.rehearsal.record_parts import RawRows
from trainwright.review.review import ask

QUESTION = next(one for one in load_rules() if one.name == "rows-measured-twice")


def evaluated(train: np.ndarray, test: np.ndarray) -> Record:
    """A training on rows of which each has a number, and its evaluation on others."""
    rng, record = np.random.default_rng(0), empty()
    labels = [rng.standard_normal(len(rows)) for rows in (train, test)]
    keys = np.arange(len(train)), 10_000 + np.arange(len(test))
    add_calls(record, of_values(labels[0], labels[0], update=150, trains=True, keys=keys[0]))
    record.trained_rows[Output(LabelKind.NUMBERS, 1)] = train.astype(np.float32), labels[0][:, None], keys[0]
    add_calls(record, of_values(labels[1], labels[1], update=UPDATES, inputs=test.astype(np.float32), keys=keys[1]))
    return record


def said(train: np.ndarray, test: np.ndarray) -> str:
    return "; ".join(one.message for one in ask(QUESTION, evaluated(train, test)))


def windows(series: np.ndarray, width: int, step: int = 1, *, channels_first: bool = False) -> np.ndarray:
    """Windows of a series (time, channels), flattened."""
    found = [series[begin : begin + width] for begin in range(0, len(series) - width + 1, step)]
    return np.stack([(one.T if channels_first else one).reshape(-1) for one in found])


def series(rows: int = 1200, channels: int = 2) -> np.ndarray:
    """A check, and the hours of a day beside it."""
    rng, hours = np.random.default_rng(1), 2 * np.pi * np.arange(rows) / 24
    checks = np.cumsum(rng.standard_normal((rows, 1)), 0)
    return np.concatenate([checks, *[np.sin(hours + one)[:, None] for one in range(channels - 1)]], 1)


@pytest.mark.parametrize(("width", "step"), [(24, 1), (24, 6), (16, 4)])
@pytest.mark.parametrize("channels_first", [True, False])
def test_windows_that_were_dealt_out_are_told(width: int, step: int, channels_first: bool) -> None:
    rows = windows(series(), width, step, channels_first=channels_first)
    order = np.random.default_rng(2).permutation(len(rows))
    told = said(rows[order[len(rows) // 4 :]], rows[order[: len(rows) // 4]])
    assert "share values, shifted" in told


@pytest.mark.parametrize("begin", [500, 900])
def test_windows_of_another_time_are_no_fault(begin: int) -> None:
    rows = windows(series(channels=3), 48, channels_first=True)
    held = np.arange(begin, begin + 150)
    assert said(np.delete(rows, held, 0), rows[held]) == ""


@pytest.mark.parametrize(("copied", "is_told"), [(0, False), (100, True)])
def test_copies_are_told_and_the_training_table_that_is_evaluated_beside_the_held_out_one_is_not(
    copied: int, is_told: bool
) -> None:
    rng, record = np.random.default_rng(4), empty()
    rows, labels = rng.standard_normal((500, 12)), rng.standard_normal(500)
    add_calls(record, of_values(labels, labels, update=150, trains=True, keys=np.arange(500)))
    record.trained_rows[Output(LabelKind.NUMBERS, 1)] = rows.astype(np.float32), labels[:, None], np.arange(500)
    held_out = np.concatenate([np.arange(copied), 10_000 + np.arange(400 - copied)])
    for keys in (np.arange(500), held_out):
        add_calls(record, of_values(labels[: len(keys)], labels[: len(keys)], update=UPDATES, keys=keys))
    assert ("are copies of rows" in "; ".join(one.message for one in ask(QUESTION, record))) == is_told


def test_what_repeats_by_its_nature_is_no_fault() -> None:
    rng = np.random.default_rng(3)
    wave = windows(np.sin(2 * np.pi * (np.arange(1500) % 50) / 50)[:, None], 30)
    assert said(wave[:1000], wave[1100:]) == ""
    silence = np.zeros((800, 2000))
    for row in silence:  # one sound at any place
        row[(begin := rng.integers(1940)) : begin + 60] = np.sin(np.arange(60))
    assert said(silence[:600], silence[600:]) == ""
    categories = np.eye(5)[rng.integers(0, 5, (600, 8))].reshape(600, -1)
    assert said(categories[:400], categories[400:]) == ""


def table(rows: int = 900, columns: int = 8) -> np.ndarray:
    rng = np.random.default_rng(4)
    return rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns))


def interpolated(rows: np.ndarray, count: int) -> np.ndarray:
    """Rows between each chosen one and one of its five nearest."""
    rng = np.random.default_rng(5)
    begins = rng.integers(len(rows), size=count)
    near = ((rows[begins, None] - rows) ** 2).sum(2).argsort(1)[np.arange(count), rng.integers(1, 6, count)]
    return rows[begins] + rng.uniform(size=(count, 1)) * (rows[near] - rows[begins])


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_interpolated_rows_on_both_sides_are_told_and_in_training_alone_are_not(scale: float) -> None:
    rows = scale * table() + 3
    every = np.concatenate([rows, interpolated(rows[:80], 500)])
    every = every[np.random.default_rng(6).permutation(len(every))]
    assert "on the straight line between two training rows" in said(every[:1000], every[1000:])
    train = rows[:600]
    assert said(np.concatenate([train, interpolated(train[:80], 500)]), rows[600:]) == ""


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("bent", [True, False])
def test_rows_of_few_dimensions_are_no_fault(dimensions: int, bent: bool) -> None:
    rng = np.random.default_rng(7)
    rows = rng.uniform(-1, 1, (1500, dimensions)) @ rng.standard_normal((dimensions, 10)) + rng.standard_normal(10)
    rows = np.sin(rows) if bent else rows
    assert said(rows[:1000], rows[1000:]) == ""


def test_rows_on_a_grid_are_no_fault() -> None:
    rows = np.round(3 * np.random.default_rng(8).standard_normal((1200, 7))) / 2
    assert said(rows[:900], rows[900:]) == ""


def grouped(*, people: int = 60, apart: bool = False, is_general: bool = False, is_torn: bool = False) -> str:
    """Rows of people of two classes; they are told by the person, by what the class has in common, or each row for itself."""
    rng, record = np.random.default_rng(9), empty()
    who = np.repeat(np.arange(people), 1200 // people)
    rows = rng.standard_normal((people, 12))[who] + 0.5 * rng.standard_normal((len(who), 12))
    labels = rng.integers(0, 2, len(who)) if is_torn else who % 2
    rows += 5.0 * labels[:, None] if is_general else 0.0
    order = np.arange(len(who)) if apart else rng.permutation(len(who))
    numbers = order[:960], order[960:]
    for data, (trains, chosen) in enumerate(zip((True, False), numbers, strict=True), 1):
        given = {"inputs": None if trains else rows[chosen].astype(np.float32), "numbers": chosen, "keys": chosen}
        update = 150 if trains else UPDATES
        add_calls(
            record,
            of_classes(labels[chosen], labels[chosen], update=update, trains=trains, width=2, data=data, **given),
        )
        record.raw.append(RawRows(data=data, numbers=chosen, columns={}, groups=(("person", who[chosen]),)))
    train = numbers[0]
    record.trained_rows[Output(LabelKind.CLASSES, 2)] = rows[train].astype(np.float32), labels[train], train
    return "; ".join(one.message for one in ask(QUESTION, record))


def test_groups_that_carry_the_label_to_the_other_side_are_told() -> None:
    assert "100% of the evaluated rows are of a group (person)" in grouped()


def test_groups_that_carry_no_label_or_few_or_are_apart_are_no_fault() -> None:
    assert grouped(apart=True) == ""
    assert grouped(is_general=True) == ""
    assert grouped(is_torn=True) == ""
    assert grouped(people=12) == ""
