"""What follows from another finding, or says the same of the same training, is not said as well."""

import sys
from pathlib import Path

import pytest

from records import classifier
from trainwright.core import Finding, Place, Severity
from trainwright.judging.causes import MOST_FINDINGS, with_outcome_explained
from trainwright.registry import load_questions, load_rules
from trainwright.rehearsal.record import Training
from trainwright.review.consequences import APART, EXPLAINED_BY, FOLLOWS_FROM, RESULTS, SAID_BY
from trainwright.review.review import review

CODES = {one.name: one.code for one in load_rules()}


def finding(name: str, **given: object) -> Finding:
    return Finding(message="", code=CODES[name], name=name, **given)  # type: ignore[arg-type]


def test_the_table_names_what_exists_and_has_no_circle() -> None:
    names = {name for table in (FOLLOWS_FROM, EXPLAINED_BY, SAID_BY) for causes in table.values() for name in causes}
    assert names | {key.partition(":")[0] for key in FOLLOWS_FROM} <= set(CODES)
    questions = {one.name: Path(sys.modules[one.module].__file__ or "").read_text("utf-8") for one in load_questions()}
    measured = (key.split(":") for key in FOLLOWS_FROM if ":" in key)
    assert not [key for name, key in measured if f'"{key}": ' not in questions[name]]
    assert set(questions) - APART == FOLLOWS_FROM[RESULTS[-1]] | {RESULTS[-1]}
    open_, left = dict(FOLLOWS_FROM), set()
    while left != set(open_):  # what follows from nothing that follows goes first
        left = set(open_)
        of = {key.partition(":")[0] for key in open_}
        open_ = {key: causes for key, causes in open_.items() if causes & of}
    assert not open_


RULE, HERE = finding("broadcast-loss"), Place("train.py", 9)


def question(name: str = "widened-loss", **given: object) -> Finding:
    return finding(name, **{"is_of_one_line": True, **given})


@pytest.mark.parametrize(
    ("rule", "asked", "is_left_out"),
    [
        (RULE, question(), True),
        (RULE, question(is_of_one_line=False), False),
        (RULE, question(after_repair=("broadcast-loss",)), False),
        (finding("broadcast-loss", after_repair=("label-dtype",)), question(), False),
        (finding("broadcast-loss", where=HERE), question(is_of_one_line=False, where=HERE), True),
        (finding("broadcast-loss", where=HERE), question(is_of_one_line=False, where=Place("train.py", 8)), False),
        (finding("broadcast-loss", severity=Severity.NOTE), question(), False),
        (finding("broadcast-loss", severity=Severity.WARNING), question(), False),
        (finding("inactive-training-mode"), question("wrong-mode", measured={"in_evaluation_mode": 9}), True),
        (finding("inactive-training-mode"), question("wrong-mode", measured={"in_training_mode": 9}), False),
        (finding("constant-loss"), question("weights-stand-still", measured={"held": 9, "moved": 0}), True),
        (finding("constant-loss"), question("weights-stand-still", measured={"held": 9, "still": 7}), False),
        (
            finding("metrics-on-logits"),
            question("numbers-disagree", measured={"reported": 0.9, "agreement": 0.5}),
            True,
        ),
        (
            finding("metrics-on-logits"),
            question("numbers-disagree", measured={"reported": 0.9, "own_rows": 0.5}),
            False,
        ),
        (
            finding("contradictory-labels", measured={"best_accuracy": 0.6}),
            question("torn-labels", measured={"ceiling": 0.55}),
            True,
        ),
        (
            finding("contradictory-labels", measured={"best_accuracy": 0.9}),
            question("torn-labels", measured={"ceiling": 0.55}),
            False,
        ),
    ],
)
def test_a_rule_speaks_for_a_question_of_the_same_fault(rule: Finding, asked: Finding, is_left_out: bool) -> None:
    assert with_outcome_explained([rule, asked]) == ((rule,) if is_left_out else (rule, asked))


def test_what_is_left_out_takes_no_place_of_what_is_shown() -> None:
    others = [question("numbers-disagree", measured={"rows": number}) for number in range(MOST_FINDINGS + 1)]
    assert with_outcome_explained([RULE, question(), *others]) == (RULE, *others[:MOST_FINDINGS])


def test_the_trainings_of_one_line_are_one_and_a_later_one_is_spoken_of_by_itself() -> None:
    record = classifier()
    lines = {(HERE, HERE): True, (HERE, Place("train.py", 8)): False}
    for places, is_one in lines.items():
        record.trainings = [
            Training(number=number, begins=(number - 1) * 50, ends=number * 50, has_moved=number == 1, where=place)
            for number, place in enumerate(places, 1)
        ]
        found = {one.name: one for one in review(record).findings}
        assert all(one.is_of_one_line == (is_one and one.measured.get("training", 1) == 1) for one in found.values())
        assert not found["weights-stand-still"].is_of_one_line
