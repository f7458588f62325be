"""The profile of an output, from records written by hand: what counts as a raw column, and what does not stand out."""

import io
from collections import Counter
from dataclasses import replace

import numpy as np
from rich.console import Console

from trainwright.core import Report
from trainwright.core.sheet import Sheet, sheet_from_dict, sheet_to_dict
from trainwright.rehearsal.record import Answers, Floats, LabelKind, Output, Record, TrainedLabels
from trainwright.rehearsal.record_parts import RawRows
from trainwright.report import html, terminal
from trainwright.review.profiles import profiles

ROWS = 600
CLASSES = Output(LabelKind.CLASSES, 2)


def record_of(columns: dict[str, Floats], labels: Floats, inputs: Floats, skill: float = 0.0) -> Record:
    """A model that was trained on these rows, and answers so much better than by chance."""
    rng = np.random.default_rng(5)
    keys = np.arange(ROWS)
    whole = labels.astype(np.int64)
    guesses = np.where(rng.random(ROWS) < skill, whole, rng.integers(0, 2, ROWS))
    record = Record(updates=100)
    record.answers = [
        Answers(
            output=CLASSES, update=99, trains=True, labels=whole, guesses=guesses, keys=keys, numbers=keys, data=1,
            total=ROWS, log_losses=np.where(guesses == whole, 0.3, 1.2),
        )
    ]  # fmt: skip
    record.trained_labels = {CLASSES: TrainedLabels(classes=Counter(whole.tolist()))}
    record.trained_rows = {CLASSES: (inputs, whole, keys)}
    record.raw = [RawRows(data=1, numbers=keys, columns=columns)]
    return record


def parts() -> tuple[Floats, Floats, Floats]:
    """Labels, a column that mostly tells them, and numbers that do not."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, ROWS).astype(np.float64)
    telling = labels + rng.normal(0, 0.35, ROWS)
    return labels, telling[:, None], rng.normal(size=(ROWS, 5))


def test_a_telling_column_that_does_not_arrive_is_marked() -> None:
    labels, telling, noise = parts()
    (row,) = profiles(record_of({"dose": telling, "other": noise[:, :1], "label": labels[:, None]}, labels, noise))
    assert row.carriers == ("dose",) and row.mark == "the raw row tells more: dose"
    assert row.not_counted == ("label",) and row.raw > 0.85 and row.received < 0.6


def test_a_column_that_repeats_the_label_is_not_counted() -> None:
    labels, _, noise = parts()
    rng = np.random.default_rng(4)
    stars = labels * 3 + rng.integers(1, 3, ROWS)  # stars beside the opinion that was made from them
    order = np.argsort(np.argsort(labels + rng.random(ROWS) / 2)).astype(np.float64)
    text = np.stack([labels == 0, labels == 1], 1).astype(np.float64)
    columns = {"stars": stars[:, None], "id": order[:, None], "name": text, "other": noise[:, :1]}
    (row,) = profiles(record_of(columns, labels, noise))
    assert set(row.not_counted) == {"stars", "id", "name"} and not row.mark and row.raw < 0.65


def test_nothing_stands_out_where_the_column_arrives_or_the_model_has_it() -> None:
    labels, telling, noise = parts()
    columns = {"dose": telling, "label": labels[:, None]}
    (row,) = profiles(record_of(columns, labels, np.concatenate([noise, telling], 1)))
    assert not row.mark and abs(row.raw - row.received) < 0.05
    assert profiles(record_of(columns, labels, noise, skill=0.9)) == ()


def test_rows_in_another_order_show_nothing() -> None:
    labels, telling, noise = parts()
    mixed = np.random.default_rng(6).permutation(ROWS)
    columns = {"dose": telling[mixed], "label": labels[mixed][:, None]}
    assert profiles(record_of(columns, labels, noise)) == ()


def test_mixed_labels_and_few_rows_show_nothing() -> None:
    labels, telling, noise = parts()
    record = record_of({"dose": telling}, labels, noise)
    (answers,) = record.answers
    record.answers.append(replace(answers, labels=1 - answers.labels))
    assert profiles(record) == ()
    record = record_of({"dose": telling[:30]}, labels, noise)
    record.raw = [replace(record.raw[0], numbers=np.arange(30))]
    assert profiles(record) == ()


def test_its_bars_are_shown_everywhere() -> None:
    labels, telling, noise = parts()
    sheet = Sheet(updates=1, profile=profiles(record_of({"dose": telling}, labels, noise)))
    assert sheet_from_dict(sheet_to_dict(sheet)) is not None
    report = Report(script="train.py", sheet=sheet)
    file = io.StringIO()
    terminal.show(report, Console(file=file, width=100))
    shown = file.getvalue()
    assert "simple learner, raw row" in shown and "█" in shown and "tells more: dose" in shown
    assert "tells more: dose" in html.render(report)
