"""Which of two runs ended better: scores at evaluation speak before those of training, and losses last."""

import math

import pytest

from exam.outcome import Measure, compare, deciding, measures_of
from records import classifier, empty, regressor
from trainwright.rehearsal.record import Number


def run(loss: float = 0.3, seen: float | None = None, own: float | None = None, training: float | None = None):
    made = [Measure(name="training loss", value=loss, is_score=False, is_evaluated=False)]
    for name, value, evaluated in (("seen", seen, True), ("own", own, True), ("training", training, False)):
        if value is not None:
            made.append(Measure(name=name, value=value, is_score=True, is_evaluated=evaluated, is_own=name == "own"))
    return made


SEEN = [run(seen=0.80, own=0.5), run(seen=0.82, own=0.5), run(seen=0.81, own=0.5)]
OWN = [run(own=0.80, training=0.9), run(own=0.82, training=0.9)]


@pytest.mark.parametrize(
    ("ones", "other", "decides", "is_better"),
    [
        (SEEN, run(seen=0.4), "seen", True),
        (SEEN, run(seen=0.78), "seen", False),  # within the tolerance
        (SEEN, run(own=0.4), "own", True),
        (OWN, run(own=0.81, training=0.1), "own", False),
        (OWN, run(training=0.1), "training", True),
        ([run(training=0.9)], run(loss=9.6, training=0.9), "training", False),  # summed where it was averaged
        ([run(1.0), run(1.05), run(1.1)], run(2.0), "training loss", True),
        ([run(1.0), run(1.05), run(1.1)], run(1.15), "training loss", False),
    ],
)
def test_the_surest_measure_that_all_runs_have_decides(ones, other, decides, is_better):
    (one,) = deciding(compare(ones, [other]))
    assert (one.measure.name, one.is_better, one.is_worse) == (decides, is_better, False)
    (back,) = deciding(compare([other], ones))
    assert (back.is_better, back.is_worse) == (False, is_better)


def test_a_loss_that_is_no_number_is_worse_whatever_else_is_seen():
    compared = deciding(compare(SEEN, [run(math.nan, seen=0.81)]))
    assert [(one.measure.name, one.is_better) for one in compared] == [("seen", False), ("training loss", True)]


def test_agreement_and_the_scripts_own_scores_both_decide():
    """Either may be of rows that the other does not see."""
    compared = deciding(compare(SEEN, [run(seen=0.81, own=0.1)]))
    assert [(one.measure.name, one.is_better) for one in compared] == [("seen", False), ("own", True)]


def test_a_record_gives_its_measures_with_those_of_evaluation_first():
    record = classifier(right=0.9, held_out=0.8)
    record.numbers += [Number(update=9, name="accuracy", value=0.7, source=s) for s in ("history", "printed")]
    found = {m.name: (round(m.value, 1), m.is_evaluated, m.is_own) for m in measures_of(record)}
    assert found.pop("training loss") == (0.4, False, False)
    assert found == {
        "accuracy of 4 classes, evaluation": (0.8, True, False),
        "accuracy of 4 classes, training": (0.9, False, False),
        "its own val_accuracy": (0.8, True, True),
        "its own accuracy": (0.7, False, True),  # a framework's, which would say so of held-out rows
    }
    assert {m.name for m in measures_of(regressor())} >= {"R2 of 1 number, evaluation", "R2 of 1 number, training"}
    assert [m.name for m in measures_of(empty())] == ["training loss"]
