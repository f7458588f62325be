"""When few distinct training rows are a warning, a note, or nothing."""

from dataclasses import replace

import pytest

from trainwright.core import Severity
from trainwright.rules.baseline.learning import few_distinct_rows
from trainwright.stages import (
    Alignment,
    ColumnFacts,
    DatasetFacts,
    EvaluatedLoss,
    LabelFacts,
    LearningFacts,
    SetupFacts,
    SplitFacts,
)

LABELS = LabelFacts(column="y", kind="class", census={0: 100, 1: 100})
LEARNED = Alignment(rows=300, score=40.0, control_score=50.0)
BY_HEART = LearningFacts(
    held_out="evaluation",
    rows=300,
    planned=200,
    evaluations=(
        EvaluatedLoss(updates=0, loss=0.7, constant=0.69),
        EvaluatedLoss(updates=200, loss=1.8, constant=0.69),
    ),
    trained=EvaluatedLoss(updates=200, loss=0.01, constant=0.69),
)


def _set(name, rows, distinct, column="numbers"):
    values = {0: rows} if column == "integer" else {}
    columns = (ColumnFacts(name="x", kind=column, values=values), ColumnFacts(name="y", kind="integer"))
    hashes = tuple(i % distinct for i in range(rows))
    return SplitFacts(name=name, rows=rows, columns=columns, labels=LABELS, row_hashes=hashes, hash_rows=range(rows))


def _found(train, held, learning=BY_HEART, probe=LEARNED):
    dataset = DatasetFacts(train=train, evaluation=held, evaluation_alignment=probe)
    return [f.severity or Severity.WARNING for f in few_distinct_rows.function(dataset, learning, SetupFacts())]


@pytest.mark.parametrize("train", [_set("train", 700, 12), _set("train", 40, 40)])
def test_rows_learned_by_heart_are_a_warning(train):
    assert _found(train, _set("evaluation", 300, 300)) == [Severity.WARNING]


@pytest.mark.parametrize(
    "learning",
    [
        None,
        replace(BY_HEART, planned=None),
        replace(BY_HEART, held_out="training"),
        replace(BY_HEART, trained=EvaluatedLoss(updates=200, loss=0.68, constant=0.69)),
        replace(BY_HEART, evaluations=(EvaluatedLoss(updates=200, loss=0.5, constant=0.69),)),
    ],
)
def test_without_that_outcome_they_are_a_note(learning):
    assert _found(_set("train", 700, 12), _set("evaluation", 300, 300), learning) == [Severity.NOTE]


def test_labels_that_no_probe_learns_leave_it_a_note():
    assert _found(_set("train", 700, 12), _set("evaluation", 300, 300), probe=None) == [Severity.NOTE]


def test_rows_of_a_few_categories_repeat_by_themselves():
    assert _found(_set("train", 700, 12, "integer"), _set("evaluation", 300, 12, "integer")) == []


def test_a_training_set_as_large_as_the_evaluation_set_is_usual():
    assert _found(_set("train", 300, 300), _set("evaluation", 300, 300)) == []


def test_rows_drawn_with_replacement_are_usual():
    assert _found(_set("train", 700, 440), _set("evaluation", 300, 300)) == []
