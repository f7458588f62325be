"""What follows from another finding, or says the same of the same training, is not said as well."""

import pytest

from trainwright.core import Finding, Severity
from trainwright.judging.causes import with_outcome_explained
from trainwright.registry import load_rules
from trainwright.review.consequences import EXPLAINED_BY, FOLLOWS_FROM, SAID_BY

CODES = {one.name: one.code for one in load_rules()}


def finding(name: str, **given: object) -> Finding:
    return Finding(message="", code=CODES[name], name=name, **given)  # type: ignore[arg-type]


def test_the_table_names_what_exists_and_has_no_circle() -> None:
    names = {name for table in (FOLLOWS_FROM, EXPLAINED_BY, SAID_BY) for causes in table.values() for name in causes}
    assert names | {key.partition(":")[0] for key in FOLLOWS_FROM} <= set(CODES)
    open_, left = dict(FOLLOWS_FROM), set()
    while left != set(open_):  # what follows from nothing that follows goes first
        left = set(open_)
        of = {key.partition(":")[0] for key in open_}
        open_ = {key: causes for key, causes in open_.items() if causes & of}
    assert not open_


RULE = finding("broadcast-loss")


def question(name: str = "widened-loss", **given: object) -> Finding:
    return finding(name, **{"is_of_one_line": True, **given})


@pytest.mark.parametrize(
    ("rule", "asked", "is_left_out"),
    [
        (RULE, question(), True),
        (RULE, question(is_of_one_line=False), False),
        (RULE, question(after_repair=("broadcast-loss",)), False),
        (finding("broadcast-loss", severity=Severity.NOTE), question(), False),
        (finding("broadcast-loss", severity=Severity.WARNING), question(), False),
        (finding("inactive-training-mode"), question("wrong-mode", measured={"in_evaluation_mode": 9}), True),
        (finding("inactive-training-mode"), question("wrong-mode", measured={"in_training_mode": 9}), False),
    ],
)
def test_a_rule_speaks_for_a_question_of_the_same_fault(rule: Finding, asked: Finding, is_left_out: bool) -> None:
    assert with_outcome_explained([rule, asked]) == ((rule,) if is_left_out else (rule, asked))
