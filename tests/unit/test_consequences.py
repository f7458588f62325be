"""What follows from another finding, or says the same of the same training, is not said as well."""

import pytest

from trainwright.core import Finding, Severity
from trainwright.judging.causes import with_outcome_explained
from trainwright.registry import load_rules
from trainwright.review.consequences import EXPLAINED_BY, FOLLOWS_FROM, SAID_BY

CODES = {one.name: one.code for one in load_rules()}


def finding(name: str, *trainings: int, **given: object) -> Finding:
    return Finding(message="", code=CODES[name], name=name, trainings=trainings, **given)  # type: ignore[arg-type]


def test_the_table_names_what_exists_and_has_no_circle() -> None:
    names = {name for table in (FOLLOWS_FROM, EXPLAINED_BY, SAID_BY) for causes in table.values() for name in causes}
    assert names | {key.partition(":")[0] for key in FOLLOWS_FROM} <= set(CODES)
    open_, left = dict(FOLLOWS_FROM), set()
    while left != set(open_):  # what follows from nothing that follows goes first
        left = set(open_)
        of = {key.partition(":")[0] for key in open_}
        open_ = {key: causes for key, causes in open_.items() if causes & of}
    assert not open_


NOTE = {"severity": Severity.NOTE}
AGAIN = {"after_repair": ("broadcast-loss",)}


@pytest.mark.parametrize(
    ("rule", "question", "is_left_out"),
    [
        (finding("broadcast-loss", 1), finding("widened-loss", 1, 2), True),
        (finding("broadcast-loss", 1), finding("widened-loss", 2), False),
        (finding("broadcast-loss", 1, **NOTE), finding("widened-loss", 1), False),
        (finding("broadcast-loss", 1), finding("widened-loss", 1, **AGAIN), False),
        (finding("inactive-training-mode", 1), finding("wrong-mode", 1, measured={"in_evaluation_mode": 9}), True),
        (finding("inactive-training-mode", 1), finding("wrong-mode", 1, measured={"in_training_mode": 9}), False),
    ],
)
def test_a_rule_speaks_for_a_question_of_the_same_fault(rule: Finding, question: Finding, is_left_out: bool) -> None:
    assert with_outcome_explained([rule, question]) == ((rule,) if is_left_out else (rule, question))
