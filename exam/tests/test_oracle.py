"""When a planted fault counts: the program raises, or ends worse than its sound runs."""

import math

import pytest

from exam.oracle import bites
from exam.walks import Verdict, judge


def run(raised=None, train_loss=0.3, train_score=0.9, eval_score=None, **reported):
    return {
        "raised": raised,
        "train_loss": train_loss,
        "train_score": train_score,
        "eval_score": eval_score,
        "reported": reported,
    }


SOUND = [run(), run(train_score=0.92, train_loss=0.28), run(train_score=0.91)]
HELD_OUT = [run(accuracy=0.80, eval_loss=0.5), run(accuracy=0.82, eval_loss=0.5), run(accuracy=0.81, eval_loss=0.5)]


@pytest.mark.parametrize(
    ("sound", "planted", "harm", "kind"),
    [
        (SOUND, run(raised={"type": "ValueError", "message": "no", "line": 3}), "worse", "crash"),
        (SOUND, run(train_score=0.5), "worse", "silent"),
        (SOUND, run(train_score=0.88), "worse", ""),  # within the tolerance
        (SOUND, run(train_score=0.95), "worse", ""),  # better
        (
            SOUND,
            run(train_loss=9.6),
            "worse",
            "",
        ),  # summed where it was averaged: the score says that it learns as well
        (SOUND, run(train_loss=math.nan), "worse", "silent"),
        (SOUND, None, "worse", ""),  # too slow to tell
        (HELD_OUT, run(train_score=0.5, accuracy=0.81, eval_loss=0.5), "worse", ""),  # held-out rows decide
        (HELD_OUT, run(accuracy=0.4, eval_loss=0.5), "worse", "silent"),
        (HELD_OUT, run(accuracy=0.99, eval_loss=0.5), "worse", ""),
        (HELD_OUT, run(accuracy=0.99, eval_loss=0.5), "differs", "silent"),  # too good
        (HELD_OUT, run(train_score=0.1, accuracy=0.81, eval_loss=0.5), "differs", ""),
    ],
)
def test_a_fault_counts_where_it_makes_the_program_worse(sound, planted, harm, kind):
    assert bites(sound, planted, harm).kind == kind


def test_losses_decide_where_nothing_else_is_known():
    sound = [run(train_score=None, train_loss=loss) for loss in (1.0, 1.05, 1.1)]
    assert bites(sound, run(train_score=None, train_loss=2.0), "worse")
    assert not bites(sound, run(train_score=None, train_loss=1.15), "worse")


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([("misaligned-labels", 8)], {"named", "first", "line"}),
        ([("misaligned-labels", 40)], {"named", "first"}),
        ([("non-finite-loss", 30), ("misaligned-labels", 8)], {"named", "wrong"}),
        ([("non-finite-loss", 7)], {"elsewhere"}),
        ([("worse-than-constant", 8)], {"symptom"}),  # it is in the fault's names, and names nothing
        ([], {"false_pass"}),
    ],
)
def test_the_first_cause_is_judged_by_its_name_and_its_line(findings, expected):
    verdict = Verdict(tuple(findings), findings[0] if findings else None, 1 if findings else 0, 1.0)
    marks = judge(verdict, ("misaligned-labels", "worse-than-constant"), (8,))
    assert {name for name in vars(marks) if getattr(marks, name)} == expected


def test_an_unexplained_stop_is_no_false_pass():
    assert not judge(Verdict((), None, 3, 1.0), (), (8,)).false_pass
